"""The twin's player and the drawing of schedules in C: the same results, many times faster."""

import ctypes
import math
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from benchmarks.search_policy.native import at, library
from tokenwatt_site.method import nnls, schedule, twin_fit, twin_stream
from tokenwatt_site.method.probe import Measured
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.twin_player import Played, TwinParams
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits
from tokenwatt_site.method.twin_stream import Steady, Stream
from tokenwatt_site.method.workloads import Fixed, LengthDist, Lognormal, Workload

_WINDOWS = 200
_ROOM = 6.0  # standard deviations of a count of arrivals


class _Twin(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in TwinParams.__dataclass_fields__ if name[-2:] == "_s"),
        ("budget_tokens", ctypes.c_int64),
        ("max_sequences", ctypes.c_int64),
    ]


class _Lengths(ctypes.Structure):
    _fields_ = [("median", ctypes.c_double), ("sigma", ctypes.c_double), ("top", ctypes.c_int64)]

    @classmethod
    def of(cls, lengths: LengthDist) -> "_Lengths":
        """Pack a distribution."""
        if isinstance(lengths, Lognormal):
            return cls(lengths.median, lengths.sigma, lengths.top)
        if isinstance(lengths, Fixed):
            return cls(lengths.tokens, 0.0, lengths.tokens)
        raise TypeError(lengths)


def play_twin(
    params: TwinParams,
    arrival_s: "array[float]",
    input_tokens: "array[int]",
    output_tokens: "array[int]",
    until_s: float,
) -> Played:
    """Play a schedule on a twin, see ``twin_player.Player``."""
    packed = _Twin(*(getattr(params, name) for name, *_ in _Twin._fields_))
    n = len(arrival_s)
    size = bytes(8 * n)
    played = Played(array("d", size), array("d", size), array("q", size))
    columns = map(at, (arrival_s, input_tokens, output_tokens))
    if library().twin_play(ctypes.byref(packed), n, *columns, until_s, *map(at, played)):
        raise MemoryError
    return played


def poisson_schedule(workload: Workload, rate_rps: float, horizon_s: float, seed: int) -> Schedule:
    """Draw what ``schedule.poisson_schedule`` draws."""
    mean = rate_rps * horizon_s
    most = int(mean + _ROOM * mean**0.5 + _ROOM)
    arrival_s = array("d", bytes(8 * most))
    inputs, outputs = (array("q", bytes(8 * most)) for _ in range(2))
    lengths = [_Lengths.of(each) for each in (workload.input, workload.output)]
    n = library().poisson_schedule(
        seed,
        rate_rps,
        horizon_s,
        *map(ctypes.byref, lengths),
        most,
        *map(at, (arrival_s, inputs, outputs)),
    )
    if n < 0:
        return schedule.poisson_schedule(workload, rate_rps, horizon_s, seed)
    return Schedule(arrival_s[:n], inputs[:n], outputs[:n], seed, rate_rps)


def played_scores(
    limits: Limits,
    played: Played,
    arrival_s: "array[float]",
    kind: int,
    look_s: float = math.inf,
) -> "array[float]":
    """Return the scores of a play, see ``Limits.played``."""
    n = len(arrival_s)
    scores = array("d", bytes(8 * n))
    limit_s = limits.ttft_s if kind == TTFT else limits.tpot_s
    columns = map(at, (arrival_s, *played, scores))
    library().twin_scores(n, kind == TTFT, limit_s, look_s, *columns)
    return scores


