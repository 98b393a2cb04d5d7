"""Everything that a measurement holds while it runs, and how one window is measured.

The clock, the way to the server and the wall clock come from outside, so that a whole measurement
runs in virtual time too.
"""

import asyncio
import datetime as dt
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tokenwatt_site import __version__
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import ServerError
from tokenwatt_site.load.clock import Clock
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.player import Played
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.scrape import Scraper
from tokenwatt_site.load.selftest import Stamina, proves_nothing
from tokenwatt_site.load.target import Target
from tokenwatt_site.load.workers import Playing, staged
from tokenwatt_site.method.account import Account, Beside, Load, account, planned
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.assemble import Closing, Resolved, assemble
from tokenwatt_site.method.draw import draw, schedule_row
from tokenwatt_site.method.events import begin_row, idle_row, load_row, probe_row
from tokenwatt_site.method.evidence import power_file, power_row, request_row
from tokenwatt_site.method.figures import window_record
from tokenwatt_site.method.idle import AFTER, BEFORE, Idle, idle_stretch
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.meters import MeterFacts, idle_s
from tokenwatt_site.method.probe import Done, Measured, Probe
from tokenwatt_site.method.rebuild import Rebuilt
from tokenwatt_site.method.replay import Trace, trace_rows
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.search import Search, search_of
from tokenwatt_site.method.server_metrics import page_row
from tokenwatt_site.method.window import Tally
from tokenwatt_site.power.opened import facts
from tokenwatt_site.power.sampler import Sampler
from tokenwatt_site.store import RunStore
from tokenwatt_site.watch import Watch

LEAD_S = 0.5
"""Between drawing a schedule and its first second."""
SETTLE_S = 1.0
"""After all streams are cancelled: servers notice within a second."""
PATIENCE_S = 2.0
"""A search that takes longer to say what comes next is talked of."""
EDGE_S = 2.0
"""Readings are kept from this long before a load, of slow meters from three of theirs."""


async def at_once(call: Callable[[], Probe | Done]) -> Probe | Done:
    """Run a call where it stands: in virtual time nobody waits."""
    return call()


@dataclass(slots=True)
class Setup:
    """What the measurement was given: the server, the clocks, the meters, the files."""

    target: Target
    prompts: PromptMaker
    resolved: Resolved
    clock: Clock
    connect: Connector
    wall: Callable[[], float]
    samplers: Sequence[Sampler]
    store: RunStore
    tell: Callable[[dict[str, Any]], None]
    settle_s: float = SETTLE_S
    trace: Trace | None = None
    """The recorded trace that the spec names."""
    server: dict[str, Any] = field(default_factory=dict)
    """What decides the form of the requests: a resumed run must find the same."""
    scraper: Scraper | None = None
    """Reads the server's own page, where it has one."""
    workers: Callable[[Schedule], int] = lambda _: 1
    """Over how many processes a load is played."""
    stamina: Stamina | None = None
    """What this machine can play; None asks nothing."""
    think: Callable[[Callable[[], Probe | Done]], Awaitable[Probe | Done]] = at_once
    """Runs what may take seconds of CPU; beside the loop, so that Ctrl-C works."""


