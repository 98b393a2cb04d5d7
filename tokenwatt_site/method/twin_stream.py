"""The twin in the long run: one stream of requests at unit rate, played at any rate.

The same requests serve every rate (common random numbers), so what it says of two rates or two
twins differs by what they are, not by luck.
"""

import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.twin_player import Player, TwinParams
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits, log_score
from tokenwatt_site.method.workloads import Workload

MISS_SHARE = 0.01
_WARM_SHARE, _TAIL_SHARE = 0.03, 0.02
"""Of a stream's requests: those before the steady state and those while it empties don't count."""
_BATCHES, _SAMPLE = 20, 50
_ROUGH = 4
"""A rough look takes one part of so many."""
_CLOSE, _NEAR = 0.003, 0.01
"""A step of the logarithm of the rate that needs no other look; the second if the elasticity is
known."""
_EVALUATIONS = 30
_ELASTICITY, _ELASTICITY_LEAST = 2.0, 0.2
_SLOPE_LEAST = 0.5
_APART = 0.01
"""Points nearer to each other than this tell no elasticity: a percentile moves in jumps."""
_REACH = math.log(3)
"""The most by which one step may move the logarithm of the rate."""
_MARGIN = 0.02
"""A step nearer to an end of the bracket than this share of it halves the bracket instead."""
_AROUND, _AROUND_MOST = 0.03, 0.3
"""The slope is taken between the rates this far below and above; and as scores, at most so far."""


@dataclass(frozen=True, slots=True)
class Steady:
    """What a twin does at a rate in the long run."""

    rate_rps: float
    scores: tuple["array[float]", "array[float]"]
    """Of TTFT and TPOT, of the counted requests in the order of their arrival."""
    high: tuple[list[float], list[float]]
    """The highest of them, ascending: a tenth or more."""
    in_flight: float
    """Mean number of requests."""

    def log_p99(self, kind: int) -> float:
        """Return ln of the score that 99 % keep."""
        n, high = len(self.scores[kind]), self.high[kind]
        rank = math.ceil(round((1 - MISS_SHARE) * n, 9))  # the nearest rank, counted from 1
        return log_score(high[rank - 1 - n])

    @property
    def binding(self) -> int:
        """The kind whose 99th percentile is nearer to its limit, or further over it."""
        return TTFT if self.log_p99(TTFT) > self.log_p99(TPOT) else TPOT

    def share_over(self, kind: int, limit: float) -> float:
        """Return the share of requests whose score is over a limit."""
        scores, high = self.scores[kind], self.high[kind]
        if limit < high[0]:
            return sum(score > limit for score in scores) / len(scores)
        return (len(high) - bisect_right(high, limit)) / len(scores)

    def share_error(self, kind: int) -> float:
        """Return the standard error of the miss share over the share, from means of batches."""
        scores = self.scores[kind]
        limit = math.exp(self.log_p99(kind))
        size = len(scores) // _BATCHES
        counts = [
            sum(score > limit for score in scores[i * size : (i + 1) * size])
            for i in range(_BATCHES)
        ]
        mean = sum(counts) / _BATCHES
        if not mean:
            return 0.0
        variance = sum((count - mean) ** 2 for count in counts) / (_BATCHES - 1)
        return math.sqrt(variance / _BATCHES) / mean


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a twin's miss share is 1 %."""

    rate_rps: float
    kind: int
    """Which score binds."""
    elasticity: float
    """d ln(99th percentile)/d ln(rate)."""
    slope: float
    """d ln(miss share)/d ln(rate)."""
    stream_error: float
    """Relative standard error of the rate for the stream's finite length."""
    near: Steady
    """What the twin does near to it."""


