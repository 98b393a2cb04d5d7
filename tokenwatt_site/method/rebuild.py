"""A measurement from its evidence: the state that the session was in, and whether it holds.

No stored verdict is read. Loads are drawn again from the seed, windows judged again, and the search
is asked again after every window what comes next.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.errors import DocumentError
from tokenwatt_site.method.account import Beside, account
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.assemble import Closing, assemble
from tokenwatt_site.method.draw import draw, horizon_s, schedule_row
from tokenwatt_site.method.events import Begin, begin_of, load_of, probe_of, probe_row
from tokenwatt_site.method.idle import Idle, idle_stretch
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.probe import Done, Measured, Probe
from tokenwatt_site.method.replay import Trace, trace_of_rows
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.search import Search, search_of

Row = dict[str, Any]
MOST_REQUESTS = 10_000_000
"""Of one window: evidence may be a stranger's, and loads are drawn before they are compared."""

MOST_READINGS = 4_000_000
"""Of one window and meter: 64 boards, 100 a second, ten minutes."""


@dataclass(slots=True)
class Rows:
    """The lines of the evidence files, in their order."""

    events: Iterable[Row]
    schedule: Iterable[Row]
    requests: Iterable[Row]
    power: Sequence[Iterable[Row]] = ()
    """Those of each meter, the primary one first."""
    server: Iterable[Row] = ()
    trace: Iterable[Row] = ()
    """Those of the recorded trace, where one was replayed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Where the evidence doesn't follow from itself."""

    place: str
    """File and window."""
    said: Any
    found: Any
    """What it must be."""


@dataclass(slots=True)
class Rebuilt:
    """A measurement as it stood when its last event was written."""

    begin: Begin
    trace: Trace | None = None
    windows: list[MeasuredWindow] = field(default_factory=list)
    history: list[Measured] = field(default_factory=list)
    series: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By window."""
    idle: list[Idle] = field(default_factory=list)
    """What the meters read without load."""
    done: Done | None = None
    at: str = ""
    """Time of the last event."""
    ended: str = ""
    """Code of what cut the measurement short, if the last event says so."""
    faults: list[Fault] = field(default_factory=list)
    search: Search = field(init=False)
    """Has been asked after every window but the last."""
    facts: SearchFacts | None = None
    """What it knew then."""

    def __post_init__(self) -> None:
        """Take the search that was asked for."""
        self.search = search_of(self.begin.spec, self.trace)

    def document(self, evidence: Sequence[Evidence]) -> Run:
        """Return the document of it, with the evidence that it names."""
        closing = Closing(self.at, evidence, self.series, self.ended, self.facts, self.idle)
        begin = self.begin
        return assemble(begin.spec, begin.resolved, self.windows, self.done, closing, self.trace)


class _Groups:
    """The rows of one file, window by window."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self._next: Row | None = next(self._rows, None)

    def of(self, window: int) -> Iterator[Row]:
        """Yield the rows of the next window, if they are this one's."""
        while self._next is not None and self._next["w"] == window:
            yield self._next
            self._next = next(self._rows, None)

    def rest(self) -> int | None:
        """Return the window of the next row, None at the end."""
        return None if self._next is None else self._next["w"]


def rebuild(rows: Rows) -> Rebuilt:
    """Return the measurement that the evidence is of.

    Raises:
        DocumentError: the evidence doesn't begin with what was asked; its lines are another
            version's, or broken.
    """
    events = iter(rows.events)
    first = next(events, None)
    if first is None or first["event"] != "begin":
        raise DocumentError(
            "events.jsonl doesn't begin with what was asked and found",
            "it was written by an older version: only its hashes can be checked",
        )
    walk = _Walk(rows, Rebuilt(begin_of(first), trace_of_rows(rows.trace), at=first["at"]))
    for event in events:
        walk.built.at, walk.built.ended = event["at"], event.get("code", "")
        step = _STEPS.get(event["event"])
        if step is not None:
            step(walk, event)
    walk.end()
    return walk.built