@dataclass(slots=True)
class Session:
    """A measurement: probe after probe, each saved when it is done."""

    spec: Spec
    setup: Setup
    windows: list[MeasuredWindow] = field(default_factory=list)
    history: list[Measured] = field(default_factory=list)
    done: Done | None = None
    search: Search = field(init=False)
    """Says what to measure next."""
    idle: list[Idle] = field(default_factory=list)
    """What the meters read without load."""
    _series: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By window."""
    _at: str = ""
    """The last event's time: that of the document too, so that it can be found in the evidence."""
    _facts: SearchFacts | None = None
    """What the search knew when it was last asked."""
    _ended: str = ""
    """Code of what cut the measurement short."""
    _resumed: bool = False
    _meters: list[MeterFacts] = field(default_factory=list)
    """As they were when a resumed run began: clocks of other hosts were measured then."""

    def __post_init__(self) -> None:
        """Take the search that the spec asks for."""
        self.search = search_of(self.spec, self.setup.trace)

    def go_on(self, rebuilt: Rebuilt) -> None:
        """Take the place of a session that was cut off, as it stood after its last window."""
        self.windows, self.history = rebuilt.windows, rebuilt.history
        self._series, self.idle = rebuilt.series, rebuilt.idle
        self.search, self._facts = rebuilt.search, rebuilt.facts
        self.setup.resolved = rebuilt.begin.resolved
        self._meters = list(rebuilt.begin.meters)
        self._resumed = True

    async def run(self) -> Run:
        """Measure until the search is done; return the document, which is saved too."""
        self.setup.store.begin()
        self._begin()
        self.save()
        try:
            await self._rest(BEFORE)
            while self.done is None:
                step = await self._ask()
                if isinstance(step, Done):
                    await self._rest(AFTER)
                    self.done = step
                    self._event("done", word=step.word, rate_rps=step.rate_rps)
                else:
                    await self.measure(step)
                self.save()
        except asyncio.CancelledError:
            self._end("INTERRUPTED")
            raise
        except ServerError:
            self._end("SERVER_GONE")
            raise
        return self.document()

    async def _rest(self, index: int) -> None:
        """Read the meters for some time without load, if that wasn't done before a kill."""
        seconds = idle_s(self.spec)
        if not seconds or any(each.index == index for each in self.idle):
            return
        when = "before the load" if index == BEFORE else "after the load"
        text = f"reading idle power for {seconds:g} s {when}"
        self.setup.tell({"event": "note", "about": "power", "text": text})
        clock, settle_s = self.setup.clock, self._settle_s()
        begin_s = clock.now() + settle_s
        await clock.sleep_until(begin_s + seconds + settle_s)
        read = self._power_rows(index, begin_s, begin_s + seconds + settle_s)
        self._event("idle", **idle_row(index, seconds))
        self.idle.append(idle_stretch(index, seconds, list(zip(self.meters(), read, strict=True))))

    async def _ask(self) -> Probe | Done:
        """Ask the search what comes next, which may take seconds."""
        restarts = self._facts.restarts if self._facts else 0
        asking = asyncio.ensure_future(
            self.setup.think(lambda: self.search.next(tuple(self.history)))
        )
        done, _ = await asyncio.wait({asking}, timeout=PATIENCE_S)
        if not done:
            self.setup.tell({"event": "note", "about": "search", "text": "fitting the twin…"})
        step = await asking
        self._facts = facts = deepcopy(self.search.facts)
        if facts and facts.restarts > restarts:
            self._event("drift", windows=len(self.history))
            text = "the server's speed has changed: the windows before don't count any more"
            self.setup.tell({"event": "note", "about": "search", "text": text})
        return step

    def _begin(self) -> None:
        """Write down what stands before the first window; of a resumed run, when it went on."""
        setup = self.setup
        if self._resumed:
            self._event("resumed", tool=__version__, windows=len(self.windows))
            stamps = (*setup.resolved.resumed, self._at)
            setup.resolved = replace(setup.resolved, resumed=stamps)
            return
        if setup.trace is not None:
            setup.store.append("trace.jsonl.gz", trace_rows(setup.trace))
        self._event("begin", **begin_row(self.spec, setup.resolved, self.meters(), setup.server))

    def _end(self, code: str) -> None:
        """Save what there is, and why there is no more."""
        self._ended = code
        self._event("stopped", code=code)
        self.save()

    async def measure(self, probe: Probe) -> None:
        """Play one window, judge it, append its evidence and remember its verdict."""
        schedule = draw(self.spec, probe, self.setup.trace)
        row = schedule_row(self.spec, probe, schedule, self.setup.trace)
        self._event("window", **probe_row(probe))  # with its load, whatever happens next
        self.setup.store.append("schedule.jsonl", [row])
        self.setup.prompts.begin(probe.index, schedule.input_tokens, schedule.shared)
        held_events_s = await self._try_out(schedule)
        workers = self.setup.workers(schedule)
        async with staged(
            self.setup.target,
            schedule,
            self.setup.prompts.prompt,
            self.setup.clock,
            self.setup.connect,
            workers,
        ) as playing:
            played, load = await self._play(probe, schedule, playing)
        load = replace(load, workers=workers, held_events_s=held_events_s)
        if schedule.shared is not None:
            schedule.shared.mark(played.traces)
        accounted = self._account(probe, played, load)
        self._keep(accounted)
        if _gone(accounted.window.stats.counts):
            raise ServerError(
                f"no request of window {probe.index} reached the server: it has stopped, "
                "or refuses connections",
                "start it again",
            )

    async def _try_out(self, schedule: Schedule) -> float | None:
        """Return the token events a second that this machine was seen to hold, if it matters.

        A load that may be too much for the client is tried on a stub before the server gets it.
        """
        stamina = self.setup.stamina
        if stamina is None or not stamina.matters(schedule):
            return None
        if stamina.needed(schedule):
            text = "a self-test first: this load may be more than this machine can time"
            self.setup.tell({"event": "note", "about": "client", "text": text})
            steps = await stamina.test(schedule)
            for step in steps:
                self._event("selftest", **step.row())
            if proves_nothing(steps):
                text = "the self-test's own stub was late: it says nothing, the lag alone decides"
                self.setup.tell({"event": "note", "about": "client", "text": text})
                return None
        return stamina.held_events_s

    async def _play(
        self, probe: Probe, schedule: Schedule, playing: Playing
    ) -> tuple[Played, Load]:
        """Play one window from half a second on, and pause."""
        started, wall_s = self.stamp(), self.setup.wall()
        begin_s = self.setup.clock.now()
        t0_s = begin_s + LEAD_S
        window = planned(probe, t0_s)
        watch = Watch(
            self.spec,
            window,
            self.setup.tell,
            self.setup.samplers,
            exact_prompts=not self.setup.target.text_prompts,
            ignore_eos=self.setup.target.asked.ignore_eos,
            cut=probe.cut,
            due=bisect_left(schedule.arrival_s, probe.warmup_s + probe.window_s),
        )
        played = await playing(watch, t0_s)
        if not watch.aborted:
            await self.setup.clock.sleep_until(window.w1_s)  # all may be answered before
        drift_pct = self._drift_pct(wall_s, begin_s)
        for reason, words in played.messages.items():
            self.setup.tell({"event": "note", "about": f"failed ({reason})", "text": words})
        await asyncio.sleep(self._settle_s())
        return played, Load(
            started,
            round((played.t_end_s - t0_s) * 1e6),
            played.cpu_s,
            played.loop_stall_max_s,
            drift_pct,
            watch.aborted,
        )

    def _account(self, probe: Probe, played: Played, load: Load) -> Account:
        """Write the window's evidence, and compute its figures from what was written."""
        store, t0_s = self.setup.store, played.t0_s
        rows = [request_row(trace, probe.index, t0_s) for trace in played.traces]
        store.append("requests.jsonl.gz", rows)
        from_s = t0_s - EDGE_S
        w1_s = t0_s + probe.warmup_s + probe.window_s
        to_s = max(played.t_end_s, w1_s) + self._settle_s()
        read = self._power_rows(probe.index, t0_s, to_s)
        pages = self.setup.scraper.between(from_s, to_s) if self.setup.scraper else []
        said = [page_row(page, probe.index, t0_s) for page in pages]
        if self.setup.scraper:
            store.append("server.jsonl.gz", said)
        self._event("played", **load_row(probe.index, load))
        beside = Beside(list(zip(self.meters(), read, strict=True)), said)
        return account(self.spec, probe, load, rows, beside)

    def _power_rows(self, index: int, t0_s: float, to_s: float) -> list[list[dict[str, Any]]]:
        """Write the readings from shortly before ``t0_s`` on as evidence; return them by meter."""
        read: list[list[dict[str, Any]]] = []
        for number, sampler in enumerate(self.setup.samplers):
            near = sampler.between(t0_s - max(EDGE_S, 3 / sampler.hz), to_s)
            read.append([power_row(sample, index, t0_s) for sample in near])
            self.setup.store.append(power_file(number), read[-1])
        return read

    def meters(self) -> list[MeterFacts]:
        """Return what each meter is, the primary one first."""
        return self._meters or [facts(sampler) for sampler in self.setup.samplers]

    def _settle_s(self) -> float:
        """The pause after a window: the server notices its end, each meter is read past it."""
        return max([self.setup.settle_s, *(3 / sampler.hz for sampler in self.setup.samplers)])

    def _keep(self, accounted: Account) -> None:
        measured = accounted.window
        self.windows.append(measured)
        self.history.append(accounted.measured)
        if accounted.series is not None:
            self._series[measured.window.index] = accounted.series
        record = window_record(measured)
        energy: dict[str, Any] = record.get("energy") or {}
        self.setup.tell(
            {
                "event": "window",
                **{key: record.get(key, False) for key in _SHOWN},
                "j_per_output_token": energy.get("j_per_output_token"),
            }
        )
        for meter in measured.meters:
            if not meter.energy.valid:
                codes = ", ".join(meter.energy.reasons)
                text = f"{meter.facts.name}: its readings can't be used: {codes}"
                self.setup.tell({"event": "note", "about": "meter", "text": text})
        self._event(
            "judged",
            index=measured.window.index,
            passed=measured.stats.passed,
            valid=measured.valid,
            **({"aborted": True} if measured.window.aborted else {}),
        )

    def document(self) -> Run:
        """Return the document of what was measured so far."""
        setup = self.setup
        closing = Closing(
            self._at, setup.store.evidence(), self._series, self._ended, self._facts, self.idle
        )
        return assemble(self.spec, setup.resolved, self.windows, self.done, closing, setup.trace)

    def save(self) -> None:
        """Write the document as it stands."""
        self.setup.store.save(self.document())

    def stamp(self) -> str:
        """Return the wall clock's time, a label."""
        return dt.datetime.fromtimestamp(self.setup.wall(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _event(self, event: str, **facts: Any) -> None:
        self._at = self.stamp()
        self.setup.store.append("events.jsonl", [{"event": event, "at": self._at, **facts}])

    def _drift_pct(self, wall_s: float, begin_s: float) -> float:
        """Return how far the wall clock went from the monotonic one over the window, percent."""
        elapsed_s = self.setup.clock.now() - begin_s
        return 100 * ((self.setup.wall() - wall_s) - elapsed_s) / elapsed_s


_UNREACHED = frozenset({"connect", "reset", "no_response"})
_SHOWN = (
    "index",
    "phase",
    "rate_rps",
    "passed",
    "valid",
    "reasons",
    "aborted",
    "ttft_p99_ms",
    "tpot_p99_ms",
    "goodput_tok_s",
)


def _gone(counts: Tally) -> bool:
    """Tell whether no request got as far as an answer, all for want of a connection."""
    return counts.sent == counts.failed > 0 and counts.reasons.keys() <= _UNREACHED
