"""The uncertainty of J/token: its parts, how they add up, what is said where one is unknown."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.support.windows import stream, window_of
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.energy_report import energy
from tokenwatt_site.method.measured_window import MeasuredWindow, MeterWindow
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.samples import PowerSample


def measured(index: int, watts: float, *, counter: bool = False, **facts: Any) -> MeasuredWindow:
    """Return a window of 10 s with 10 readings a second around ``watts``."""
    rng = random.Random(index)  # noqa: S311
    samples = [
        PowerSample(
            k / 10,
            "a",
            power_w=None if counter else watts + rng.gauss(0, 20),
            energy_j=watts * k / 10 if counter else None,
        )
        for k in range(-20, 121)
    ]
    read = energy_window(samples, ["a"], 0.0, 10.0, 10)
    meter = MeterFacts("board", ("a",), **({"hz": 10, "gain_pct": 1.0} | facts))
    return replace(window_of(index, "confirm", stream()), meters=(MeterWindow(meter, read),))


def test_one_window_has_gain_sampling_and_edges() -> None:
    parts = energy([measured(0, 500)])["uncertainty"]
    assert set(parts) == {"gain_pct", "sampling_pct", "edges_pct", "combined_pct"}
    assert parts["sampling_pct"] == pytest.approx(100 * 1.98 * 20 / 500 / 10, rel=0.3)
    assert parts["combined_pct"] == pytest.approx(
        math.hypot(1.0, parts["sampling_pct"], parts["edges_pct"])
    )


def test_sampling_shrinks_with_more_windows_and_the_gain_does_not() -> None:
    one = energy([measured(0, 500)])["uncertainty"]
    four = energy([measured(k, 500) for k in range(4)])["uncertainty"]
    assert four["sampling_pct"] == pytest.approx(one["sampling_pct"] / 2, rel=0.2)
    assert four["gain_pct"] == one["gain_pct"] == 1.0


def test_repeats_that_spread_more_than_sampling_stand_for_it() -> None:
    parts = energy([measured(k, watts) for k, watts in enumerate((450, 500, 550))])["uncertainty"]
    assert parts["repeats_pct"] == pytest.approx(100 * 4.303 * 50 / math.sqrt(3) / 500, rel=0.1)
    assert parts["combined_pct"] == pytest.approx(
        math.hypot(1.0, parts["repeats_pct"], parts["edges_pct"])
    )


def test_a_counter_has_no_sampling() -> None:
    parts = energy([measured(0, 500, counter=True)])["uncertainty"]
    assert set(parts) == {"gain_pct", "edges_pct", "combined_pct"}
    assert parts["combined_pct"] == pytest.approx(1.0)


def test_without_a_gain_nothing_is_combined_and_it_says_so() -> None:
    document = energy([measured(0, 500, gain_pct=None)])
    assert set(document["uncertainty"]) == {"sampling_pct", "edges_pct"}
    assert document["reasons"] == ["gain_unknown", "samples_only"]
    assert document["valid"]


@pytest.mark.parametrize("averaged_s, said", [(0.0, True), (0.5, True), (1.0, False)])
def test_rare_readings_of_the_moment_are_told_of(averaged_s: float, *, said: bool) -> None:
    document = energy([measured(0, 500, hz=1, averaged_s=averaged_s)])
    assert ("slow_sampling" in document["reasons"]) is said


def test_a_square_wave_in_time_with_its_readings_is_told_of() -> None:
    """1 Hz against a 1 Hz square wave: 794 W read, 594 W used, and no spread to see it by."""
    window = measured(0, 500, hz=1)
    samples = [PowerSample(float(k), "a", power_w=794.0) for k in range(-3, 14)]
    read = energy_window(samples, ["a"], 0.0, 10.0, 1)
    meters = (MeterWindow(window.meters[0].facts, read),)
    document = energy([replace(window, meters=meters)])
    assert document["reasons"] == ["constant_power", "samples_only", "slow_sampling"]
    assert "combined_pct" not in document["uncertainty"]


def test_an_invalid_figure_has_no_uncertainty() -> None:
    window = measured(0, 500)
    broken = energy_window([], ["a"], 0.0, 10.0, 10)
    document = energy([replace(window, meters=(MeterWindow(window.meters[0].facts, broken),))])
    assert "uncertainty" not in document
