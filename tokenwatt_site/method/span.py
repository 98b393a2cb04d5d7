"""The time that a meter is asked about, and how densely it must have been read."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenwatt_site.method.samples import PowerSample

GAP_PERIODS = 3
GAP_MIN_S = 1.0
MIN_COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class Span:
    """A window [w0, w1] of a meter that is read ``hz`` times a second."""

    w0_s: float
    w1_s: float
    hz: float

    def __post_init__(self) -> None:
        if not self.w0_s < self.w1_s or self.hz <= 0:
            raise ValueError(f"no window: [{self.w0_s}, {self.w1_s}] s at {self.hz} Hz")

    @property
    def seconds(self) -> float:
        """Return the window's length in seconds."""
        return self.w1_s - self.w0_s

    @property
    def gap_s(self) -> float:
        """Return the longest time without a reading that can be bridged: max(3/hz, 1 s)."""
        return max(GAP_PERIODS / self.hz, GAP_MIN_S) + 1e-6  # clocks are kept to a microsecond

    @property
    def expected(self) -> int:
        """Return the deadlines of one device that surely lie in the window, at least one."""
        return max(math.floor(self.seconds * self.hz + 1e-6), 1)

    def near(self, samples: Iterable[PowerSample]) -> list[PowerSample]:
        """Return the samples in the window and those close enough to bracket it."""
        start_s, end_s = self.w0_s - self.gap_s, self.w1_s + self.gap_s
        return [sample for sample in samples if start_s <= sample.t_s <= end_s]

    def holds(self, time_s: float) -> bool:
        """Return whether a time lies in the window, edges included."""
        return self.w0_s <= time_s <= self.w1_s

    def on_time(self, times_s: Sequence[float]) -> int:
        """Return how many of the expected readings there are, ``times_s`` ascending.

        A reading counts when it comes at least half a period after the last one that did, so that
        readings made up for in a burst don't hide the deadlines that were missed.
        """
        count, last_s = 0, -math.inf
        for time_s in times_s:
            if self.holds(time_s) and time_s - last_s >= 0.5 / self.hz:
                count, last_s = count + 1, time_s
        return min(count, self.expected)
