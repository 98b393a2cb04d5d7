"""A server that is a twin: it plays the windows a search asks for, without noise, at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.probe import Measured, Probe, Record
from tokenwatt_site.method.rng import derive_seed, rng
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.stationary import with_residuals
from tokenwatt_site.method.twin_player import TwinParams, play_twin
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits
from tokenwatt_site.method.window import MIN_REQUESTS
from tokenwatt_site.method.workloads import Lognormal, Workload

SLO = SpecSlo(ttft_p99_ms=4000, tpot_p99_ms=200)
MIX = Workload("mix", Lognormal(300, 1000, 2400), Lognormal(40, 120, 320))
SERVER = TwinParams(48e-3, 2.4e-3, 4e-3, 12e-3, 8e-5, 4e-9)
"""Slow, so that a window holds few requests: its boundary is near 2.8 requests/s."""
LOOK_EVERY_S = 10.0


def slowness(_: int) -> float:
    """Return the speed of a steady server, window by window."""
    return 1.0


@dataclass(slots=True)
class TwinServer:
    """Measures windows; ``slowness`` of a window multiplies the time of its steps."""

    params: TwinParams = SERVER
    workload: Workload = MIX
    seed: int = 1
    slowness: Callable[[int], float] = slowness
    log: list[Measured] = field(default_factory=list)

    def measure(self, probe: Probe) -> Measured:
        """Play a window; what is open at its end is taken as it stands."""
        w1_s = probe.warmup_s + probe.window_s
        look_s = w1_s + (30.0 if probe.tail_s is None else probe.tail_s)
        schedule = self._schedule(probe, look_s)
        aborted = False
        if probe.cut is not None:
            for number in range(1, int(probe.window_s / LOOK_EVERY_S) + 1):
                at_s = probe.warmup_s + number * LOOK_EVERY_S
                late, slow, n = self._counts(probe, self._records(probe, schedule, at_s), at_s)
                if probe.cut.hit(max(late, slow), n):
                    look_s, aborted = at_s, True
                    break
        records = self._records(probe, schedule, look_s)
        late, slow, n = self._counts(probe, records, look_s)
        measured = Measured(
            probe,
            passed=not aborted and n >= MIN_REQUESTS and 100 * max(late, slow) <= n,
            valid=True,
            undecided=n < MIN_REQUESTS,
            aborted=aborted,
            n=n,
            miss_ttft=late,
            miss_tpot=slow,
            w0_s=probe.warmup_s,
            w1_s=w1_s,
            look_s=look_s,
            records=records,
        )
        self.log.append(measured)
        return measured

    def _schedule(self, probe: Probe, horizon_s: float) -> Schedule:
        own = derive_seed(self.seed, probe.draw, probe.index)
        schedule = poisson_schedule(self.workload, probe.rate_rps, horizon_s, own)
        source = rng(self.seed, "residuals", probe.index)
        return with_residuals(schedule, self.workload, probe.inject, source)

    def _records(self, probe: Probe, schedule: Schedule, until_s: float) -> tuple[Record, ...]:
        params = self.params.scaled(self.slowness(probe.index))
        return records(params, schedule, until_s)

    def _counts(self, probe: Probe, seen: Sequence[Record], look_s: float) -> tuple[int, int, int]:
        limits = Limits.of(SLO)
        ours = [
            r
            for r in seen
            if not r.injected and probe.warmup_s <= r.arrival_s < probe.warmup_s + probe.window_s
        ]
        late, slow = (sum(limits.seen(r, kind, look_s) > 1 for r in ours) for kind in (TTFT, TPOT))
        return late, slow, len(ours)


def records(params: TwinParams, schedule: Schedule, until_s: float) -> tuple[Record, ...]:
    """Return what a client knows at a time of a schedule that a twin has served."""
    sent = sum(at_s < until_s for at_s in schedule.arrival_s)
    columns = (
        schedule.arrival_s[:sent],
        schedule.input_tokens[:sent],
        schedule.output_tokens[:sent],
    )
    played = play_twin(params, *columns, until_s)
    return tuple(
        Record(
            arrival_s=at_s,
            first_s=None if math.isinf(first_s) else first_s,
            last_s=None if math.isinf(last_s) else last_s,
            input_tokens=inputs,
            output_tokens=outputs,
            tokens=tokens,
            finished=tokens == outputs,
            failed=False,
            injected=i < schedule.injected,
        )
        for i, (at_s, inputs, outputs, first_s, last_s, tokens) in enumerate(
            zip(*columns, *played, strict=True)
        )
    )
