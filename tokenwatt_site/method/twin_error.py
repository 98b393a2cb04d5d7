"""How well a twin tells what a server does: residual error and correlation."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import correlation, median

from tokenwatt_site.method.twin import Mirror, Pair, Replay, Twin
from tokenwatt_site.method.twin_scores import log_score

BLOCK_S = 30.0
_LEAST_BLOCKS, _LEAST_FOR_CORR = 8, 16
_WIDEN = 3.5
"""Estimates scatter by so much more than the residuals alone say, in simulation on servers of
known boundaries: the highest scores, which set the twin's speed, scatter more than the mean, and
the fit and its elasticity have errors too."""

Values = Callable[[Pair], float]


@dataclass(frozen=True, slots=True)
class Error:
    """What is known of the estimate's error; relative, None: too few blocks to tell."""

    residual: float | None
    """Of ln(score) between server and twin, over all windows together."""
    relative: float | None
    """Standard error of the estimated rate, as published."""
    corr: float | None
    """Correlation of block means of ln(score)."""


def error_of(mirror: Mirror, twin: Twin) -> Error:
    """Return what the residuals of a twin's windows say of its boundary."""
    kind = twin.boundary.kind
    played = [(replay, mirror.pairs(twin.params, replay, kind)) for replay in twin.replays]
    residual = residual_error(
        [blocks_of(replay, _upper(pairs), residual_of) for replay, pairs in played]
    )
    relative = None
    if residual is not None:
        server = _WIDEN * residual / twin.boundary.elasticity
        relative = math.hypot(server, twin.boundary.stream_error)
    seen = [block for replay, pairs in played for block in blocks_of(replay, pairs, _seen)]
    told = [block for replay, pairs in played for block in blocks_of(replay, pairs, _told)]
    return Error(residual, relative, _corr(seen, told))


def residual_error(windows: Iterable[Sequence[float]]) -> float | None:
    """Return the standard error of the mean of block means; None with fewer than 8 blocks.

    Neighbours depend on each other: the autocovariances of lag 1 and 2, within a window, are
    counted in with the weights of Bartlett, 2/3 and 1/3.
    """
    windows = list(windows)
    blocks = [block for window in windows for block in window]
    if len(blocks) < _LEAST_BLOCKS:
        return None
    mean = math.fsum(blocks) / len(blocks)

    def covariance(lag: int) -> float:
        products = [
            (a - mean) * (b - mean)
            for window in windows
            for a, b in zip(window, window[lag:], strict=False)
        ]
        return math.fsum(products) / len(blocks)

    own = covariance(0)
    total = own + 2 * (2 / 3 * covariance(1) + 1 / 3 * covariance(2))
    return math.sqrt(max(total, own / 2) / len(blocks))


def _upper(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the half with the higher scores on the twin."""
    middle = median(pair.twin for pair in pairs) if pairs else 0.0
    return [pair for pair in pairs if pair.twin >= middle]


def blocks_of(replay: Replay, pairs: Sequence[Pair], value: Values) -> list[float]:
    """Return the means of a value over blocks of 30 s; one that is less than half there is not."""
    measured = replay.measured
    length_s = min(measured.w1_s, measured.look_s) - measured.w0_s
    groups: list[list[float]] = [[] for _ in range(int(length_s / BLOCK_S + 0.5) or 1)]
    for pair in pairs:
        i = int((pair.arrival_s - measured.w0_s) / BLOCK_S)
        if i < len(groups) and pair.seen > 0 and pair.twin > 0:
            groups[i].append(value(pair))
    return [math.fsum(group) / len(group) for group in groups if group]


def residual_of(pair: Pair) -> float:
    """Return ln of the score seen over the twin's."""
    return _seen(pair) - _told(pair)


def _seen(pair: Pair) -> float:
    return log_score(pair.seen)


def _told(pair: Pair) -> float:
    return log_score(pair.twin)


def _corr(seen: Sequence[float], told: Sequence[float]) -> float | None:
    if len(seen) < _LEAST_FOR_CORR or len(set(seen)) == 1 or len(set(told)) == 1:
        return None
    return correlation(seen, told)
