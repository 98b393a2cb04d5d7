"""The true SLO boundary: against a queue whose formula is known, and against published figures."""

import math
from typing import Any

import pytest

from tests.support.steps import plain
from tokenwatt_site.documents.doors import parse_spec
from tokenwatt_site.documents.run import Slo
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.replay import trace_of
from tokenwatt_site.method.truth import Truth, crossing, parabola, truth, truth_of_spec
from tokenwatt_site.method.workloads import WORKLOADS, Fixed, Lognormal, Workload

ONE_TOKEN = Workload("one token", Fixed(100), Fixed(1))


def waits_longer(load: float, services: float) -> float:
    """Return P(wait > services × service time) of an M/D/1 queue (Erlang 1909)."""
    total = 0.0
    for k in range(math.floor(services) + 1):
        x = load * (k - services)
        total += x**k / math.factorial(k) * math.exp(-x)
    return 1 - (1 - load) * total


def test_the_formula_of_the_queue_on_a_case_worked_out_by_hand() -> None:
    """At half load half the arrivals wait at all, and 1 - √e/2 longer than one service time."""
    assert waits_longer(0.5, 0.0) == pytest.approx(0.5)
    assert waits_longer(0.5, 1.0) == pytest.approx(1 - math.sqrt(math.e) / 2)


@pytest.mark.no_cover  # a minute of virtual time; shorter streams cover the code
def test_one_request_at_a_time_is_a_queue_whose_boundary_is_known() -> None:
    """One token an answer, one sequence, constant steps: M/D/1. TTFT = wait + service."""
    shape = plain(max_sequences=1, budget_tokens=100)
    service_s = 1e-3 + 10e-3 + 1e-3 + 5e-6  # fixed, weights, prompt, attention
    low, high = 0.01, 0.99
    while high - low > 1e-9:
        load = (low + high) / 2
        low, high = (low, load) if waits_longer(load, 4.0) > 0.01 else (load, high)
    found = truth(
        shape,
        ONE_TOKEN,
        Slo(ttft_p99_ms=5000 * service_s, tpot_p99_ms=1.0),
        seeds=4,
        requests=15_000,
    )
    assert found.rate_rps == pytest.approx(low / service_s, rel=0.015)
    assert found.lo_rps < low / service_s < found.hi_rps
    assert found.bound_by == "ttft"
    assert len(found.seed_rates_rps) == 4


def test_the_share_that_is_larger_binds() -> None:
    """Long answers slow each other down long before anyone waits."""
    long_answers = Workload("long", Fixed(10), Fixed(30))
    limits = Slo(ttft_p99_ms=10_000, tpot_p99_ms=15.0)
    found = truth(plain(), long_answers, limits, seeds=2, requests=3000)
    assert found.bound_by == "tpot"


def test_a_server_that_drifts_is_taken_in_its_final_state() -> None:
    drifting = plain(drift_speed=0.5, drift_after_s=1e9, max_sequences=1, budget_tokens=100)
    slow, quick = (
        truth(shape, ONE_TOKEN, Slo(ttft_p99_ms=60, tpot_p99_ms=1), seeds=2, requests=3000)
        for shape in (drifting, plain(max_sequences=1, budget_tokens=100))
    )
    assert slow.rate_rps < 0.6 * quick.rate_rps


@pytest.mark.parametrize("ttft_p99_ms", [1e-3, 1e12])
def test_limits_without_a_boundary_are_refused(ttft_p99_ms: float) -> None:
    limits = Slo(ttft_p99_ms=ttft_p99_ms, tpot_p99_ms=1e12)
    with pytest.raises(UsageError, match="no SLO boundary between"):
        truth(plain(), ONE_TOKEN, limits, seeds=2, requests=1000)


def test_progress_names_the_neighbourhood_and_every_seed() -> None:
    told: list[tuple[int, float]] = []
    limits = Slo(ttft_p99_ms=60, tpot_p99_ms=1)
    shape = plain(max_sequences=1, budget_tokens=100)
    found = truth(
        shape, ONE_TOKEN, limits, seeds=2, requests=3000, progress=lambda *seen: told.append(seen)
    )
    assert [seed for seed, _ in told] == [0, 1, 2]
    assert tuple(rate_rps for _, rate_rps in told[1:]) == found.seed_rates_rps


