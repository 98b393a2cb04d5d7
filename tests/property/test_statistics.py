from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.method.statistics import (
    mean_interval,
    nearest_rank,
    t95,
    variance_band_pct,
    wilson,
)

VALUES = st.lists(st.floats(1, 1e6), min_size=2, max_size=60)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=400), st.floats(allow_nan=False))
def test_p99_keeps_a_limit_exactly_when_at_most_one_percent_are_over_it(
    values: list[float], limit: float
) -> None:
    over = sum(value > limit for value in values)
    assert (nearest_rank(sorted(values), 0.99) <= limit) == (100 * over <= len(values))


@given(st.integers(2, 199))
def test_t_quantiles_fall_towards_the_normal_one(n: int) -> None:
    assert t95(n) > t95(n + 1) > 1.9599


@given(VALUES, st.floats(0.1, 10))
def test_intervals_scale_with_the_values(values: list[float], factor: float) -> None:
    mean, half = mean_interval(values)
    scaled_mean, scaled_half = mean_interval([factor * value for value in values])
    assert half is not None
    assert scaled_half is not None
    assert abs(scaled_mean - factor * mean) <= 1e-9 * scaled_mean
    assert abs(scaled_half - factor * half) <= 1e-6 * scaled_mean


@given(VALUES)
def test_the_band_is_never_negative(values: list[float]) -> None:
    band = variance_band_pct(values)
    assert (band is None) == (len(values) < 3)
    assert band is None or band >= 0


@given(st.integers(1, 2000), st.data())
def test_wilson_holds_the_share_and_mirrors(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    mirrored_low, mirrored_high = wilson(n - hits, n)
    assert abs(low + mirrored_high - 1) < 1e-9
    assert abs(high + mirrored_low - 1) < 1e-9
