from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.workloads import Lognormal, Workload

RATES = st.floats(0.1, 50)
SEEDS = st.integers(-(2**70), 2**70)
WORKLOAD = Workload("custom", Lognormal(30, 90, 200), Lognormal(10, 20, 40))


@given(RATES, st.floats(0, 60), SEEDS)
def test_arrivals_ascend_within_the_horizon_and_lengths_stay_in_their_limits(
    rate_rps: float, horizon_s: float, seed: int
) -> None:
    schedule = poisson_schedule(WORKLOAD, rate_rps, horizon_s, derive_seed(seed, "schedule"))
    times = list(schedule.arrival_s)
    assert times == sorted(times)
    assert all(0 <= t < horizon_s for t in times)
    assert all(1 <= n <= 200 for n in schedule.input_tokens)
    assert all(1 <= n <= 40 for n in schedule.output_tokens)
    assert len(schedule) == len(schedule.input_tokens) == len(schedule.output_tokens)


@given(RATES, st.floats(0, 30), st.floats(0, 30), SEEDS)
def test_a_longer_horizon_goes_on_with_the_same_stream(
    rate_rps: float, one_s: float, more_s: float, seed: int
) -> None:
    short = poisson_schedule(WORKLOAD, rate_rps, one_s, derive_seed(seed, "schedule"))
    long = poisson_schedule(WORKLOAD, rate_rps, one_s + more_s, derive_seed(seed, "schedule"))
    n = len(short)
    assert long.arrival_s[:n] == short.arrival_s
    assert long.input_tokens[:n] == short.input_tokens
    assert long.output_tokens[:n] == short.output_tokens
