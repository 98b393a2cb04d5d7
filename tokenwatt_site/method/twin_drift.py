"""Whether a server has changed its speed while it was measured, and since when."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from tokenwatt_site.method.twin import Mirror, Replay, Twin
from tokenwatt_site.method.twin_error import blocks_of, residual_of
from tokenwatt_site.method.twin_scores import TPOT

_LEAST_OUTPUT = 8
_LEAST_BLOCKS, _LEAST_FREEDOM = 5, 4
_ERRORS = 4.5
_WIDEN = 1.7
"""Blocks of a window depend on each other: window means scatter by so much more in simulation."""
_MOVED = 0.1
"""A change of ln(time per token) by less is not told from noise that lasts for minutes."""


@dataclass(frozen=True, slots=True)
class Change:
    """Where a server's speed changed."""

    window: int
    """The first of the twin's windows that has some of the new speed."""
    within: bool
    """It has some of the old one too."""


@dataclass(frozen=True, slots=True)
class _Block:
    window: int
    place: int
    """In its window."""
    log_speed: float
    """ln(TPOT seen over the twin's), its mean."""


def change_of(mirror: Mirror, twin: Twin) -> Change | None:
    """Return where the speed changed, None if there is no sign of it.

    All blocks of 30 s in their order are parted in two at every place there is. Blocks scatter
    around the mean of their part of their window; with that the difference of the two sides' means
    has an error, and only one far larger counts. The clearest place is taken.
    """
    blocks = [
        _Block(window, place, log_speed)
        for window, replay in enumerate(twin.replays)
        for place, log_speed in enumerate(_log_speeds(mirror, twin, replay))
    ]
    signs, at = max(_places(blocks), default=(0.0, 0))
    if signs <= _ERRORS:
        return None
    first = blocks[at]
    return Change(first.window, within=first.place > 0)


def _places(blocks: Sequence[_Block]) -> Iterator[tuple[float, int]]:
    """Yield by how many errors the speed moved, and the first block of the new one."""
    for at in range(_LEAST_BLOCKS, len(blocks) - _LEAST_BLOCKS + 1):
        before, after = blocks[:at], blocks[at:]
        parts = [*_by_window(before), *_by_window(after)]
        freedom = len(blocks) - len(parts)
        if freedom < _LEAST_FREEDOM:
            continue
        scatter = math.fsum(map(_squares, parts)) / freedom
        error = _WIDEN * math.sqrt(scatter * (1 / len(before) + 1 / len(after)))
        moved = abs(_mean(after) - _mean(before))
        if moved > _MOVED:
            yield moved / error if error else math.inf, at


def _by_window(blocks: Sequence[_Block]) -> Iterator[list[float]]:
    for _, part in groupby(blocks, lambda block: block.window):
        yield [block.log_speed for block in part]


def _mean(blocks: Sequence[_Block]) -> float:
    return fmean(block.log_speed for block in blocks)


def _squares(values: Sequence[float]) -> float:
    middle = fmean(values)
    return math.fsum((value - middle) ** 2 for value in values)


def _log_speeds(mirror: Mirror, twin: Twin, replay: Replay) -> list[float]:
    """Return ln(TPOT seen over the twin's) of a window, means of blocks."""
    pairs = mirror.pairs(twin.params, replay, TPOT)
    long = [
        pair
        for i, pair in zip(replay.cohort, pairs, strict=True)
        if replay.columns[2][i] >= _LEAST_OUTPUT
    ]
    return blocks_of(replay, long, residual_of)
