"""How often a meter's value is really new, found from its readings."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_MIN_CHANGES = 3
_EVERY_READING = 1.5
"""Changes no further apart than this many readings came with every reading."""


@dataclass(frozen=True, slots=True)
class UpdatePeriod:
    """The time between new values."""

    seconds: float
    at_most: bool
    """Every reading was new: the period is this or shorter."""


def update_period(times_s: Sequence[float], values: Sequence[float]) -> UpdatePeriod | None:
    """Return the time between a meter's new values, None where it changed too seldom to tell.

    The median of the times between readings that differ from the one before: a value that comes
    back by chance lengthens one of them, not the median.

    Args:
        times_s: ascending times of the readings.
        values: what was read, power or a running counter.
    """
    pairs = itertools.pairwise(zip(times_s, values, strict=True))
    changes_s = [later_s for (_, before), (later_s, after) in pairs if after != before]
    if len(changes_s) < _MIN_CHANGES:
        return None
    step_s = statistics.median(b - a for a, b in itertools.pairwise(times_s))
    period_s = statistics.median(b - a for a, b in itertools.pairwise(changes_s))
    return UpdatePeriod(period_s, at_most=period_s <= _EVERY_READING * step_s)