@dataclass(slots=True)
class Stream:
    """A stream of requests, for all twins of a search."""

    workload: Workload
    requests: int
    seed: int
    player: Player
    limits: Limits
    replicas: int = 1
    """The twin serves one replica's share of the rate."""
    _columns: tuple["array[float]", "array[int]", "array[int]"] | None = field(default=None)
    _rough: tuple["array[float]", "array[int]", "array[int]"] | None = field(default=None)

    def steady(self, params: TwinParams, rate_rps: float, *, rough: bool = False) -> Steady:
        """Play the stream at a rate; its first part only, if ``rough``."""
        unit_s, inputs, outputs = self._drawn(rough=rough)
        pace = self.replicas / rate_rps
        arrival_s = array("d", [pace * t_s for t_s in unit_s])
        played = self.player(params, arrival_s, inputs, outputs, math.inf)
        n = len(arrival_s)
        counted = slice(int(_WARM_SHARE * n), n - int(_TAIL_SHARE * n))
        scores = (
            self.limits.played(played, arrival_s, TTFT)[counted],
            self.limits.played(played, arrival_s, TPOT)[counted],
        )
        stay_s = sum(played.last_s[counted]) - sum(arrival_s[counted])
        return Steady(
            rate_rps=rate_rps,
            scores=scores,
            high=(_highest(scores[TTFT]), _highest(scores[TPOT])),
            in_flight=rate_rps * stay_s / len(scores[TTFT]),
        )

    def boundary(
        self,
        params: TwinParams,
        guess_rps: float,
        known: Boundary | None = None,
        *,
        rough: bool = False,
    ) -> Boundary:
        """Return where the twin's 99th percentile of either score reaches its limit.

        ``known`` is the boundary of a similar twin, whose elasticity is a first guess.
        """
        return _Search(self, params, known, rough=rough).run(math.log(guess_rps))

    def _drawn(self, *, rough: bool) -> tuple["array[float]", "array[int]", "array[int]"]:
        if self._columns is None:
            drawn = poisson_schedule(self.workload, 1.0, float(self.requests), self.seed)
            self._columns = (drawn.arrival_s, drawn.input_tokens, drawn.output_tokens)
            arrival_s, inputs, outputs = self._columns
            n = len(arrival_s) // _ROUGH
            self._rough = (arrival_s[:n], inputs[:n], outputs[:n])
        return self._rough if rough and self._rough else self._columns


def _highest(scores: "array[float]") -> list[float]:
    """Return the highest tenth or more, ascending: cheaper than to sort them all."""
    some = sorted(scores[::_SAMPLE])
    bound = some[int(0.88 * len(some))]
    high = sorted([score for score in scores if score >= bound])
    return high if 10 * len(high) >= len(scores) else sorted(scores)


class _Search:
    """Looks for the rate at which the larger of the two percentiles is 1: ln of it is the level.

    The level rises with the rate: slowly, and then steeply where a queue begins to grow.
    """

    def __init__(
        self, stream: Stream, params: TwinParams, known: Boundary | None, *, rough: bool
    ) -> None:
        self._stream, self._params, self._rough = stream, params, rough
        self._enough = _CLOSE if known is None else _NEAR
        self._elasticity = _ELASTICITY if known is None else known.elasticity
        self._below: tuple[float, float] | None = None
        self._above: tuple[float, float] | None = None

    def run(self, log_rate: float) -> Boundary:
        """Search from a first guess."""
        near, to = self._look(log_rate)
        for _ in range(_EVALUATIONS):
            if abs(to - log_rate) < self._enough:
                break
            log_rate = to
            near, to = self._look(log_rate)
        return self._boundary(near, to)

    def _look(self, log_rate: float) -> tuple[Steady, float]:
        """Play the stream at a rate; return what it does, and where to look next."""
        near = self._stream.steady(self._params, math.exp(log_rate), rough=self._rough)
        level = near.log_p99(near.binding)
        self._note(log_rate, level)
        return near, self._next(log_rate, level)

    def _note(self, log_rate: float, level: float) -> None:
        """Remember a point, and the elasticity between it and the nearest on the other side."""
        old = self._below if level < 0 else self._above
        if level < 0:
            self._below = (log_rate, level)
        else:
            self._above = (log_rate, level)
        other = self._above if level < 0 else self._below
        for point in (old, other):  # the other side tells more, if there is one
            if point is not None and abs(point[0] - log_rate) > _APART:
                elasticity = (level - point[1]) / (log_rate - point[0])
                self._elasticity = max(elasticity, _ELASTICITY_LEAST)

    def _next(self, log_rate: float, level: float) -> float:
        """Return where the line through the last points is 0; within the bracket, once known."""
        to = log_rate - max(-_REACH, min(_REACH, level / self._elasticity))
        if self._below is None or self._above is None:
            return to
        low, high = self._below[0], self._above[0]
        margin = _MARGIN * (high - low)
        return to if low + margin < to < high - margin else (low + high) / 2

    def _boundary(self, near: Steady, log_rate: float) -> Boundary:
        kind = near.binding
        middle = near.log_p99(kind)
        reach = min(_AROUND * self._elasticity, _AROUND_MOST)
        more, less = (near.share_over(kind, math.exp(middle + s * reach)) for s in (-1, 1))
        least = 0.5 / len(near.scores[kind])
        steepness = math.log(max(more, least) / max(less, least)) / (2 * reach)
        slope = max(self._elasticity * steepness, _SLOPE_LEAST)
        return Boundary(
            rate_rps=math.exp(log_rate),
            kind=kind,
            elasticity=self._elasticity,
            slope=slope,
            stream_error=near.share_error(kind) / slope,
            near=near,
        )
