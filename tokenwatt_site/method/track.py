"""A quantity over time: known at a meter's readings, straight between them."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self


def usable(value: float | None) -> bool:
    """Return whether a reading is one: neither missing, nor NaN, infinite or negative."""
    return value is not None and math.isfinite(value) and value >= 0


@dataclass(frozen=True, slots=True)
class Track:
    """Readings of one quantity of one device, by time; any unit."""

    times_s: list[float]
    """Strictly ascending."""
    values: list[float]
    areas: list[float]
    """Area below the line from the first reading to each, in the unit times seconds."""

    @classmethod
    def of(cls, readings: Iterable[tuple[float, float]]) -> Self:
        """Return the track of (time, value) pairs in any order; the first at a time counts."""
        points: dict[float, float] = {}
        for time_s, value in sorted(readings, key=lambda reading: reading[0]):
            points.setdefault(time_s, value)
        steps = ((u - t) * (points[t] + points[u]) / 2 for t, u in pairwise(points))
        return cls(list(points), list(points.values()), list(accumulate(steps, initial=0.0)))

    def brackets(self, w0_s: float, w1_s: float) -> bool:
        """Return whether there is a reading at or before ``w0_s`` and one at or after ``w1_s``."""
        return bool(self.times_s) and self.times_s[0] <= w0_s and w1_s <= self.times_s[-1]

    def at(self, time_s: float) -> float:
        """Return the value at a time between the first and the last reading."""
        return self._between(self._left(time_s), time_s)

    def area(self, w0_s: float, w1_s: float) -> float:
        """Return the area below the line: the trapezoid rule with interpolation at both edges."""
        return self._area_to(w1_s) - self._area_to(w0_s)

    def around(self, w0_s: float, w1_s: float) -> tuple[list[float], list[float]]:
        """Return times and values of the readings in the window and the one on each side of it."""
        first, last = self._around(w0_s, w1_s)
        return self.times_s[first:last], self.values[first:last]

    def longest_step_s(self, w0_s: float, w1_s: float) -> float:
        """Return the longest time between neighbouring readings that reaches into the window."""
        first, last = self._around(w0_s, w1_s)
        return max((u - t for t, u in pairwise(self.times_s[first:last])), default=0.0)

    def falls(self, w0_s: float, w1_s: float) -> bool:
        """Return whether the value ever decreases between the readings around the window."""
        first, last = self._around(w0_s, w1_s)
        return any(v < u for u, v in pairwise(self.values[first:last]))

    def _around(self, w0_s: float, w1_s: float) -> tuple[int, int]:
        """Return the slice of the readings in the window and the one on each side of it."""
        return max(bisect_right(self.times_s, w0_s) - 1, 0), bisect_left(self.times_s, w1_s) + 1

    def _left(self, time_s: float) -> int:
        return max(bisect_right(self.times_s, time_s) - 1, 0)

    def _between(self, left: int, time_s: float) -> float:
        if left + 1 == len(self.times_s):
            return self.values[left]
        t, u = self.times_s[left], self.times_s[left + 1]
        x, y = self.values[left], self.values[left + 1]
        return x + (y - x) * ((time_s - t) / (u - t))

    def _area_to(self, time_s: float) -> float:
        left = self._left(time_s)
        mean = (self.values[left] + self._between(left, time_s)) / 2
        return self.areas[left] + mean * (time_s - self.times_s[left])
