"""Plays a schedule against a server: an open loop, which waits for no answer before it sends."""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tokenwatt_site.load.api import Prompt, dialect
from tokenwatt_site.load.clock import Clock
from tokenwatt_site.load.connection import Pool
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.shape import Trust
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

Stop = Callable[[list[RequestTrace], float], bool]

_AHEAD_S = 1.0  # requests are written out so long before their time
_AHEAD_BYTES = 32 * 2**20  # in all
_SOON_S = 0.15  # and find a connection that was opened so long before
_NAP_S = 0.01  # it is not worth waking up for less
_TURN_S = 0.002  # for which the loop handles nothing else while requests are overdue
_TICK_S = 0.02
_TICKS_A_STOP = 5
_NEVER = 2**30
_MISREAD = "a token event was not what its shape says; what came after it was parsed in full"


@dataclass(slots=True)
class Played:
    """What a played schedule left. Times are on the clock that it was played by."""

    traces: list[RequestTrace]
    """Every request that was due, in the order of the schedule; those in flight at the end are
    still "running"."""
    t0_s: float
    t_end_s: float = 0.0
    cpu_s: float = 0.0
    """CPU time of the thread that played."""
    loop_stall_max_s: float = 0.0
    """The longest time for which the event loop handled nothing else."""
    messages: dict[str, str] = field(default_factory=dict)
    """The server's or the system's words about the first failure of each reason. In no evidence."""


async def play(  # noqa: PLR0913, PLR0917 - what is sent, by what means, when it is over
    target: Target,
    schedule: Schedule,
    prompt_of: Callable[[int], Prompt],
    clock: Clock,
    connect: Connector,
    stop: Stop,
    t0_s: float,
) -> Played:
    """Send each request at its time; return when ``stop`` says so, or all are answered.

    Args:
        target: the server and the form of the requests.
        schedule: arrivals in seconds after ``t0_s``, and lengths.
        prompt_of: the prompt of request i; called once each, in order, before its time.
        clock: the clock of all times.
        connect: the way to the server.
        stop: asked with the traces so far and the time, ten times a second. It holds up the loop
            while it runs. When it is true, everything in flight is cut off.
        t0_s: when the schedule starts; at least 0.2 s ahead, or its first requests are late.

    ::

        played = asyncio.Runner(loop_factory=new_loop).run(
            play(target, schedule, prompts, clock, TcpConnector(target), stop, t0_s)
        )
    """
    player = _Player(target, schedule, prompt_of, clock, Pool(connect, clock, target.timeout_s))
    player.played.t0_s = t0_s
    with _quiet_gc():
        before_s = time.thread_time()
        try:
            await player.run(stop)
        finally:
            await player.cut()
        player.played.cpu_s = time.thread_time() - before_s
    return player.played


