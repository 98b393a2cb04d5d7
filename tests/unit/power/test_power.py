"""The registry: what a spec may name, and what is refused by name."""

from typing import get_args

import pytest

from tokenwatt_site import power
from tokenwatt_site.documents.spec import PowerSource, SpecPower
from tokenwatt_site.errors import RefusedError


def test_every_source_of_a_spec_is_built_or_refused_by_name() -> None:
    assert {*power.METERS, *power.REFUSED, "none"} == set(get_args(PowerSource))
    assert not set(power.METERS) & set(power.REFUSED)


@pytest.mark.parametrize("source", power.REFUSED)
def test_a_source_that_isnt_built_is_refused_with_what_to_use(source: str) -> None:
    asked = SpecPower(source=source)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match=f"power.source: {source} isn't read") as raised:
        power.open_meter(asked, gpus=None, count=1, simulator_url=None)
    assert "use `" in raised.value.hint
    assert raised.value.exit_code == 2


def test_none_is_no_meter() -> None:
    with pytest.raises(RefusedError, match="none isn't read"):
        power.open_meter(SpecPower(), gpus=None, count=1, simulator_url=None)
