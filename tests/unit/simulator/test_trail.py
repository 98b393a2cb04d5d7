"""The mean power of the last moments, from straight lines of energy."""

import pytest

from tokenwatt_site.simulator.trail import Trail


def test_nothing_is_known_before_any_time_has_passed() -> None:
    assert Trail(0.1).mean_w(0.0, 0.0) is None


def test_a_young_meter_takes_what_time_there_is() -> None:
    assert Trail(0.1).mean_w(0.05, 5.0) == pytest.approx(100)


def test_the_mean_is_that_of_the_span_only() -> None:
    """100 W to 1 s, then 300 W for 40 ms, then 100 W again."""
    trail = Trail(0.1)
    trail.add((0.0, 0.0), (1.0, 100.0))
    trail.add((1.0, 100.0), (1.04, 112.0))
    assert trail.mean_w(1.04, 112.0) == pytest.approx((60 * 100 + 40 * 300) / 100)
    assert trail.mean_w(1.1, 118.0) == pytest.approx((60 * 100 + 40 * 300) / 100)
    assert trail.mean_w(1.12, 120.0) == pytest.approx((80 * 100 + 20 * 300) / 100)
    assert trail.mean_w(1.14, 122.0) == pytest.approx(100)
    assert trail.mean_w(9.0, 908.0) == pytest.approx(100)


def test_a_reading_inside_a_long_step_sees_what_was_before_it() -> None:
    trail = Trail(0.1)
    trail.add((0.0, 0.0), (1.0, 100.0))
    trail.add((1.0, 100.0), (3.0, 700.0))
    assert trail.mean_w(1.05, 115.0) == pytest.approx(200)
    assert trail.mean_w(2.0, 400.0) == pytest.approx(300)


def test_only_the_span_is_kept() -> None:
    trail = Trail(0.1)
    for k in range(10_000):
        trail.add((k / 100, k), ((k + 1) / 100, k + 1.0))
    assert len(trail._points) < 30
    assert trail.mean_w(100.0, 10_000.0) == pytest.approx(100)
