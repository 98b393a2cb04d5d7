"""The statistics that are published: nearest rank, t and Wilson intervals, variance band."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

_Z95 = NormalDist().inv_cdf(0.975)
_BAND_MIN = 3
_T_ERROR = 1e-12
_T_SHARE = 0.95


def nearest_rank(ordered: Sequence[float], q: float) -> float:
    """Return the value of rank ⌈q·n⌉, counted from 1, of ``ordered``, ascending and not empty.

    A value that was observed, never an interpolation: so "p99 ≤ limit" is the same as "at most 1 %
    are over the limit".
    """
    rank = math.ceil(round(q * len(ordered), 9))  # 0.07 · 100 is 7.000000000000001
    return ordered[max(rank, 1) - 1]


@lru_cache(maxsize=256)
def t95(n: int) -> float:
    """Return the two-sided 95 % quantile of Student's t for ``n`` ≥ 2 values (n − 1 degrees).

    Found by bisection on the finite series of the distribution function for whole degrees of
    freedom (Abramowitz and Stegun 26.7.3, 26.7.4).
    """
    low, high = 0.0, 13.0  # 12.71 is the quantile of one degree, the largest
    while high - low > _T_ERROR:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_share_within(middle, n - 1) < _T_SHARE else (low, middle)
    return high


def _t_share_within(t: float, degrees: int) -> float:
    """Return P(|T| ≤ t)."""
    theta = math.atan(t / math.sqrt(degrees))
    cos2 = math.cos(theta) ** 2
    odd = degrees % 2
    term = math.cos(theta) if odd else 1.0
    total = 0.0
    for i in range(degrees // 2):
        total += term
        term *= cos2 * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    series = math.sin(theta) * total
    return (theta + series) * 2 / math.pi if odd else series


def mean_interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and half-width of its 95 % t interval; no half-width for one value."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return mean, None
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return mean, t95(n) * spread / math.sqrt(n)


def variance_band_pct(values: Sequence[float]) -> float | None:
    """Return the half-width of the 95 % t interval over repeats in percent of their mean.

    None under three repeats, whose smallest and largest say more, and for a mean that isn't
    positive.
    """
    if len(values) < _BAND_MIN:
        return None
    mean, half = mean_interval(values)
    return 100 * half / mean if half is not None and mean > 0 else None


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of ``hits`` of ``n`` ≥ 1 independent trials."""
    share, z2 = hits / n, _Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