class _Player:
    def __init__(
        self,
        target: Target,
        schedule: Schedule,
        prompt_of: Callable[[int], Prompt],
        clock: Clock,
        pool: Pool,
    ) -> None:
        self.played = Played([], clock.now())
        self._target = target
        self._schedule = schedule
        self._prompt_of = prompt_of
        self._clock = clock
        self._pool = pool
        self._dialect = dialect(target.api)
        self._asked = target.asked
        self._head = target.head()
        self._trust = Trust()
        self._ready: deque[bytes] = deque()
        self._ready_bytes = 0
        self._written = 0
        self._write_s = 0.0  # what writing one out takes: the longest of late
        self._soon = 0  # requests that are due soon, or were sent
        self._turn_s = 0.0  # when the loop last handled something else
        self._flying: set[Stream] = set()
        self._landed = asyncio.Event()

    async def run(self, stop: Stop) -> None:
        """Play until the load is over."""
        tasks = [asyncio.create_task(self._send_all()), asyncio.create_task(self._watch(stop))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def cut(self) -> None:
        """Cut off what is in flight."""
        self.played.t_end_s = now_s = self._clock.now()
        if self._trust.wrong:
            self.played.messages["misread"] = _MISREAD
        for stream in self._flying:
            stream.cancel(now_s)
        await self._pool.close()

    async def _send_all(self) -> None:
        for index, arrival_s in enumerate(self._schedule.arrival_s):
            due_s = self.played.t0_s + arrival_s
            await self._until(due_s)
            request = self._ready.popleft()
            self._ready_bytes -= len(request)
            self._send(index, due_s, request)
        while self._flying:
            self._landed.clear()
            await self._landed.wait()

    async def _until(self, due_s: float) -> None:
        """Return when the next request is due, having written it and, as time allows, more.

        Requests that are overdue go out in one turn of the loop, so that it catches up at once
        after whatever has held it up.
        """
        while not self._ready or self._clock.now() < due_s:
            now_s = self._clock.now()
            if not self._ready or (self._may_write(due_s) and now_s + 2 * self._write_s < due_s):
                self._write()
                await self._let_others(0.0 if now_s < due_s else _TURN_S)
            else:
                self._pool.prepare(self._wanted(now_s))
                wake_s = due_s - _SOON_S
                await self._clock.sleep_until(wake_s if wake_s - now_s > _NAP_S else due_s)
                self._turn_s = self._clock.now()
        await self._let_others(_TURN_S)

    async def _let_others(self, after_s: float) -> None:
        """Let the loop handle what it has, when it last could more than ``after_s`` ago."""
        if self._clock.now() - self._turn_s >= after_s:
            await asyncio.sleep(0)
            self._turn_s = self._clock.now()

    def _may_write(self, due_s: float) -> bool:
        return (
            self._written < len(self._schedule)
            and self._ready_bytes < _AHEAD_BYTES
            and self.played.t0_s + self._schedule.arrival_s[self._written] <= due_s + _AHEAD_S
        )

    def _write(self) -> None:
        index, before_s = self._written, self._clock.now()
        body = self._target.body(self._prompt_of(index), self._schedule.output_tokens[index])
        request = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        self._ready.append(request)
        self._ready_bytes += len(request)
        self._written += 1
        self._write_s = max(self._clock.now() - before_s, 0.9 * self._write_s)

    def _wanted(self, now_s: float) -> int:
        """Return how many connections the requests of the next moment take."""
        arrivals_s, soon_s = self._schedule.arrival_s, now_s + 2 * _SOON_S - self.played.t0_s
        while self._soon < len(arrivals_s) and arrivals_s[self._soon] <= soon_s:
            self._soon += 1
        left = self._target.max_concurrency - len(self._flying)
        return min(self._soon - len(self.played.traces), left)

    def _send(self, index: int, due_s: float, request: bytes) -> None:
        trace = RequestTrace(
            index=index,
            t_sched_s=due_s,
            input_tokens=self._schedule.input_tokens[index],
            output_tokens=self._schedule.output_tokens[index],
            injected=index < self._schedule.injected,
        )
        self.played.traces.append(trace)
        stream = Stream(trace, request, self._dialect, self._asked, self._on_end, self._trust)
        full = len(self._flying) >= self._target.max_concurrency
        self._flying.add(stream)
        if full:
            stream.end("client_limit", self._clock.now())
        else:
            self._pool.send(stream)

    def _on_end(self, stream: Stream) -> None:
        self._flying.discard(stream)
        if not self._flying:
            self._landed.set()
        if stream.trace.reason:
            message = self._target.without_key(stream.message)
            self.played.messages.setdefault(stream.trace.reason, message)

    async def _watch(self, stop: Stop) -> None:
        """Ask whether the load is over, and see how late the loop wakes up."""
        ticks, before_s = 0, self._clock.now()
        while True:
            await asyncio.sleep(_TICK_S)
            now_s = self._clock.now()
            stall_s = now_s - before_s - _TICK_S
            self.played.loop_stall_max_s = max(self.played.loop_stall_max_s, stall_s)
            before_s, ticks = now_s, ticks + 1
            if ticks % _TICKS_A_STOP == 0 and stop(self.played.traces, now_s):
                return


@contextmanager
def _quiet_gc() -> Generator[None]:
    """Keep the garbage collector to what is young: a round over everything holds up the loop."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
