"""Axes with round ticks."""

import math
from collections.abc import Iterable

from tokenwatt_site import units
from tokenwatt_site.publish.charts.chart import Axis, Tick

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_KILO_FROM = 100_000


def step_of(span: float, wanted: int) -> float:
    """Return the smallest round step that divides ``span`` into at most ``wanted`` parts."""
    raw = span / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in _STEPS if step * power >= raw * (1 - 1e-9))


def linear(low: float, high: float, title: str = "", *, parts: int = 5, zero: bool = True) -> Axis:
    """Return an axis that holds ``low`` and ``high``, from 0 where ``zero``, ends on ticks."""
    low = min(low, 0.0) if zero else low
    if high <= low:
        high = low + (abs(low) or 1.0)
    step = step_of(high - low, parts)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if round(step * 10**digits, 6) % 1:  # 2.5, 0.25
        digits += 1
    values = [i * step for i in range(first, last + 1)]
    return Axis(first * step, last * step, _ticks(values, digits), title)


def _ticks(values: list[float], digits: int) -> tuple[Tick, ...]:
    def text(value: float) -> str:
        if max(abs(v) for v in values) >= _KILO_FROM:
            return f"{value / 1000:,.10g}k" if value else "0"
        return units.fixed(value, digits)

    skip = len(values) > 4  # noqa: PLR2004 - more don't fit at 360 px
    return tuple(Tick(v, text(v), minor=skip and i % 2 == 1) for i, v in enumerate(values))


def padded(values: Iterable[float], title: str = "", *, parts: int = 5) -> Axis:
    """Return a linear axis that need not begin at 0, with room around ``values``."""
    known = list(values)
    low, high = min(known), max(known)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return linear(max(0.0, low - room), high + room, title, parts=parts, zero=False)


def logarithmic(low: float, high: float, title: str = "") -> Axis:
    """Return a logarithmic axis over ``low`` > 0 and ``high``, ends on 1, 2 or 5 times ten."""
    marks = _one_two_five(low, high)
    wide = math.log10(marks[-1] / marks[0]) > 2.5  # noqa: PLR2004 - more than two and a half decades
    shown = [v for v in marks if not wide or _is_decade(v) or v in (marks[0], marks[-1])]
    ticks = tuple(Tick(v, units.significant(v, 3), minor=i % 2 == 1) for i, v in enumerate(shown))
    return Axis(marks[0], marks[-1], ticks, title, log=True)


def _is_decade(value: float) -> bool:
    return abs(math.log10(value) - round(math.log10(value))) < 1e-9  # noqa: PLR2004


def _one_two_five(low: float, high: float) -> list[float]:
    """Return the marks of 1, 2, 5 times ten from the last at or under ``low`` to ``high``."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    marks = [float(f"{m}e{e}") for e in range(first, last + 1) for m in (1, 2, 5)]
    start = max(i for i, mark in enumerate(marks) if mark <= low * (1 + 1e-9))
    end = min(i for i, mark in enumerate(marks) if mark >= high * (1 - 1e-9))
    return marks[start : max(end, start + 1) + 1]
