"""Accelerators by adapter; those with a driver are in the contracts."""

from typing import get_args

from tokenwatt_site.accelerators import ADAPTERS, Accelerators, identify
from tokenwatt_site.documents.spec import SpecHardware, SpecModel

MODEL = SpecModel(name="m", replicas=2, tensor_parallel=4)


def test_every_adapter_of_a_spec_is_built() -> None:
    field = SpecHardware.model_fields["adapter"]
    assert set(ADAPTERS) == set(get_args(field.annotation))


def test_none_says_nothing_of_what_it_doesnt_know() -> None:
    assert identify(SpecHardware(), MODEL) == Accelerators(vendor="", name="", count=0)
    rated = identify(SpecHardware(rated_bw_tbs_per_gpu=0.2), MODEL)
    assert rated.rated_bw_tbs_per_gpu == 0.2
