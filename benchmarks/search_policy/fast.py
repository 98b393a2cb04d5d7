"""The twin's player and the drawing of schedules in C: the same results, many times faster."""

import ctypes
import sys
from array import array

from benchmarks.search_policy.native import at, library
from tokenwatt_site.method import schedule
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.twin_player import Played, TwinParams
from tokenwatt_site.method.workloads import Fixed, LengthDist, Lognormal, Workload

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
    columns = array("d", bytes(8 * most)), array("q", bytes(8 * most)), array("q", bytes(8 * most))
    lengths = [_Lengths.of(each) for each in (workload.input, workload.output)]
    n = library().poisson_schedule(
        seed, rate_rps, horizon_s, *map(ctypes.byref, lengths), most, *map(at, columns)
    )
    if n < 0:
        return schedule.poisson_schedule(workload, rate_rps, horizon_s, seed)
    arrival_s, inputs, outputs = (column[:n] for column in columns)
    return Schedule(arrival_s, inputs, outputs, seed, rate_rps)


def install() -> None:
    """Let every module of this process that draws Poisson streams draw them here."""
    slow = schedule.poisson_schedule
    for module in list(sys.modules.values()):
        if getattr(module, "poisson_schedule", None) is slow and module is not schedule:
            vars(module)["poisson_schedule"] = poisson_schedule
