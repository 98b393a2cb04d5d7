"""What this machine can send and read without being late: the client against a server of truth.

The stub is on this machine too, so that it takes a part of what the client could have: a limit
found here is a safe one.
"""

import asyncio
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.player import Played
from tokenwatt_site.load.stub import ITL_S, TTFT_S
from tokenwatt_site.load.target import Target
from tokenwatt_site.load.workers import EVENTS_A_PROCESS_S, expected_events_s, staged, workers_for
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.workloads import Fixed, Workload

LAG_S = 0.005
"""The 99th percentile of the dispatch lag from which on a rate isn't held."""
UNTESTED_EVENTS_S = EVENTS_A_PROCESS_S / 3
"""Token events a second that any machine is taken to hold."""
RATES = (5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000, 150_000)
_TOKENS = 64
_RAMP_S = TTFT_S + _TOKENS * ITL_S
_LEAD_S = 0.3
_LONG_S, _SHORT_S = 1.7, 0.8
_DELIVERED = 0.95
_MARGIN = 1.25
_START_S = 30.0


@dataclass(frozen=True, slots=True)
class Step:
    """One rate that was tried."""

    asked_events_s: float
    events_s: float
    """Token events a second that were read, once as many streams ended as began."""
    delivered: float
    """Their share of those that were due in the same seconds."""
    lag_p99_s: float
    ttft_error_p50_s: float
    """Stamp of the first token after the stub's own."""
    ttft_error_p99_s: float
    cpu_us_per_event: float
    workers: int
    stub_late_p99_s: float
    """How late the stub itself was."""

    @property
    def held(self) -> bool:
        """Tell whether requests went out on time and the tokens came."""
        return self.lag_p99_s < LAG_S and self.delivered >= _DELIVERED

    @property
    def stub_bound(self) -> bool:
        """Tell whether the stub was late itself: the client may be able to more."""
        return not self.held and self.stub_late_p99_s >= LAG_S

    def row(self) -> dict[str, Any]:
        """Return the step as JSON has it; what is infinite is null."""
        return {
            name: value if math.isfinite(value) else None for name, value in asdict(self).items()
        } | {"held": self.held, "stub_bound": self.stub_bound}


async def rising(upto_events_s: float, tell: Callable[[Step], None]) -> list[Step]:
    """Try one rate after the other until one isn't held or ``upto_events_s`` is.

    A rate that isn't held is tried once more: a machine may be busy for a second.
    """
    steps: list[Step] = []
    for rate in [*(rate for rate in RATES if rate < upto_events_s), upto_events_s]:
        step = await try_rate(rate, _LONG_S)
        if not step.held:
            step = await try_rate(rate, _LONG_S)
        steps.append(step)
        tell(step)
        if not step.held:
            break
    return steps


async def try_rate(events_s: float, seconds: float) -> Step:
    """Play a load of 64-token answers at this rate for 1.3 s, and then measure so long."""
    rate_rps = events_s / _TOKENS
    workload = Workload("self-test", Fixed(1), Fixed(_TOKENS))
    schedule = poisson_schedule(workload, rate_rps, _RAMP_S + seconds, seed=0)
    workers = workers_for(schedule)
    async with _Stubs(workers) as stubs:
        target = Target(stubs.url, "completions", "stub", max_concurrency=len(schedule))
        clock = RealClock()
        async with staged(
            target, schedule, _prompt, clock, TcpConnector(target), workers
        ) as playing:
            end_s = clock.now() + _LEAD_S + _RAMP_S + seconds
            played = await playing(lambda _, now_s: now_s >= end_s, end_s - _RAMP_S - seconds)
        await stubs.end()
    return _step(events_s, played, (_RAMP_S, _RAMP_S + seconds), stubs, workers)


def _prompt(index: int) -> list[int]:
    """The stub knows a request by its prompt."""
    return [index]


