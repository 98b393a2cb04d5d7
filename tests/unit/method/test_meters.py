"""Which meters a spec asks for."""

import pytest

from tests.support.windows import spec_of
from tokenwatt_site.method.meters import meter_specs


@pytest.mark.parametrize(
    "adapter, sources",
    [("nvidia", ["board", "rapl"]), ("none", ["board", "rapl"]), ("amd", ["amd", "rapl"])],
)
def test_board_is_the_accelerators_own_meter(adapter: str, sources: list[str]) -> None:
    power = [{"source": "board", "sampling_hz": 5}, {"source": "rapl"}]
    named = meter_specs(spec_of(hardware={"adapter": adapter}, power=power))
    assert [meter.source for meter in named] == sources
    assert named[0].sampling_hz == 5
