"""What goes between a measurement and its load workers: the job down, changes of traces up.

Messages up are frames: four bytes of length, then a pickle of ``(kind, value)``. Both ends are this
program, started by itself; nothing of a server's is unpickled.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Literal

from tokenwatt_site.load.api import Prompt
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

Kind = Literal["ready", "rows", "as_of", "end", "failed"]
LENGTH_BYTES = 4
CHUNK = 64
"""Rows of a frame: gathering them holds up the worker's loop for about 0.2 ms."""

_ARRAYS = ("events_s", "event_tokens")
_NAMES = tuple(f.name for f in fields(RequestTrace) if f.name not in {"index", *_ARRAYS})
_values = attrgetter(*_NAMES)

Row = tuple[int, tuple[Any, ...] | None, bytes, list[int] | None]
"""Index in the whole schedule; the trace's plain values, None where none has changed; the new
stamps; the new events' tokens, None where they aren't told."""


@dataclass(frozen=True, slots=True)
class Job:
    """One worker's share of a load: every ``of``-th request, from ``number`` on."""

    target: Target
    schedule: Schedule
    """Its own stripe."""
    prompt_of: Callable[[int], Prompt]
    """By index in the whole schedule."""
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Ended:
    """What a worker says of itself when its share is played."""

    t_end_s: float
    cpu_s: float
    loop_stall_max_s: float
    messages: dict[str, str]


def packed(value: Any) -> bytes:
    """Return a value as a frame."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def unpacked(data: bytes) -> Any:
    """Return the value of a frame without its length."""
    return pickle.loads(data)  # noqa: S301 - from a child of ours over a pipe of ours


class Changes:
    """A worker's side: what has changed in its traces since they were last looked at."""

    def __init__(self, number: int, of: int) -> None:
        self._number = number
        self._of = of
        self._seen = 0
        self._open: list[_Told] = []

    def chunks(self, traces: Sequence[RequestTrace]) -> Iterator[list[Row]]:
        """Yield rows of the changed traces, ``CHUNK`` at a time; the last list may be empty."""
        self._open += [_Told(trace) for trace in traces[self._seen :]]
        self._seen = len(traces)
        rows: list[Row] = []
        still: list[_Told] = []
        for told in self._open:
            row = told.row(self._number + told.trace.index * self._of)
            if row is not None:
                rows.append(row)
            if told.trace.t_end_s is None:
                still.append(told)
            if len(rows) == CHUNK:
                yield rows
                rows = []
        self._open = still
        yield rows


class _Told:
    """A trace, and how much of it has been told."""

    __slots__ = ("_events", "_untold", "_values", "trace")

    def __init__(self, trace: RequestTrace) -> None:
        self.trace = trace
        self._events = 0
        self._values: tuple[Any, ...] | None = None
        self._untold = True

    def row(self, index: int) -> Row | None:
        """Return what is new, None if nothing is."""
        trace, before = self.trace, self._events
        values, events = _values(trace), len(trace.events_s)
        tokens = None if trace.event_tokens is None else trace.event_tokens[before:]
        changed = None if values == self._values else values
        if changed is None and events == before and (tokens is None) == self._untold:
            return None
        self._values, self._events, self._untold = values, events, tokens is None
        return index, changed, trace.events_s[before:].tobytes(), tokens


class Mirror:
    """The measurement's side: the traces of all workers, in the order of the schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.traces: list[RequestTrace] = []
        """Those before the first that no worker has sent yet; it only grows."""
        self._schedule = schedule
        self._all: list[RequestTrace | None] = [None] * len(schedule)

    def take(self, rows: list[Row]) -> None:
        """Bring the traces up to date."""
        for index, values, stamps, tokens in rows:
            trace = self._all[index]
            if trace is None:
                assert values is not None  # noqa: S101 - the first row of a trace has them
                told = dict(zip(_NAMES, values, strict=True))
                trace = self._all[index] = RequestTrace(index=index, **told)
            elif values is not None:
                for name, value in zip(_NAMES, values, strict=True):
                    setattr(trace, name, value)
            trace.events_s.frombytes(stamps)
            trace.event_tokens = None if tokens is None else (trace.event_tokens or []) + tokens
        whole = self._all
        while len(self.traces) < len(whole) and (trace := whole[len(self.traces)]) is not None:
            self.traces.append(trace)

    def close(self, t0_s: float, t_end_s: float) -> list[RequestTrace]:
        """Return every request up to the last one that was sent.

        Workers aren't cut off at the same moment: the one that ended first may not have sent a
        request that was due just before the last one of another. It stays unsent in the list.
        """
        sent = [index for index, trace in enumerate(self._all) if trace is not None]
        until = sent[-1] + 1 if sent else 0
        return [
            self._unsent(index, t0_s, t_end_s) if trace is None else trace
            for index, trace in enumerate(self._all[:until])
        ]

    def _unsent(self, index: int, t0_s: float, t_end_s: float) -> RequestTrace:
        schedule = self._schedule
        return RequestTrace(
            index=index,
            t_sched_s=t0_s + schedule.arrival_s[index],
            input_tokens=schedule.input_tokens[index],
            output_tokens=schedule.output_tokens[index],
            injected=index < schedule.injected,
            t_end_s=t_end_s,
        )