def spec(**engine: Any) -> Any:
    return parse_spec(
        {
            "name": "t",
            "engine": {"endpoint": "simulator:"} | engine,
            "model": {"name": "m"},
            "slo": {"ttft_p99_ms": 1000, "tpot_p99_ms": 20},
            "workload": {
                "trace": None,
                "input_tokens": {"fixed": 32},
                "output_tokens": {"fixed": 16},
            },
        }
    )


def test_a_spec_names_shape_workload_and_limits() -> None:
    """The profile and its overrides, the lengths and the limits all move the boundary."""
    quick = {"seeds": 2, "requests": 2000}
    asked = {"profile": "demo", "overrides": {"noise_sd": 0, "meter_gain": 1.1}}
    found = truth_of_spec(spec(simulator=asked), **quick)
    direct = truth(
        shape_of("demo", {"noise_sd": 0}),
        Workload("custom", Fixed(32), Fixed(16)),
        Slo(ttft_p99_ms=1000, tpot_p99_ms=20),
        **quick,
    )
    assert found == direct


def test_the_truth_of_another_server_is_not_known() -> None:
    with pytest.raises(UsageError, match=r"http://127.0.0.1:8000/v1 can't be computed"):
        truth_of_spec(spec(endpoint="http://127.0.0.1:8000/v1"))


def test_the_truth_of_recorded_arrivals_is_not_known() -> None:
    text = b"".join(b'{"t_s": %d, "input_tokens": 9, "output_tokens": 9}\n' % t for t in range(9))
    trace = trace_of(TraceFile("t.jsonl", text))
    asked = spec().model_dump() | {"workload": {"trace": "t.jsonl", "timestamps": "rescaled"}}
    with pytest.raises(UsageError, match="that of Poisson arrivals"):
        truth_of_spec(parse_spec(asked), trace=trace)


def test_parabola_gives_back_its_coefficients() -> None:
    y = [3.0 + 0.5 * x - 0.25 * (x * x - 2) for x in (-2, -1, 0, 1, 2)]
    assert parabola(y) == pytest.approx((3.0, 0.5, -0.25))


@pytest.mark.parametrize(
    "level,rise,bend,x",
    [
        (-1.0, 2.0, 0.0, 0.5),  # a line
        (-1.0, 1.0, 0.1, (-1 + math.sqrt(1.48)) / 0.2),  # the root on the rising side
        (-50.0, 1.0, 0.0, 8.0),  # far off: a long step, not a leap
        (50.0, 1.0, 0.0, -8.0),
        (-6.0, 0.0, 0.0, 8.0),  # no miss at any of the rates
        (4.6, 0.0, 0.0, -8.0),  # nothing but misses
        (3.0, 0.5, 1.0, -6.0),  # a parabola that never gets there: its line
    ],
)
def test_crossing(level: float, rise: float, bend: float, x: float) -> None:
    assert crossing(level, rise, bend) == pytest.approx(x)


def test_short_streams_find_the_demo_s_boundary_roughly() -> None:
    """Five streams of 100,000 requests give 62.5 requests/s, 95 % interval 61.5 to 63.5."""
    limits = Slo(ttft_p99_ms=2000, tpot_p99_ms=25)
    answers = Workload("demo", Fixed(32), Fixed(16))
    found = truth(shape_of("demo"), answers, limits, seeds=3, requests=3000)
    assert found.rate_rps == pytest.approx(62.5, rel=0.08)
    assert found.bound_by == "tpot"


# From an independent program for the same model, 400,000 s at each of six rates, with the joint
# miss. The intervals here are about 1.5 % wide on either side.
PUBLISHED = {"cal": 5.608, "d8": 6.288, "hard": 3.611}


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_truths_agree_with_published_ones(name: str) -> None:
    found = truth(shape_of(name), WORKLOADS["chat-mix-v1"], Slo(ttft_p99_ms=2000, tpot_p99_ms=50))
    assert found.rate_rps == pytest.approx(PUBLISHED[name], rel=0.015)
    assert found.bound_by == ("ttft" if name == "hard" else "tpot")


@pytest.mark.slow
def test_the_truth_of_long_prompts_is_bound_by_ttft() -> None:
    long_prompts = Workload("pref", Lognormal(3000, 12_000, 24_000), Lognormal(32, 128, 256))
    limits = Slo(ttft_p99_ms=2000, tpot_p99_ms=300)
    found: Truth = truth(shape_of("pref"), long_prompts, limits)
    # the published one counts a miss of either limit, which matters more here
    assert found.rate_rps == pytest.approx(3.687, rel=0.04)
    assert found.bound_by == "ttft"
