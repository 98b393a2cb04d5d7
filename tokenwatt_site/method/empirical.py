"""Lengths drawn from a list: a user's own, or those of a recorded trace."""

import math
import random
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from tokenwatt_site.method.rng import open_unit


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """Each of ``values``, in tokens, is drawn with its share of the weights."""

    values: "array[int]"
    """Ascending."""
    until: "array[float]"
    """Sums of the weights up to each value."""
    words: str = ""
    """Where the values are from."""

    @classmethod
    def of(
        cls, values: Sequence[int], weights: Sequence[float] | None = None, words: str = ""
    ) -> Self:
        """Take one value or more, and as many weights; None weighs all alike."""
        pairs = sorted(zip(values, weights or [1.0] * len(values), strict=True))
        return cls(
            array("q", (value for value, _ in pairs)),
            array("d", accumulate(weight for _, weight in pairs)),
            words,
        )

    def draw(self, source: random.Random) -> int:
        """Return one length; each request takes exactly one draw."""
        return self.quantile(open_unit(source))

    def quantile(self, share: float) -> int:
        """Return the length that a share of the weights, 0 to 1, lies under."""
        at = bisect_right(self.until, share * self.until[-1])
        return self.values[min(at, len(self.values) - 1)]

    def mean(self) -> float:
        """Return the mean length in tokens."""
        before = 0.0
        parts: list[float] = []
        for value, until in zip(self.values, self.until, strict=True):
            parts.append(value * (until - before))
            before = until
        return math.fsum(parts) / before

    def most(self) -> int:
        """Return the longest length in tokens."""
        return self.values[-1]

    def describe(self) -> str:
        """Return the distribution in words for readers."""
        where = self.words or f"of {len(self.values):,} given lengths"
        return f"median {self.quantile(0.5):,} · p90 {self.quantile(0.9):,}, {where}"
