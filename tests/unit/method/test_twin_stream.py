"""The twin's long run: its boundary, how steep it is there, and its own error."""

import math

import pytest

from tests.support.twin_server import MIX, SERVER
from tokenwatt_site.method.twin_player import TwinParams, play_twin
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits
from tokenwatt_site.method.twin_stream import Stream
from tokenwatt_site.method.workloads import Fixed, Workload

LIMITS = Limits(4.0, 0.2)


def stream(requests: int = 4000, seed: int = 5, limits: Limits = LIMITS) -> Stream:
    return Stream(MIX, requests, seed, play_twin, limits)


def test_at_the_boundary_one_in_a_hundred_misses() -> None:
    long_run = stream()
    found = long_run.boundary(SERVER, 0.8)
    there = long_run.steady(SERVER, found.rate_rps)
    assert found.kind == TPOT
    assert there.log_p99(TPOT) == pytest.approx(0, abs=0.01)
    assert there.share_over(TPOT, math.exp(there.log_p99(TPOT))) <= 0.01
    assert there.share_over(TPOT, 0.97) > 0.01 > there.share_over(TPOT, 1.03)
    assert there.share_over(TPOT, 0.5) > 0.2
    again = long_run.boundary(SERVER, 1.03 * found.rate_rps, found)
    assert again.rate_rps == pytest.approx(found.rate_rps, rel=0.02)


def test_elasticity_and_slope_are_those_between_two_rates() -> None:
    long_run = stream()
    found = long_run.boundary(SERVER, 2.6)
    low, high = (long_run.steady(SERVER, found.rate_rps * factor) for factor in (0.96, 1.04))
    span = math.log(1.04 / 0.96)
    assert found.elasticity == pytest.approx(
        (high.log_p99(TPOT) - low.log_p99(TPOT)) / span, rel=0.5
    )
    slope = math.log(high.share_over(TPOT, 1.0) / low.share_over(TPOT, 1.0)) / span
    assert found.slope == pytest.approx(slope, rel=0.5)


def test_a_queue_binds_where_places_are_few() -> None:
    """It begins to grow all at once: the search must not run away."""
    few = TwinParams(48e-3, 4e-4, 0.0, 12e-3, 8e-5, 4e-9, max_sequences=6)
    long_run = stream()
    found = long_run.boundary(few, 8.0)
    assert found.kind == TTFT
    assert long_run.steady(few, found.rate_rps).log_p99(TTFT) == pytest.approx(0, abs=0.1)
    assert found.elasticity > 1


def test_the_error_of_a_stream_is_about_the_scatter_of_streams() -> None:
    found = [stream(4000, seed).boundary(SERVER, 2.7) for seed in range(6)]
    logs = [math.log(each.rate_rps) for each in found]
    mean = sum(logs) / len(logs)
    scatter = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
    told = math.sqrt(sum(each.stream_error**2 for each in found) / len(found))
    assert 0.4 < told / scatter < 2.5


def test_two_replicas_serve_twice_the_rate() -> None:
    two = Stream(MIX, 4000, 5, play_twin, LIMITS, replicas=2)
    one = stream(4000)
    twice = two.boundary(SERVER, 5.2)
    assert twice.rate_rps == pytest.approx(2 * one.boundary(SERVER, 2.6).rate_rps, rel=1e-6)
    steady = one.steady(SERVER, 2.5)
    assert two.steady(SERVER, 5.0).in_flight == pytest.approx(2 * steady.in_flight)


def test_in_flight_is_what_little_s_law_says() -> None:
    steady = stream().steady(SERVER, 1.25)
    drawn = stream()._drawn(rough=False)
    played = play_twin(SERVER, type(drawn[0])("d", [t / 1.25 for t in drawn[0]]), *drawn[1:])
    stay_s = sum(played.last_s) / len(played.last_s) - sum(drawn[0]) / 1.25 / len(drawn[0])
    assert steady.in_flight == pytest.approx(1.25 * stay_s, rel=0.02)


def test_a_rough_look_plays_the_first_part() -> None:
    long_run = stream()
    rough, whole = (long_run.steady(SERVER, 2.2, rough=each) for each in (True, False))
    assert len(rough.scores[TPOT]) == pytest.approx(len(whole.scores[TPOT]) / 4, rel=0.02)


def test_requests_that_are_all_alike_have_a_slope_too() -> None:
    """One prompt, one answer: every score may be the same, and the share jumps."""
    alike = Stream(Workload("alike", Fixed(64), Fixed(2)), 1500, 5, play_twin, LIMITS)
    found = alike.boundary(SERVER, 2.0)
    assert found.slope > 0
    assert math.isfinite(found.stream_error)