def _step(
    events_s: float, played: Played, span_s: tuple[float, float], stubs: "_Stubs", workers: int
) -> Step:
    w0_s, w1_s = (played.t0_s + s for s in span_s)
    due = [t for t in played.traces if w0_s <= t.t_sched_s < w1_s]
    lags = sorted(math.inf if t.t_send_s is None else t.t_send_s - t.t_sched_s for t in due)
    errors = sorted(
        trace.events_s[0] - stubs.first_s[trace.index]
        for trace in due
        if trace.events_s and trace.index in stubs.first_s
    )
    read = sum(w0_s <= t < w1_s for trace in played.traces for t in trace.events_s)
    due_events = sum(_events_due(trace.t_sched_s, w0_s, w1_s) for trace in played.traces)
    events = sum(len(trace.events_s) for trace in played.traces)
    return Step(
        asked_events_s=events_s,
        events_s=read / (w1_s - w0_s),
        delivered=read / due_events if due_events else 0.0,
        lag_p99_s=nearest_rank(lags, 0.99) if lags else math.inf,
        ttft_error_p50_s=nearest_rank(errors, 0.5) if errors else math.inf,
        ttft_error_p99_s=nearest_rank(errors, 0.99) if errors else math.inf,
        cpu_us_per_event=1e6 * played.cpu_s * workers / events if events else math.inf,
        workers=workers,
        stub_late_p99_s=stubs.late_p99_s,
    )


def _events_due(sched_s: float, w0_s: float, w1_s: float) -> int:
    """Return how many tokens of a request the stub sends in [w0_s, w1_s)."""
    first_s = sched_s + TTFT_S
    before, until = (
        min(max(math.ceil((at_s - first_s) / ITL_S), 0), _TOKENS) for at_s in (w0_s, w1_s)
    )
    return until - before


class Stamina:
    """What the client is known to hold, tested before a load that may be too much for it."""

    def __init__(self) -> None:
        self.held_events_s = UNTESTED_EVENTS_S
        """Token events a second."""

    def matters(self, schedule: Schedule) -> bool:
        """Tell whether a load is above what any machine is taken to hold."""
        return expected_events_s(schedule) > UNTESTED_EVENTS_S

    def needed(self, schedule: Schedule) -> bool:
        """Tell whether a load is above what is known to be held."""
        return expected_events_s(schedule) > self.held_events_s

    async def test(self, schedule: Schedule) -> list[Step]:
        """Try somewhat more than a load takes, and if that isn't held half of it: 5 s at most."""
        wanted = min(_MARGIN * expected_events_s(schedule), RATES[-1])
        steps: list[Step] = []
        for rate in (wanted, wanted / 2):
            steps.append(await try_rate(rate, _SHORT_S))
            if steps[-1].held:
                self.held_events_s = max(self.held_events_s, rate)
                break
        return steps


def proves_nothing(steps: Sequence[Step]) -> bool:
    """Tell whether the stub was the one who couldn't: nothing is known of the client then."""
    return all(step.stub_bound for step in steps)


@dataclass(slots=True)
class _Stubs:
    """As many stubs as the client has processes, on one port."""

    number: int
    url: str = ""
    first_s: dict[int, float] = field(default_factory=dict[int, float])
    """When the first token of each request was sent."""
    late_p99_s: float = 0.0
    _processes: list[asyncio.subprocess.Process] = field(
        default_factory=list[asyncio.subprocess.Process]
    )

    async def __aenter__(self) -> Self:
        port = 0
        try:
            for _ in range(self.number):
                port = await self._start(port)
        except BaseException:
            await self._kill()
            raise
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._kill()

    async def end(self) -> None:
        """End the stubs and take in what they know."""
        for process in self._processes:
            assert process.stdin is not None  # noqa: S101 - asked for in `_start`
            process.stdin.close()
            said, _ = await process.communicate()
            try:
                truth: dict[str, Any] = json.loads(said)
            except ValueError:
                raise _no_stub("died") from None
            self.first_s |= {int(index): t_s for index, t_s in truth["first_s"].items()}
            self.late_p99_s = max(self.late_p99_s, truth["late_p99_s"])

    async def _start(self, port: int) -> int:
        try:
            process = await asyncio.create_subprocess_exec(
                # -P: a module in the current folder may be a stranger's
                *(sys.executable, "-P", "-m", "tokenwatt_site.load.stub", str(port)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=2**26,
                start_new_session=True,
            )
        except OSError as error:
            raise _no_stub(f"can't be started: {error.strerror or error}") from None
        self._processes.append(process)
        assert process.stdout is not None  # noqa: S101 - asked for above
        try:
            async with asyncio.timeout(_START_S):
                found: int = json.loads(await process.stdout.readline())["port"]
        except (TimeoutError, ValueError):
            raise _no_stub("doesn't start") from None
        return found

    async def _kill(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def _no_stub(what: str) -> TokenwattError:
    return TokenwattError(
        f"the self-test's stub server {what}", "see whether this machine has memory left"
    )
