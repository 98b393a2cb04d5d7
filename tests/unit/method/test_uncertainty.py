"""The stated 95 % intervals against powers whose energy is known."""

import math
import random
from collections.abc import Callable
from itertools import accumulate

import pytest

from tokenwatt_site.method.span import Span
from tokenwatt_site.method.track import Track
from tokenwatt_site.method.uncertainty import counted_doubt, sampled_doubt, step_s

GRID_S = 0.02
DRAWS = 300
Power = Callable[[random.Random, int], list[float]]


def drifting(tau_s: float) -> Power:
    """An AR(1) process around 500 W."""

    def watts(rng: random.Random, n: int) -> list[float]:
        kept, now, found = math.exp(-GRID_S / tau_s), rng.gauss(0, 80), []
        new = 80 * math.sqrt(12 * (1 - kept * kept))
        for _ in range(n):
            found.append(500 + now)
            now = kept * now + new * (rng.random() - 0.5)
        return found

    return watts


def square(half_s: float) -> Power:
    """794 and 394 W in turn, each for about ``half_s``."""

    def watts(rng: random.Random, n: int) -> list[float]:
        found: list[float] = []
        high, left_s = rng.random() < 0.5, half_s * rng.random()
        while len(found) < n:
            run = max(round(left_s / GRID_S), 1)
            found += [794.0 if high else 394.0] * run
            high, left_s = not high, half_s * rng.uniform(0.7, 1.3)
        return found[:n]

    return watts


POWERS: dict[str, Power] = {f"drifting {s}": drifting(s) for s in (0.02, 0.3, 5)}
POWERS |= {f"square {s}": square(s) for s in (1, 7)}


def draw(power: Power, hz: float, step: float | None, rng: random.Random) -> tuple[float, float]:
    """Return error and stated half-width of one window; ``step`` is that of a counter."""
    seconds = (60 if hz >= 1 else 150) + rng.random() * max(1, 1 / hz)
    before_s = max(2 / hz, 1)
    end_s = seconds + 2 * before_s + 1
    watts = power(rng, int(end_s / GRID_S) + 2)
    joules = list(accumulate((w * GRID_S for w in watts), initial=0.0))

    def energy(t_s: float) -> float:
        i = int(t_s / GRID_S)
        return joules[i] + (t_s - i * GRID_S) * watts[i]

    w0_s = before_s + rng.random() / hz
    span = Span(w0_s, w0_s + seconds, hz)
    phase_s, first_s = rng.random() * (step or 0), rng.random() / hz
    readings: list[tuple[float, float]] = []
    while (t_s := first_s + len(readings) / hz + abs(rng.gauss(0, 0.003))) < end_s - 0.02:
        if step is None:
            readings.append((t_s, watts[int(t_s / GRID_S)] + rng.gauss(0, 0.3)))
        else:
            told_s = math.floor((t_s - phase_s) / step) * step + phase_s
            readings.append((t_s, energy(max(told_s, 0.0))))
    track = Track.of(readings)
    true_j = energy(span.w1_s) - energy(span.w0_s)
    if step is None:
        doubt = sampled_doubt([track], span)
        assert doubt.sampling_j is not None
        assert doubt.edges_j is not None
        half_j = math.hypot(doubt.sampling_j, doubt.edges_j)
        return track.area(span.w0_s, span.w1_s) - true_j, half_j
    edges_j = counted_doubt([track], span).edges_j
    assert edges_j is not None
    return track.at(span.w1_s) - track.at(span.w0_s) - true_j, edges_j


def covered_pct(power: str, hz: float, step: float | None) -> float:
    found = [draw(POWERS[power], hz, step, random.Random(seed)) for seed in range(DRAWS)]  # noqa: S311
    return 100 * sum(abs(error) <= half for error, half in found) / DRAWS


@pytest.mark.parametrize(
    "power, hz, step",
    [
        ("drifting 0.02", 10, None),
        ("drifting 5", 10, None),
        ("square 1", 10, None),
        ("square 7", 10, None),
        ("drifting 0.02", 1, None),
        ("drifting 5", 1, None),
        ("drifting 0.3", 0.1, None),
        ("square 7", 10, 1.0),
    ],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(
    power: str, hz: float, step: float | None
) -> None:
    assert 90 <= covered_pct(power, hz, step) <= 99


@pytest.mark.parametrize(
    "power, hz, step",
    [
        ("drifting 0.3", 10, 0.02),
        ("square 7", 10, 0.1),
        ("drifting 5", 10, 1.0),
        ("square 1", 1, None),
        ("square 7", 1, 0.02),
    ],
)
def test_it_holds_the_truth_more_often_where_the_lag_is_a_bound(
    power: str, hz: float, step: float | None
) -> None:
    assert covered_pct(power, hz, step) >= 90


def test_a_counters_step_is_found_in_its_readings() -> None:
    readings = [(k / 10, 500.0 * math.floor(k / 10 + 1e-9)) for k in range(700)]
    span = Span(2.0, 62.0, 10)
    assert step_s(Track.of(readings), span) == pytest.approx(1.0)
    half_j = counted_doubt([Track.of(readings)], span).edges_j
    assert half_j == pytest.approx(1.96 * 500 / math.sqrt(6), rel=0.01)


def test_a_counter_that_moves_evenly_has_sharp_edges() -> None:
    track = Track.of((k / 10, 500.0 * k / 10) for k in range(700))
    assert counted_doubt([track], Span(2.0, 62.0, 10)).edges_j == pytest.approx(0, abs=1e-6)


def test_a_scraped_counter_lags_twice() -> None:
    readings = [(float(k), 500.0 * 30 * (k // 30)) for k in range(700)]
    half_j = counted_doubt([Track.of(readings)], Span(35.0, 635.0, 1)).edges_j
    assert half_j == pytest.approx(1.96 * 500 * 30 / math.sqrt(3), rel=0.05)


def test_readings_that_never_change_tell_nothing() -> None:
    track = Track.of((k / 10, 500.0) for k in range(700))
    assert sampled_doubt([track], Span(2.0, 62.0, 10)).sampling_j is None


def test_devices_that_change_together_are_unsure_together() -> None:
    rng = random.Random(1)  # noqa: S311
    track = Track.of((k / 10, 500 + rng.gauss(0, 50)) for k in range(700))
    span = Span(2.0, 62.0, 10)
    one, two = (sampled_doubt([track] * n, span).sampling_j for n in (1, 2))
    assert one is not None
    assert two == pytest.approx(2 * one)
