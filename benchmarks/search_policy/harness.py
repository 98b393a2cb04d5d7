"""Windows of a search, played on a server in virtual time, with the rules of the product.

What it stands for: a client without lag, one server whose clock runs on from window to window, and
two seconds for the streams of a window to be cancelled. The rules of a window are those of
``method/window.py`` and of the session's watch, on arrays instead of traces: a search of half an
hour takes a fraction of a second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.search_policy.native import Seen, Server
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.draw import draw, tail_s
from tokenwatt_site.method.probe import Measured, Probe, Record
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.slo import Slo
from tokenwatt_site.method.window import MIN_REQUESTS
from tokenwatt_site.watch import PATIENCE_S, open_share

CANCEL_S = 2.0
LOOK_EVERY_S = 10.0  # at a window with a cut
WATCH_EVERY_S = 1.0  # after a window whose requests are all waited for


@dataclass(slots=True)
class Counts:
    """Verdicts of a cohort."""

    n: int = 0
    late: int = 0
    """Miss the TTFT limit."""
    slow: int = 0
    """Miss the TPOT limit."""

    @property
    def misses(self) -> int:
        """The larger of the two."""
        return max(self.late, self.slow)


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of a load at one time; requests are numbers. Times from its start."""

    schedule: Schedule
    slo: Slo
    t0_s: float
    seen: Seen

    def decided(self, i: int, now_s: float) -> bool:
        """Tell whether a request finished or is certain to miss a limit."""
        output, first_s = self.schedule.output_tokens[i], self.seen.first_s[i] - self.t0_s
        if self.seen.tokens[i] == output:
            return True
        if 1000 * (min(first_s, now_s) - self.schedule.arrival_s[i]) > self.slo.ttft_p99_ms:
            return True
        return 1000 * (now_s - first_s) > self.slo.tpot_p99_ms * (output - 1)

    def late(self, i: int, now_s: float) -> bool:
        """Tell whether the first token, or what it has waited for it so far, is over its limit."""
        first_s = min(self.seen.first_s[i] - self.t0_s, now_s)
        return 1000 * (first_s - self.schedule.arrival_s[i]) > self.slo.ttft_p99_ms

    def slow(self, i: int) -> bool:
        """Tell whether the time per token so far is over its limit."""
        tokens = self.seen.tokens[i]
        if tokens < 2:  # noqa: PLR2004 - a mean needs two
            return False
        spent_s = self.seen.last_s[i] - self.seen.first_s[i]
        return 1000 * spent_s > self.slo.tpot_p99_ms * (tokens - 1)

    def running(self, i: int) -> bool:
        """Tell whether tokens are missing."""
        return self.seen.tokens[i] < self.schedule.output_tokens[i]


@dataclass(slots=True)
class Bench:
    """A server under test, and the clock of the run."""

    spec: Spec
    server: Server
    recording: bool = True
    """Whether a window keeps its requests."""
    now_s: float = 0.0
    """Server time so far."""
    windows: list[Measured] = field(default_factory=list)

    def measure(self, probe: Probe) -> Measured:
        """Play a window and judge it."""
        schedule = draw(self.spec, probe)
        t0_s = self.now_s
        self.server.idle_to(t0_s)
        self.server.load(
            [t0_s + t for t in schedule.arrival_s], schedule.input_tokens, schedule.output_tokens
        )
        w1_s = probe.warmup_s + probe.window_s
        cohort = [
            i
            for i in range(schedule.injected, len(schedule))
            if probe.warmup_s <= schedule.arrival_s[i] < w1_s
        ]
        playing = _Playing(self, probe, schedule, cohort)
        look_s, aborted = playing.play()
        load = playing.look(look_s)
        early = aborted or probe.tail_s is not None
        counts = _final(load, [i for i in cohort if schedule.arrival_s[i] < look_s], look_s, early)
        self.now_s = t0_s + look_s + CANCEL_S
        few = counts.n < MIN_REQUESTS
        measured = Measured(
            probe,
            passed=not few and not aborted and 100 * counts.misses <= counts.n,
            valid=True,
            undecided=few,
            aborted=aborted,
            n=counts.n,
            miss_ttft=counts.late,
            miss_tpot=counts.slow,
            w0_s=probe.warmup_s,
            w1_s=w1_s,
            look_s=look_s,
            records=_records(load, look_s) if self.recording else (),
        )
        self.windows.append(measured)
        return measured


