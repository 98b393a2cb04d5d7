"""Axes end on round ticks and hold what they must."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.draw import spread


@pytest.mark.parametrize(
    "low, high, ticks",
    [
        (0, 88.4, "0 20 40 60 80 100"),
        (0, 8, "0 2 4 6 8"),
        (0, 2.45, "0.0 0.5 1.0 1.5 2.0 2.5"),
        (0, 3368, "0 1,000 2,000 3,000 4,000"),
        (0, 123_456, "0 25k 50k 75k 100k 125k"),
        (0, 0, "0.0 0.2 0.4 0.6 0.8 1.0"),
    ],
)
def test_a_linear_axis_has_round_ticks(low: float, high: float, ticks: str) -> None:
    assert " ".join(tick.text for tick in scale.linear(low, high).ticks) == ticks


@pytest.mark.parametrize(
    "low, high, ticks",
    [
        (421, 6910, "200 500 1,000 2,000 5,000 10,000"),
        (0.05, 5, "0.05 0.1 0.2 0.5 1 2 5"),
        (1, 5000, "1 10 100 1,000 5,000"),
    ],
)
def test_a_logarithmic_axis_has_ones_twos_and_fives(low: float, high: float, ticks: str) -> None:
    assert " ".join(tick.text for tick in scale.logarithmic(low, high).ticks) == ticks


@given(st.floats(0, 1e9), st.floats(1e-6, 1e9))
def test_an_axis_holds_its_values_and_begins_and_ends_on_a_tick(low: float, size: float) -> None:
    axis = scale.linear(low, low + size, zero=False)
    assert axis.lo <= low + 1e-9 * abs(low)
    assert axis.hi >= (low + size) * (1 - 1e-9)
    assert axis.at(axis.lo) == 0
    assert axis.at(axis.hi) == pytest.approx(1)
    assert 2 <= len(axis.ticks) <= 8


@given(st.lists(st.floats(0, 1), max_size=8))
def test_labels_are_pushed_apart_and_stay_inside(places: list[float]) -> None:
    apart = spread(sorted(places), 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in pairwise(apart))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in apart)


def test_labels_that_are_apart_stay_where_they_are() -> None:
    assert spread([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
