"""Our joules against those of Zeus, an independent client, on one trace of the stub."""

import pytest

from tests.support.nvml_stub import NvmlStub, uuid
from tokenwatt_site.method.energy import energy_window

STATE = "step_w=1 high_w=700 low_w=200 period_s=4 duty=0.25 limit_w=1000"
ZEUS = [
    (105.0, 125.0, [6500.0, 6520.0, 6540.0, 6560.0]),
    (107.25, 123.75, [5300.0, 5316.5, 5333.0, 5349.5]),
]
"""Begin and end, s, and J a GPU, as Zeus 0.16.0 read them from this stub on 2026-12-01 by
tests/support/nvml_stub/zeus_reading.py; its nvidia-ml-py was 13.615.71."""


@pytest.mark.parametrize("state", [STATE, f"{STATE} counter=0"])
def test_zeus_reads_the_same_joules(nvml_stub: NvmlStub, state: str) -> None:
    """By the counter to its step of 20 ms; by samples alone to their spacing at the edges."""
    power = {"source": "board"}
    answer = nvml_stub.ask(state, do="sample", power=power, count=4, seconds=30.0, hz=20.0)
    off = 0.001 if "counter=0" not in state else 0.01
    for begin_s, end_s, joules in ZEUS:
        window = energy_window(answer.samples, answer.result["devices"], begin_s, end_s, 20.0)
        expected = {uuid(index): each for index, each in enumerate(joules)}
        assert window.per_device_j == pytest.approx(expected, rel=off)
        assert window.joules == pytest.approx(sum(joules), rel=off)
