"""What a twin's steps take, fitted to the records of the requests that a server answered.

A request's time per token is the mean time of the steps from its first token to its last one. Those
steps decoded as many sequences as were between their first and last token then, and prefilled the
prompts whose first token fell in that time. The records tell both.
"""

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tokenwatt_site.method.nnls import non_negative
from tokenwatt_site.method.probe import Measured, Record
from tokenwatt_site.method.twin_player import UNLIMITED, TwinParams

LEAST_ROWS = 40
"""Fewer requests than this fit nothing."""
_LEAST_OUTPUT, _LEAST_SO_FAR = 3, 8
"""Output tokens of a finished request, and of one that runs still, to be a row of the fit."""
_MOST_WEIGHT = 200
_WAITED_S = 0.4
_LEAST_WAIT_S = 2.0
"""A request that waits longer than the first may wait for a place; if such waiting lasts as long as
the second in all, the number of sequences then is looked at."""
_LOW, _HIGH = 0.15, 0.95
_STILL = 1.06
"""It stands still if its high quantile is at most this times its low one, and one more: a place
is empty while the next request's prompt is prefilled."""


def fit(windows: Sequence[Measured], budget_tokens: int, replicas: int = 1) -> TwinParams | None:
    """Return the twin that explains the times per token best; None for too few requests.

    Non-negative least squares of the relative residuals, each weighted by its request's tokens. Of
    several replicas each has its share of the batch and of the prompts.
    """
    rows: list[list[float]] = []
    targets: list[float] = []
    for measured in windows:
        for row, target in _rows(measured, budget_tokens, replicas):
            rows.append(row)
            targets.append(target)
    if len(rows) < LEAST_ROWS:
        return None
    fixed, sequence, root, prefill, token, square = non_negative(rows, targets)
    if not fixed + sequence + root:
        return None
    places = _places(windows)
    if places != UNLIMITED:
        places = max(1, round(places / replicas))
    return TwinParams(fixed, sequence, root, prefill, token, square, budget_tokens, places)


def _rows(
    measured: Measured, budget_tokens: int, replicas: int
) -> Iterator[tuple[list[float], float]]:
    """Yield features and target of each request, both over its TPOT and times its weight."""
    batch = _Batch.of(measured.records, measured.look_s)
    prompts = _Prompts.of(measured.records, budget_tokens)
    for record in measured.records:
        if record.failed or record.first_s is None or record.last_s is None:
            continue
        if record.tokens < (_LEAST_OUTPUT if record.finished else _LEAST_SO_FAR):
            continue
        length_s = record.last_s - record.first_s
        if length_s <= 0:
            continue
        steps = record.tokens - 1
        weight = math.sqrt(min(steps, _MOST_WEIGHT)) * steps / length_s
        mean, root = batch.means(record.first_s, record.last_s)
        inside = prompts.between(record.first_s, record.last_s)
        share = 1 / (steps * replicas)
        features = (
            1.0,
            mean / replicas,
            root / math.sqrt(replicas),
            *(total * share for total in inside),
        )
        yield [weight * feature for feature in features], weight * length_s / steps


@dataclass(frozen=True, slots=True)
class _Batch:
    """How many sequences decode, as it changes: ``counts[i]`` of them from ``at_s[i]`` on."""

    at_s: list[float]
    counts: list[int]
    integrals: list[float]
    """Of the count, up to each change."""
    root_integrals: list[float]

    @classmethod
    def of(cls, records: Iterable[Record], look_s: float) -> "_Batch":
        changes: list[tuple[float, int]] = [(0.0, 0)]
        for record in records:
            if record.first_s is not None:
                ended = record.finished or record.failed
                end_s = record.last_s if ended and record.last_s is not None else look_s
                changes += [(record.first_s, 1), (max(end_s, record.first_s), -1)]
        changes.sort()
        at_s = [at for at, _ in changes]
        counts = list(accumulate(change for _, change in changes))
        gaps_s = [later - at for at, later in pairwise(at_s)]
        roots = [math.sqrt(max(count, 0)) for count in counts]
        return cls(
            at_s,
            counts,
            [0.0, *accumulate(c * gap for c, gap in zip(counts, gaps_s, strict=False))],
            [0.0, *accumulate(r * gap for r, gap in zip(roots, gaps_s, strict=False))],
        )

    def means(self, from_s: float, to_s: float) -> tuple[float, float]:
        """Return the time means of the count and of its root."""
        (count0, root0), (count1, root1) = self._integrals(from_s), self._integrals(to_s)
        return (count1 - count0) / (to_s - from_s), (root1 - root0) / (to_s - from_s)

    def _integrals(self, t_s: float) -> tuple[float, float]:
        i = bisect_right(self.at_s, t_s) - 1
        since_s = t_s - self.at_s[i]
        count = self.counts[i]
        return (
            self.integrals[i] + count * since_s,
            self.root_integrals[i] + math.sqrt(count) * since_s,
        )