class _Playing:
    """A window on its way."""

    def __init__(
        self, bench: Bench, probe: Probe, schedule: Schedule, cohort: Sequence[int]
    ) -> None:
        self._bench, self._probe, self._schedule, self._cohort = bench, probe, schedule, cohort
        self._t0_s = bench.now_s

    def look(self, now_s: float) -> Load:
        """Let the server run to a time, and look."""
        until_s = self._t0_s + now_s
        self._bench.server.run(until_s)
        seen = self._bench.server.look(until_s)
        return Load(self._schedule, self._bench.spec.slo, self._t0_s, seen)

    def play(self) -> tuple[float, bool]:
        """Return when the load ends, and whether it was given up."""
        w1_s = self._probe.warmup_s + self._probe.window_s
        if self._probe.cut is not None and (at_s := self._cut_at()) is not None:
            return at_s, True
        if self._probe.tail_s is not None:
            return w1_s + self._probe.tail_s, False
        return self._decided_at(w1_s), False

    def _cut_at(self) -> float | None:
        """Return when the window is given up, if it is."""
        probe, arrival_s = self._probe, self._schedule.arrival_s
        counts, still, new = Counts(), list[int](), 0
        for number in range(1, int(probe.window_s / LOOK_EVERY_S) + 1):
            now_s = probe.warmup_s + number * LOOK_EVERY_S
            load = self.look(now_s)
            while new < len(self._cohort) and arrival_s[self._cohort[new]] < now_s:
                still.append(self._cohort[new])
                new += 1
            asked, still = still, []
            for i in asked:
                if not load.decided(i, now_s):
                    still.append(i)
                    continue
                late = load.late(i, now_s)
                counts.n += 1
                counts.late += late
                counts.slow += (load.running(i) and not late) or load.slow(i)
            if probe.cut is not None and probe.cut.hit(counts.misses, counts.n):
                return now_s
        return None

    def _decided_at(self, w1_s: float) -> float:
        """Return when the cohort has its verdicts, or nearly all of it after some time."""
        timeout_s = float(self._bench.spec.measurement.request_timeout_s)
        most_s = min(timeout_s, tail_s(self._bench.spec))
        still, late_s, share = self._cohort, 0.0, open_share(self._bench.spec)
        while True:
            load = self.look(w1_s + late_s)
            still = [i for i in still if not load.decided(i, w1_s + late_s)]
            allowed = share * len(self._cohort) if late_s >= PATIENCE_S else 0
            if len(still) <= allowed or late_s >= most_s:
                return w1_s + late_s
            late_s += WATCH_EVERY_S


def _final(load: Load, cohort: Sequence[int], look_s: float, early: bool) -> Counts:  # noqa: FBT001
    """Count the misses. What is open at the end is one, but in a window that ended early."""
    counts = Counts(len(cohort))
    for i in cohort:
        running = load.running(i)
        never = math.isinf(load.seen.first_s[i])
        counts.late += load.late(i, look_s) or (never and not early)
        counts.slow += load.slow(i) or (running and not early)
    return counts


def _records(load: Load, look_s: float) -> tuple[Record, ...]:
    schedule, seen, t0_s = load.schedule, load.seen, load.t0_s
    records: list[Record] = []
    for i in range(len(schedule)):
        if schedule.arrival_s[i] >= look_s:
            break
        tokens = seen.tokens[i]
        records.append(
            Record(
                arrival_s=schedule.arrival_s[i],
                first_s=seen.first_s[i] - t0_s if tokens else None,
                last_s=seen.last_s[i] - t0_s if tokens else None,
                input_tokens=schedule.input_tokens[i],
                output_tokens=schedule.output_tokens[i],
                tokens=tokens,
                finished=tokens == schedule.output_tokens[i],
                failed=False,
                injected=i < schedule.injected,
            )
        )
    return tuple(records)