def non_negative(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> list[float]:
    """Return the coefficients of ``nnls.non_negative``."""
    width = len(rows[0])
    lines = zip(rows, targets, strict=True)
    flat = array("d", chain.from_iterable((*row, target) for row, target in lines))
    sums = array("d", bytes(8 * (width + 1) ** 2))
    library().products(len(rows), width + 1, at(flat), at(sums))
    square = [sums[i * (width + 1) : (i + 1) * (width + 1)] for i in range(width)]
    scale = [square[j][j] ** 0.5 or 1.0 for j in range(width)]
    gram = [[square[i][j] / (scale[i] * scale[j]) for j in range(width)] for i in range(width)]
    goal = [square[i][width] / scale[i] for i in range(width)]
    return [x / s for x, s in zip(vars(nnls)["_active_set"](gram, goal), scale, strict=True)]


def highest(scores: "array[float]") -> list[float]:
    """Return the highest scores, see ``twin_stream._highest``."""
    some = sorted(scores[:: stream_of("_SAMPLE")])
    room = array("d", bytes(8 * (len(scores) + 1)))
    kept = library().at_least(len(scores), at(scores), some[int(0.88 * len(some))], at(room))
    high = sorted(room[:kept])
    return high if 10 * len(high) >= len(scores) else sorted(scores)


def steady(stream: Stream, params: TwinParams, rate_rps: float, *, rough: bool = False) -> Steady:
    """Play a stream at a rate, see ``Stream.steady``."""
    unit_s, inputs, outputs = vars(Stream)["_drawn"](stream, rough=rough)
    n = len(unit_s)
    arrival_s = array("d", bytes(8 * n))
    library().scaled(n, stream.replicas / rate_rps, at(unit_s), at(arrival_s))
    played = stream.player(params, arrival_s, inputs, outputs, math.inf)
    first, last = int(stream_of("_WARM_SHARE") * n), n - int(stream_of("_TAIL_SHARE") * n)
    scores = (
        played_scores(stream.limits, played, arrival_s, TTFT)[first:last],
        played_scores(stream.limits, played, arrival_s, TPOT)[first:last],
    )
    ended_s, began_s = played.last_s[first:last], arrival_s[first:last]
    count = last - first
    stay_s = library().total(count, at(ended_s)) - library().total(count, at(began_s))
    high = highest(scores[TTFT]), highest(scores[TPOT])
    return Steady(rate_rps, scores, high, rate_rps * stay_s / count)


def share_error(found: Steady, kind: int) -> float:
    """Return the relative error of a miss share, see ``Steady.share_error``."""
    scores, limit = found.scores[kind], math.exp(found.log_p99(kind))
    batches = stream_of("_BATCHES")
    size = len(scores) // batches
    counts = [library().count_over(size, at(scores) + 8 * i * size, limit) for i in range(batches)]
    mean = sum(counts) / batches
    if not mean:
        return 0.0
    variance = sum((count - mean) ** 2 for count in counts) / (batches - 1)
    return float(math.sqrt(variance / batches) / mean)


def stream_of(name: str) -> Any:
    """Return a constant of the twin's stream."""
    return vars(twin_stream)[name]


class Rows:
    """Remembers the rows that each window gives to a fit: a search fits the same ones often."""

    def __init__(self, of: Callable[..., Iterable[Any]]) -> None:
        self._of = of
        self._known: dict[Any, tuple[Measured, list[Any]]] = {}

    def __call__(self, measured: Measured, *more: int) -> list[Any]:
        """Return the rows of a window."""
        key = (id(measured), *more)
        if key not in self._known:
            if len(self._known) > _WINDOWS:
                self._known.clear()
            self._known[key] = measured, list(self._of(measured, *more))
        return self._known[key][1]


def install() -> None:
    """Let this process draw, score and fit here."""
    slow = schedule.poisson_schedule
    for module in list(sys.modules.values()):
        if getattr(module, "poisson_schedule", None) is slow and module is not schedule:
            vars(module)["poisson_schedule"] = poisson_schedule
    for name in ("_rows", "_while_waiting"):
        vars(twin_fit)[name] = Rows(vars(twin_fit)[name])
    vars(twin_fit)["non_negative"] = non_negative
    vars(twin_stream)["_highest"] = highest
    for owner, name, quick in (
        (Limits, "played", played_scores),
        (Stream, "steady", steady),
        (Steady, "share_error", share_error),
    ):
        setattr(owner, name, quick)
