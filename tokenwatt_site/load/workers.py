"""Plays a load over several processes where one would be too slow, and as one process would.

Each worker has every n-th request of the one schedule, with its prompt and its absolute time on the
machine's one monotonic clock: what is sent doesn't depend on how many there are. A light load stays
in this process; more processes than needed make requests late.
"""

import asyncio
import math
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load.api import Prompt
from tokenwatt_site.load.clock import Clock
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.player import Played, Stop, play
from tokenwatt_site.load.target import Target
from tokenwatt_site.load.worker import START
from tokenwatt_site.load.worker_wire import LENGTH_BYTES, Ended, Job, Kind, Mirror, packed, unpacked
from tokenwatt_site.method.schedule import Schedule

EVENTS_A_PROCESS_S = 25_000
"""Token events a second that one process is sure to hold."""
START_S = 60.0
SILENT_S = 30.0
"""Workers speak every 0.3 s; one that is silent for so long has been stopped."""
_TICK_S = 0.1
_SHOWN = 500


class Playing(Protocol):
    """A load that is ready to be played, see :func:`tokenwatt_site.load.player.play`."""

    async def __call__(self, stop: Stop, t0_s: float) -> Played:
        """Play it from ``t0_s`` on."""
        ...


def workers_for(schedule: Schedule) -> int:
    """Return how many processes a load takes: 1 is this one, and never more than processors.

    >>> from array import array
    >>> light = Schedule(array("d", [0.0, 60.0]), array("q", [9, 9]), array("q", [5, 5]), 0, 1.0)
    >>> workers_for(light)
    1
    """
    needed = math.ceil(expected_events_s(schedule) / EVENTS_A_PROCESS_S)
    return max(1, min(needed, len(os.sched_getaffinity(0))))


def expected_events_s(schedule: Schedule) -> float:
    """Return the token events a second of a load whose server keeps up with it."""
    arrivals = len(schedule) - schedule.injected
    return schedule.rate_rps * sum(schedule.output_tokens[-arrivals:]) / arrivals if arrivals else 0


@asynccontextmanager
async def staged(
    target: Target,
    schedule: Schedule,
    prompt_of: Callable[[int], Prompt],
    clock: Clock,
    connect: Connector,
    workers: int = 1,
) -> AsyncGenerator[Playing]:
    """Make a load ready, so that its workers are up before the schedule starts.

    Args:
        target: the server and the form of the requests.
        schedule: all requests.
        prompt_of: the prompt of request i; with several workers it must be picklable.
        clock: the clock of all times; with several workers the machine's monotonic one.
        connect: the way to the server; workers make their own.
        workers: how many processes; 1 is this one, and starts none.

    ::

        async with staged(target, schedule, prompts.prompt, clock, connect, 2) as playing:
            played = await playing(stop, clock.now() + 0.5)

    Raises:
        TokenwattError: a worker can't be started, or dies.
    """
    if workers == 1:
        yield partial(_alone, target, schedule, prompt_of, clock, connect)
        return
    async with AsyncExitStack() as stack:
        jobs = [
            Job(_share(target, i, workers), schedule.stripe(i, workers), prompt_of, i, workers)
            for i in range(workers)
        ]
        crew: list[_Worker] = []
        for job in jobs:
            crew.append(await _Worker.start(job, clock))
            stack.push_async_callback(crew[-1].close)
        for worker in crew:
            await worker.ready()
        yield _Crew(crew, schedule, clock).play


async def _alone(  # noqa: PLR0913, PLR0917 - those of `play`
    target: Target,
    schedule: Schedule,
    prompt_of: Callable[[int], Prompt],
    clock: Clock,
    connect: Connector,
    stop: Stop,
    t0_s: float,
) -> Played:
    return await play(target, schedule, prompt_of, clock, connect, stop, t0_s)


