"""A steady state is told from a server whose requests pile up."""

import pytest

from tests.support.traces import steady
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.trend import stationary
from tokenwatt_site.method.window import Window
from tokenwatt_site.method.workloads import Fixed, Workload

WINDOW = Window(index=0, phase="confirm", rate_rps=20.0, w0_s=10.0, w1_s=70.0, warmup_s=10.0)


def load(growth_s: float, seed: int) -> list[RequestTrace]:
    """Return 80 s of Poisson arrivals whose stay of a second grows by so much a minute."""
    workload = Workload("custom", Fixed(10), Fixed(11))
    schedule = poisson_schedule(workload, 20.0, 80.0, derive_seed(seed, "trend"))
    return [steady(at_s, tpot_s=0.08 + growth_s * at_s / 600) for at_s in schedule.arrival_s]


def test_a_steady_state_shows_no_trend_and_a_growing_queue_does() -> None:
    assert [stationary(load(0.0, seed), WINDOW, 90.0) for seed in range(20)].count(True) >= 19
    assert [stationary(load(3.0, seed), WINDOW, 90.0) for seed in range(20)] == [False] * 20


def test_a_small_change_is_none_however_certain() -> None:
    traces = [steady(i / 100, tpot_s=0.08 + 0.1 * i / 100 / 600) for i in range(8000)]
    assert stationary(traces, WINDOW, 90.0) is True


@pytest.mark.parametrize(
    "traces", [[], [steady(10.0 + i, tpot_s=1.0) for i in range(60)]], ids=["empty", "short"]
)
def test_a_window_of_a_few_stays_says_nothing(traces: list[RequestTrace]) -> None:
    assert stationary(traces, WINDOW, 90.0) is None