@dataclass(frozen=True, slots=True)
class _Prompts:
    """Sums over the prompts whose first token came up to a time."""

    at_s: list[float]
    steps: list[float]
    tokens: list[float]
    squares: list[float]

    @classmethod
    def of(cls, records: Iterable[Record], budget_tokens: int) -> "_Prompts":
        came = sorted(
            (record.first_s, record.input_tokens)
            for record in records
            if record.first_s is not None
        )
        lengths = [tokens for _, tokens in came]
        return cls(
            [at_s for at_s, _ in came],
            [0.0, *accumulate(float(math.ceil(x / budget_tokens)) for x in lengths)],
            [0.0, *accumulate(float(x) for x in lengths)],
            [0.0, *accumulate(x * x / 2 for x in lengths)],
        )

    def between(self, from_s: float, to_s: float) -> tuple[float, float, float]:
        """Return steps with prefill, prompt tokens and half their squares of (from_s, to_s]."""
        i, j = bisect_right(self.at_s, from_s), bisect_right(self.at_s, to_s)
        return (
            self.steps[j] - self.steps[i],
            self.tokens[j] - self.tokens[i],
            self.squares[j] - self.squares[i],
        )


def _places(windows: Iterable[Measured]) -> int:
    """Return the limit on sequences: what the batch stands at while requests wait for long."""
    held: list[tuple[int, float]] = []
    for measured in windows:
        held += _while_waiting(measured)
    held.sort()
    total_s = sum(length_s for _, length_s in held)
    if total_s < _LEAST_WAIT_S:
        return UNLIMITED
    low, high = (_weighted(held, q * total_s) for q in (_LOW, _HIGH))
    return max(high, 1) if high <= _STILL * low + 1 else UNLIMITED


def _while_waiting(measured: Measured) -> Iterator[tuple[int, float]]:
    """Yield the number of sequences and for how long, over the time in which a request waits."""
    changes: list[tuple[float, int]] = []
    for record in measured.records:
        first_s = measured.look_s if record.first_s is None else record.first_s
        from_s = record.arrival_s + _WAITED_S
        if not record.failed and from_s < first_s:
            changes += [(from_s, 1), (first_s, -1)]
    batch = _Batch.of(measured.records, measured.look_s)
    edges = array("d", sorted({*batch.at_s, *(at_s for at_s, _ in changes)}))
    waiting = _Steps.of(changes)
    for at_s, later_s in pairwise(edges):
        if at_s >= measured.w0_s and waiting.at(at_s) > 0:
            yield batch.counts[bisect_right(batch.at_s, at_s) - 1], later_s - at_s


@dataclass(frozen=True, slots=True)
class _Steps:
    at_s: list[float]
    counts: list[int]

    @classmethod
    def of(cls, changes: Iterable[tuple[float, int]]) -> "_Steps":
        ordered = sorted(changes)
        return cls([at for at, _ in ordered], list(accumulate(change for _, change in ordered)))

    def at(self, t_s: float) -> int:
        i = bisect_right(self.at_s, t_s)
        return self.counts[i - 1] if i else 0


def _weighted(held: Sequence[tuple[int, float]], upto_s: float) -> int:
    """Return the count at which the time held so far reaches ``upto_s``."""
    so_far_s = 0.0
    for count, length_s in held:
        so_far_s += length_s
        if so_far_s >= upto_s:
            return count
    return held[-1][0]