def _share(target: Target, number: int, of: int) -> Target:
    """Share the allowed concurrency out; together the workers never exceed it."""
    return replace(target, max_concurrency=(target.max_concurrency + of - 1 - number) // of)


@dataclass(slots=True)
class _Worker:
    """One process, as the measurement sees it."""

    process: asyncio.subprocess.Process
    job: Job
    clock: Clock
    as_of_s: float
    """What it has told is everything up to here."""
    ended: Ended | None = None

    @classmethod
    async def start(cls, job: Job, clock: Clock) -> "_Worker":
        """Start the process and give it its job.

        In a session of its own: Ctrl-C ends it through its standard input, once, and in order.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                # -P: a module in the current folder may be a stranger's
                *(sys.executable, "-P", "-m", "tokenwatt_site.load.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise _lost(job, f"can't be started: {error.strerror or error}") from None
        assert process.stdin is not None  # noqa: S101 - asked for above
        process.stdin.write(packed(job))
        return cls(process, job, clock, clock.now())

    async def ready(self) -> None:
        """Wait until it says that it could start."""
        try:
            async with asyncio.timeout(START_S):
                kind, value = await self.hear()
        except TimeoutError:
            raise self._lost(f"wasn't ready after {START_S:.0f} s") from None
        if kind != "ready":
            raise self._lost(str(value))

    def begin(self, t0_s: float) -> None:
        """Tell it when its schedule starts."""
        assert self.process.stdin is not None  # noqa: S101 - asked for in `start`
        self.process.stdin.write(START.pack(t0_s))

    def stop(self) -> None:
        """Have it cut off what is in flight and tell the rest."""
        assert self.process.stdin is not None  # noqa: S101 - asked for in `start`
        self.process.stdin.close()

    async def listen(self, mirror: Mirror) -> None:
        """Take in what it tells until it has ended."""
        while self.ended is None:
            try:
                async with asyncio.timeout(SILENT_S):
                    kind, value = await self.hear()
            except TimeoutError:
                raise self._lost(f"has said nothing for {SILENT_S:.0f} s") from None
            if kind == "rows":
                mirror.take(value)
            elif kind == "as_of":
                self.as_of_s = value
            elif kind == "end":
                self.ended, self.as_of_s = value, math.inf
            else:
                raise self._lost(str(value))

    async def hear(self) -> tuple[Kind, Any]:
        """Return its next message.

        Raises:
            TokenwattError: it is gone.
        """
        out = self.process.stdout
        assert out is not None  # noqa: S101 - asked for in `start`
        try:
            size = int.from_bytes(await out.readexactly(LENGTH_BYTES), "big")
            message: tuple[Kind, Any] = unpacked(await out.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise self._lost(await self._last_words()) from None
        return message

    async def close(self) -> None:
        """End it, however it is."""
        self.stop()
        if self.ended is None and self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    async def _last_words(self) -> str:
        """Return how it ended, with the last line that it wrote about it."""
        _, said = await self.process.communicate()
        code = self.process.returncode or 0
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return f"{how}: {lines[-1][-_SHOWN:]}" if lines else how

    def _lost(self, why: str) -> TokenwattError:
        return _lost(self.job, why)


def _lost(job: Job, why: str) -> TokenwattError:
    return TokenwattError(
        f"load worker {job.number + 1} of {job.of} {why}",
        "see whether this machine has memory, processors and files left, then measure anew",
    )


class _Crew:
    """The workers of one load."""

    def __init__(self, workers: Sequence[_Worker], schedule: Schedule, clock: Clock) -> None:
        self._workers = workers
        self._mirror = Mirror(schedule)
        self._clock = clock

    async def play(self, stop: Stop, t0_s: float) -> Played:
        """Have every worker play its share, and put together what they tell."""
        for worker in self._workers:
            worker.begin(t0_s)
        listening = asyncio.create_task(self._listen())
        watching = asyncio.create_task(self._watch(stop))
        try:
            done, _ = await asyncio.wait([listening, watching], return_when=asyncio.FIRST_COMPLETED)
            if watching in done:
                watching.result()  # what it raised, if it did
            await listening
        finally:
            listening.cancel()
            watching.cancel()
            await asyncio.gather(listening, watching, return_exceptions=True)
        return self._played(t0_s)

    async def _listen(self) -> None:
        """Take in what all workers tell until they have ended, or the first one is lost."""
        try:
            async with asyncio.TaskGroup() as group:
                for worker in self._workers:
                    group.create_task(worker.listen(self._mirror))
        except ExceptionGroup as lost:
            raise lost.exceptions[0] from None

    async def _watch(self, stop: Stop) -> None:
        """Ask whether the load is over, as of when everything is known; then stop the workers."""
        while True:
            await asyncio.sleep(_TICK_S)
            known_s = min(worker.as_of_s for worker in self._workers)
            if stop(self._mirror.traces, min(known_s, self._clock.now())):
                for worker in self._workers:
                    worker.stop()
                return

    def _played(self, t0_s: float) -> Played:
        ends = [worker.ended for worker in self._workers if worker.ended is not None]
        messages: dict[str, str] = {}
        for end in reversed(ends):
            messages |= end.messages
        t_end_s = max(end.t_end_s for end in ends)
        return Played(
            self._mirror.close(t0_s, t_end_s),
            t0_s,
            t_end_s=t_end_s,
            cpu_s=max(end.cpu_s for end in ends),
            loop_stall_max_s=max(end.loop_stall_max_s for end in ends),
            messages=messages,
        )
