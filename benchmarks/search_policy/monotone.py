"""A rising curve through noisy points: least squares among rising values, then a monotone cubic."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_EPSILON = 1e-9
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Curve:
    """Values and slopes at points; between two of them the cubic of Hermite."""

    xs: Sequence[float]
    levels: Sequence[float]
    """The rising values nearest to the points', with runs of equal ones."""
    ys: Sequence[float]
    """The same, a trace apart, so that the curve rises strictly."""
    slopes: Sequence[float]

    @classmethod
    def through(cls, xs: Sequence[float], values: Sequence[float]) -> "Curve":
        """Fit a curve to points with ascending x."""
        levels = rising(values)
        step = _EPSILON * ((levels[-1] - levels[0]) or 1.0)
        ys = [level + i * step for i, level in enumerate(levels)]
        return cls(xs, levels, ys, _slopes(xs, ys))

    def at(self, x: float) -> float:
        """Return the curve's value between its ends."""
        i = max(k for k in range(len(self.xs) - 1) if k == 0 or self.xs[k] <= x)
        width = self.xs[i + 1] - self.xs[i]
        t = (x - self.xs[i]) / width
        return (
            (1 + 2 * t) * (1 - t) ** 2 * self.ys[i]
            + t * (1 - t) ** 2 * width * self.slopes[i]
            + t * t * (3 - 2 * t) * self.ys[i + 1]
            + t * t * (t - 1) * width * self.slopes[i + 1]
        )

    def root(self, low: float, high: float) -> float | None:
        """Return where the curve crosses 0 between two points; None if it doesn't."""
        if self.at(low) > 0 or self.at(high) < 0:
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.at(middle) > 0 else (middle, high)
        return low


def rising(values: Sequence[float]) -> list[float]:
    """Return the rising values with the least sum of squared distances: pool what falls."""
    pools: list[tuple[float, int]] = []
    for value in values:
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, m) = pools[-2:]
            pools[-2:] = [((a * n + b * m) / (n + m), n + m)]
    return [mean for mean, n in pools for _ in range(n)]


def _slopes(xs: Sequence[float], ys: Sequence[float]) -> list[float]:
    """Return slopes that keep the curve rising: weighted harmonic means of the secants."""
    widths = [b - a for a, b in pairwise(xs)]
    secants = [(b - a) / w for (a, b), w in zip(pairwise(ys), widths, strict=True)]
    if len(secants) == 1:
        return [secants[0]] * 2
    inner = []
    for (h0, h1), (d0, d1) in zip(pairwise(widths), pairwise(secants), strict=True):
        w0, w1 = 2 * h1 + h0, h1 + 2 * h0
        inner.append(0.0 if d0 * d1 <= 0 else (w0 + w1) / (w0 / d0 + w1 / d1))
    first = _end(widths[:2], secants[:2])
    last = _end(widths[:-3:-1], secants[:-3:-1])
    return [first, *inner, last]


def _end(widths: Sequence[float], secants: Sequence[float]) -> float:
    """Return the slope at an end by three points, held between 0 and three times the secant."""
    (h0, h1), (d0, d1) = widths, secants
    slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
    if slope * d0 <= 0:
        return 0.0
    return 3 * d0 if d0 * d1 <= 0 and abs(slope) > 3 * abs(d0) else slope
