"""Everything that a measurement holds while it runs, and how one window is measured.

The clock, the way to the server and the wall clock come from outside, so that a whole measurement
runs in virtual time too.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import ServerError
from tokenwatt_site.load.clock import Clock
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.assemble import Resolved, assemble
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.evidence import power_row, request_row, sample_of, trace_of
from tokenwatt_site.method.figures import MeasuredWindow, MeterWindow, window_record
from tokenwatt_site.method.ladder import next_probe
from tokenwatt_site.method.probe import Done, Measured, Probe
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.series import series
from tokenwatt_site.method.window import Tally, Window, judge
from tokenwatt_site.method.workloads import workload_of
from tokenwatt_site.power.sampler import Sampler
from tokenwatt_site.store import RunStore
from tokenwatt_site.watch import Watch

LEAD_S = 0.5
"""Between drawing a schedule and its first second."""
SETTLE_S = 1.0
"""After all streams are cancelled: servers notice within a second."""
EDGE_S = 2.0
"""Power samples are kept from this long before a warm-up."""
DRIFT_WARN_PCT = 1.0


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


@dataclass(slots=True)
class Session:
    """A measurement: probe after probe, each saved when it is done."""

    spec: Spec
    setup: Setup
    windows: list[MeasuredWindow] = field(default_factory=list)
    history: list[Measured] = field(default_factory=list)
    done: Done | None = None
    _series: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By window."""

    async def run(self) -> Run:
        """Measure until the search is done; return the document, which is saved too."""
        self.setup.store.begin()
        self.save()
        try:
            while self.done is None:
                step = next_probe(self.history, self.spec.sweep, self.spec.measurement)
                if isinstance(step, Done):
                    self.done = step
                else:
                    await self.measure(step)
                self.save()
        except asyncio.CancelledError:
            self._event("interrupted")
            self.save()
            raise
        except ServerError:
            self._event("stopped")
            self.save()
            raise
        return self.document()

    async def measure(self, probe: Probe) -> None:
        """Play one window, judge it, append its evidence and remember its verdict."""
        schedule = self.draw(probe)
        self.setup.prompts.begin(probe.index, schedule.input_tokens)
        started, wall_s = self.stamp(), self.setup.wall()
        begin_s = self.setup.clock.now()
        t0_s = begin_s + LEAD_S
        w0_s = t0_s + probe.warmup_s
        window = Window(
            probe.index, probe.phase, probe.rate_rps, w0_s, w0_s + probe.window_s, probe.warmup_s
        )
        self._event("window", index=probe.index, phase=probe.phase, rate_rps=probe.rate_rps)
        watch = Watch(
            self.spec,
            window,
            self.setup.tell,
            self.setup.samplers,
            exact_prompts=not self.setup.target.text_prompts,
            ignore_eos=self.setup.target.asked.ignore_eos,
        )
        played = await play(
            self.setup.target,
            schedule,
            self.setup.prompts.prompt,
            self.setup.clock,
            self.setup.connect,
            watch,
            t0_s,
        )
        await self.setup.clock.sleep_until(window.w1_s)  # all may be answered before
        drift_pct = self._drift_pct(wall_s, begin_s)
        for reason, words in played.messages.items():
            self.setup.tell({"event": "note", "about": f"failed ({reason})", "text": words})
        await asyncio.sleep(self._settle_s())
        measured = self._account(window, played, t0_s, (started, drift_pct))
        self._keep(probe, measured)
        if _gone(measured.stats.counts):
            raise ServerError(
                f"no request of window {window.index} reached the server: it has stopped, "
                "or refuses connections",
                "start it again and measure anew",
            )

    def draw(self, probe: Probe) -> Schedule:
        """Draw a window's whole load: warm-up, window, arrivals until the last verdict is due."""
        seed = derive_seed(self.spec.workload.seed, "schedule", probe.index)
        workload = workload_of(self.spec.workload)
        horizon_s = probe.warmup_s + probe.window_s + tail_s(self.spec)
        schedule = poisson_schedule(workload, probe.rate_rps, horizon_s, seed)
        row = {
            "w": probe.index,
            "rate_rps": probe.rate_rps,
            "seed": str(seed),
            "requests": len(schedule),
            "horizon_s": horizon_s,
            "sha256": schedule.digest(),
        }
        self.setup.store.append("schedule.jsonl", [row])
        return schedule

    def _account(
        self, window: Window, played: Played, t0_s: float, told: tuple[str, float]
    ) -> MeasuredWindow:
        """Write the window's evidence, and compute its figures from what was written."""
        store, index = self.setup.store, window.index
        rows = [request_row(trace, index, t0_s) for trace in played.traces]
        store.append("requests.jsonl.gz", rows)
        traces = [trace_of(row) for row in rows]
        local = Window(
            index,
            window.phase,
            window.rate_rps,
            window.w0_s - t0_s,
            window.w1_s - t0_s,
            window.warmup_s,
        )
        end_s = max(played.t_end_s, window.w1_s) - t0_s
        stats = judge(traces, local, self.spec.slo, end_s)
        meters, samples = self._power(local, t0_s, end_s)
        if window.phase != "search":
            devices = self.setup.samplers[0].meter.devices if self.setup.samplers else ()
            self._series[window.index] = series(local, traces, samples, devices, end_s)
        started, drift_pct = told
        reasons = [*stats.reasons]
        if abs(drift_pct) > DRIFT_WARN_PCT:
            reasons.append("CLOCK")
        client = {
            "lag_p99_ms": _ms(stats.client.lag_p99_s),
            "lag_max_ms": _ms(stats.client.lag_max_s),
            "gap_cv": stats.client.gap_cv,
            "cpu_share": played.cpu_s / max(played.t_end_s - played.t0_s, 1e-9),
            "loop_stall_max_ms": _ms(played.loop_stall_max_s),
            "clock_drift_pct": drift_pct,
        }
        return MeasuredWindow(
            local, stats, tuple(meters), client, started, not reasons, tuple(reasons)
        )

    def _power(
        self, window: Window, t0_s: float, end_s: float
    ) -> tuple[list[MeterWindow], list[PowerSample]]:
        """Return each meter's window, and the primary meter's samples, from the rows written."""
        meters: list[MeterWindow] = []
        first: list[PowerSample] = []
        for number, sampler in enumerate(self.setup.samplers):
            near = sampler.between(
                t0_s + window.w0_s - window.warmup_s - EDGE_S, t0_s + end_s + self._settle_s()
            )
            rows = [power_row(sample, window.index, t0_s) for sample in near]
            name = "power.jsonl.gz" if number == 0 else f"power-{number + 1}.jsonl.gz"
            self.setup.store.append(name, rows)
            samples = [sample_of(row) for row in rows]
            energy = energy_window(
                samples, sampler.meter.devices, window.w0_s, window.w1_s, sampler.hz
            )
            meters.append(MeterWindow(sampler.meter.scope, energy))
            first = first or samples
        return meters, first

    def _settle_s(self) -> float:
        """The pause after a window: the server notices its end, each meter is read past it."""
        return max([self.setup.settle_s, *(2 / sampler.hz for sampler in self.setup.samplers)])

    def _keep(self, probe: Probe, measured: MeasuredWindow) -> None:
        window = measured.window
        self.windows.append(measured)
        stats = measured.stats
        self.history.append(Measured(probe, stats.passed, measured.valid, stats.undecided_n))
        record = window_record(measured)
        energy: dict[str, Any] = record.get("energy") or {}
        self.setup.tell(
            {
                "event": "window",
                **{key: record[key] for key in _SHOWN},
                "j_per_output_token": energy.get("j_per_output_token"),
            }
        )
        if measured.meters and not measured.meters[0].energy.valid:
            codes = ", ".join(measured.meters[0].energy.reasons)
            self.setup.tell(
                {"event": "note", "about": "meter", "text": f"its readings can't be used: {codes}"}
            )
        self._event(
            "judged", index=window.index, passed=measured.stats.passed, valid=measured.valid
        )

    def document(self) -> Run:
        """Return the document of what was measured so far."""
        closing = (self.stamp(), self.setup.store.evidence(), self._series)
        return assemble(self.spec, self.setup.resolved, self.windows, self.done, closing)

    def save(self) -> None:
        """Write the document as it stands."""
        self.setup.store.save(self.document())

    def stamp(self) -> str:
        """Return the wall clock's time, a label."""
        return dt.datetime.fromtimestamp(self.setup.wall(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _event(self, event: str, **facts: Any) -> None:
        self.setup.store.append("events.jsonl", [{"event": event, "at": self.stamp(), **facts}])

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
    "ttft_p99_ms",
    "tpot_p99_ms",
    "goodput_tok_s",
)


def _gone(counts: Tally) -> bool:
    """Tell whether no request got as far as an answer, all for want of a connection."""
    return counts.sent == counts.failed > 0 and counts.reasons.keys() <= _UNREACHED


def tail_s(spec: Spec) -> float:
    """Return how long after a window every request of it has its verdict, whatever happens.

    By then it has no token though the TTFT limit has passed, or its running TPOT is over, or it
    has all its tokens.
    """
    longest = workload_of(spec.workload).output.most()
    bound = (spec.slo.ttft_p99_ms + spec.slo.tpot_p99_ms * longest) / 1000 + 1
    return min(bound, float(spec.measurement.request_timeout_s))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else max(0.0, 1000 * seconds)
