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
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

Stop = Callable[[list[RequestTrace], float], bool]

_AHEAD = 16  # requests written out before their time
_SLACK_S = 0.004  # none is written out when the next one is due this soon
_TICK_S = 0.02
_TICKS_A_STOP = 5


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
        self._ready: deque[bytes] = deque()
        self._written = 0
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
        for stream in self._flying:
            stream.cancel(now_s)
        await self._pool.close()

    async def _send_all(self) -> None:
        for index, arrival_s in enumerate(self._schedule.arrival_s):
            due_s = self.played.t0_s + arrival_s
            await self._write_ahead(due_s)
            await self._clock.sleep_until(due_s)
            self._send(index, due_s, self._ready.popleft())
        while self._flying:
            self._landed.clear()
            await self._landed.wait()

    async def _write_ahead(self, due_s: float) -> None:
        """Write out the next request at least, and more while there is time."""
        while self._written < len(self._schedule) and len(self._ready) < _AHEAD:
            if self._ready and self._clock.now() > due_s - _SLACK_S:
                return
            index = self._written
            body = self._target.body(self._prompt_of(index), self._schedule.output_tokens[index])
            self._ready.append(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
            self._written += 1
            await asyncio.sleep(0)

    def _send(self, index: int, due_s: float, request: bytes) -> None:
        trace = RequestTrace(
            index=index,
            t_sched_s=due_s,
            input_tokens=self._schedule.input_tokens[index],
            output_tokens=self._schedule.output_tokens[index],
            injected=index < self._schedule.injected,
        )
        self.played.traces.append(trace)
        stream = Stream(trace, request, self._dialect, self._asked, self._on_end)
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
    """Take what exists out of the garbage collector's rounds, which would hold up the loop."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
