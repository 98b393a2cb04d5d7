"""The registry: what a spec may name."""

from typing import get_args

import pytest

from tokenwatt_site import power
from tokenwatt_site.documents.spec import PowerSource, SpecPower
from tokenwatt_site.errors import RefusedError


def test_every_source_of_a_spec_is_a_meter() -> None:
    assert {*power.METERS, "none"} == set(get_args(PowerSource))


def test_none_is_no_meter() -> None:
    with pytest.raises(RefusedError, match="none isn't read"):
        power.open_meter(SpecPower(), gpus=None, count=1, simulator_url=None)