class _Walk:
    """Goes through the events once; the other files go along."""

    def __init__(self, rows: Rows, built: Rebuilt) -> None:
        self.built = built
        self._schedule = iter(rows.schedule)
        self._requests = _Groups(rows.requests)
        self._power = [_Groups(each) for each in rows.power]
        self._server = _Groups(rows.server)
        self._pending: tuple[Probe, Schedule] | None = None

    def window(self, event: Row) -> None:
        """A window was asked for: the search asks for the same one, and its load is the seed's."""
        probe, spec, trace = probe_of(event), self.built.begin.spec, self.built.trace
        step = self._asked()
        said = {key: value for key, value in event.items() if key not in ("event", "at")}
        self._same(f"events.jsonl, window {probe.index}", said, _shown(step))
        if not 0 <= probe.rate_rps * horizon_s(spec, probe, trace) + probe.inject < MOST_REQUESTS:
            raise DocumentError(
                f"window {probe.index}: a load of more requests than anybody sends",
                "no evidence of a measurement asks for that",
            )
        schedule = draw(spec, probe, trace)
        line, drawn = next(self._schedule, None), schedule_row(spec, probe, schedule, trace)
        self._same(f"schedule.jsonl, window {probe.index}", line, drawn)
        self._pending = probe, schedule

    def played(self, event: Row) -> None:
        """A window was played: its figures follow from the rows."""
        built, index = self.built, event["index"]
        if self._pending is None or self._pending[0].index != index:
            self._same("events.jsonl", f"window {index} played", "it was never asked for")
            return
        probe, schedule = self._pending
        self._pending = None
        requests = list(islice(self._requests.of(index), len(schedule) + 1))
        self._same(f"requests.jsonl.gz, window {index}", *_sent(requests, schedule))
        power = [
            (meter, _readings(groups, index))
            for meter, groups in zip(built.begin.meters, self._power, strict=True)
        ]
        beside = Beside(power, _readings(self._server, index))
        accounted = account(built.begin.spec, probe, load_of(event), requests, beside)
        built.windows.append(accounted.window)
        built.history.append(accounted.measured)
        if accounted.series is not None:
            built.series[index] = accounted.series

    def idle(self, event: Row) -> None:
        """The meters were read without load."""
        power = [
            (meter, _readings(groups, event["index"]))
            for meter, groups in zip(self.built.begin.meters, self._power, strict=True)
        ]
        self.built.idle.append(idle_stretch(event["index"], event["seconds"], power))

    def done(self, event: Row) -> None:
        """The search ended: ask it for its answer."""
        step = self._asked()
        if isinstance(step, Done):
            self.built.done = step
        said = {"word": event["word"], "rate_rps": event["rate_rps"]}
        self._same("events.jsonl, the answer", said, _shown(step))

    def resumed(self, event: Row) -> None:
        """The measurement was gone on with, perhaps by another version of the program."""
        begin = self.built.begin
        stamps = (*begin.resolved.resumed, event["at"])
        resolved = replace(begin.resolved, resumed=stamps)
        self.built.begin = replace(begin, tool=event["tool"], resolved=resolved)

    def end(self) -> None:
        """Nothing may be left over."""
        files = {"requests.jsonl.gz": self._requests, "server.jsonl.gz": self._server}
        files |= {f"power file {n + 1}": groups for n, groups in enumerate(self._power)}
        for name, groups in files.items():
            self._same(f"{name}, rows after the last window", groups.rest(), None)
        self._same("schedule.jsonl, after the last window", next(self._schedule, None), None)

    def _asked(self) -> Probe | Done:
        step = self.built.search.next(tuple(self.built.history))
        self.built.facts = deepcopy(self.built.search.facts)
        return step

    def _same(self, place: str, said: Any, found: Any) -> None:
        if said != found:
            self.built.faults.append(Fault(place, said, found))


_STEPS = {
    "window": _Walk.window,
    "played": _Walk.played,
    "idle": _Walk.idle,
    "done": _Walk.done,
    "resumed": _Walk.resumed,
}


def _readings(groups: _Groups, window: int) -> list[Row]:
    """Return the rows of a window that a meter or a server's page gave."""
    rows = list(islice(groups.of(window), MOST_READINGS + 1))
    if len(rows) > MOST_READINGS:
        raise DocumentError(
            f"window {window}: more than {MOST_READINGS:,} readings of one meter",
            "no evidence of a measurement has so many",
        )
    return rows


def _shown(step: Probe | Done) -> dict[str, Any]:
    """Return a step as its line in the events has it."""
    if isinstance(step, Done):
        return {"word": step.word, "rate_rps": step.rate_rps}
    return probe_row(step)


def _sent(requests: Sequence[Row], schedule: Schedule) -> tuple[Any, Any]:
    """Return the first request that isn't the schedule's, and what it must be; else twice None."""
    if len(requests) > len(schedule):
        return f"{len(requests)} requests", f"at most {len(schedule)}"
    for index, row in enumerate(requests):
        marks = row.get("planned", 0), row.get("inj", False)
        said = (row["i"], row["sched_us"], row["in"], row["out"], *marks)
        due_us = round(schedule.arrival_s[index] * 1e6)
        known = schedule.shared.known[index] if schedule.shared else 0
        lengths = schedule.input_tokens[index], schedule.output_tokens[index]
        asked = (index, due_us, *lengths, known, index < schedule.injected)
        if said != asked:
            return said, asked
    return None, None
