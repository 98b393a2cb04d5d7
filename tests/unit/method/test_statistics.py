import math

import pytest

from tokenwatt_site.method.statistics import (
    mean_interval,
    nearest_rank,
    t95,
    variance_band_pct,
    wilson,
)


@pytest.mark.parametrize(
    "n, q, rank",
    [
        (100, 0.99, 99),
        (101, 0.99, 100),
        (300, 0.99, 297),
        (99, 0.99, 99),
        (100, 0.07, 7),
        (1, 0.5, 1),
        (2, 0.5, 1),
        (3, 0.5, 2),
        (5, 0.0, 1),
        (5, 1.0, 5),
    ],
)
def test_nearest_rank_is_the_value_of_rank_q_n_rounded_up(n: int, q: float, rank: int) -> None:
    assert nearest_rank(range(1, n + 1), q) == rank


@pytest.mark.parametrize(
    "n, quantile",
    [
        (2, 12.706205),
        (3, 4.302653),
        (4, 3.182446),
        (5, 2.776445),
        (6, 2.570582),
        (10, 2.262157),
        (11, 2.228139),
        (30, 2.045230),
        (31, 2.042272),
        (101, 1.983972),
        (121, 1.979930),
        (200, 1.971957),
    ],
)
def test_t_quantiles_are_those_of_the_tables(n: int, quantile: float) -> None:
    assert t95(n) == pytest.approx(quantile, abs=1e-6)


def test_mean_and_half_width() -> None:
    mean, half = mean_interval([10.0, 12.0, 11.0])
    assert mean == 11.0
    assert half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)


def test_one_value_has_no_half_width() -> None:
    assert mean_interval([5.0]) == (5.0, None)


def test_the_variance_band_is_the_half_width_in_percent_of_the_mean() -> None:
    assert variance_band_pct([10.0, 12.0, 11.0]) == pytest.approx(22.58, abs=0.01)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [0.0, 0.0, 0.0]])
def test_there_is_no_band_of_too_few_or_of_nothing(values: list[float]) -> None:
    assert variance_band_pct(values) is None


@pytest.mark.parametrize(
    "hits, n, low, high",
    [(45, 50, 0.7864, 0.9565), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilson(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
