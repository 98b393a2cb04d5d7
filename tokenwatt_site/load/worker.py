"""A load worker: plays every n-th request of a load in a process of its own.

    python -m tokenwatt_site.load.worker

reads its job from standard input, says on standard output that it is ready, reads the start of the
schedule, plays, and tells what changes. When standard input ends it stops; the key that requests
carry comes this way too, and stands in no argument and no environment.
"""

import asyncio
import os
import signal
import struct
import sys
from typing import Any

from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.loop import new_loop
from tokenwatt_site.load.player import play
from tokenwatt_site.load.worker_wire import (
    LENGTH_BYTES,
    Changes,
    Ended,
    Job,
    Kind,
    packed,
    unpacked,
)
from tokenwatt_site.method.trace import RequestTrace

START = struct.Struct("<d")
TELL_S = 0.3
_IN, _OUT = 0, 1


def main() -> int:
    """Play one job; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the measurement, which ends this
    try:
        job: Job = unpacked(_read(int.from_bytes(_read(LENGTH_BYTES), "big")))
    except EOFError:
        return 0
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_work(job))


def _read(size: int) -> bytes:
    """Return so many bytes of standard input, and take none beyond them."""
    data = b""
    while len(data) < size:
        piece = os.read(_IN, size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


async def _work(job: Job) -> int:
    worker = _Worker(job)
    await worker.open()
    try:
        await worker.play()
    except Exception as error:  # noqa: BLE001 - the measurement tells it
        worker.tell("failed", f"{type(error).__name__}: {error}")
        return 1
    finally:
        await worker.close()
    return 0


class _Worker(asyncio.Protocol):
    """Standard output is written as its reader takes it: a slow reader holds up no request."""

    _out: asyncio.WriteTransport

    def __init__(self, job: Job) -> None:
        self._job = job
        self._changes = Changes(job.number, job.of)
        self._traces: list[RequestTrace] = []
        self._start: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._asked = False
        self._stopped = False
        self._closed = asyncio.Event()
        self._clock = RealClock()

    async def open(self) -> None:
        """Take over standard input and output."""
        loop = asyncio.get_running_loop()
        out, _ = await loop.connect_write_pipe(lambda: self, os.fdopen(_OUT, "wb", 0))
        self._out = out
        loop.add_reader(_IN, self._heard)
        self.tell("ready", None)

    async def close(self) -> None:
        """Wait until everything is told, or nobody listens any more."""
        self._out.close()
        await self._closed.wait()
        asyncio.get_running_loop().remove_reader(_IN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of standard output, by whichever side."""
        del exc
        self._stopped = True
        self._closed.set()

    def tell(self, kind: Kind, value: Any) -> None:
        """Write a frame, now or when the reader has taken the ones before."""
        self._out.write(packed((kind, value)))

    async def play(self) -> None:
        """Wait for the start, play, and tell of it."""
        t0_s = await self._start
        job = self._job
        telling = asyncio.create_task(self._tell_changes())
        try:
            played = await play(
                job.target,
                job.schedule,
                lambda index: job.prompt_of(job.number + index * job.of),
                self._clock,
                TcpConnector(job.target),
                self._stop,
                t0_s,
            )
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
        self._traces = played.traces
        await self._tell_once()
        ended = Ended(played.t_end_s, played.cpu_s, played.loop_stall_max_s, played.messages)
        self.tell("end", ended)

    def _heard(self) -> None:
        """Take the start; the end of standard input is the end of the load."""
        data = os.read(_IN, START.size)
        if len(data) == START.size and not self._start.done():
            self._start.set_result(START.unpack(data)[0])
            return
        self._stopped = True
        asyncio.get_running_loop().remove_reader(_IN)
        if not self._start.done():
            self._start.set_exception(EOFError("no start"))

    def _stop(self, traces: list[RequestTrace], now_s: float) -> bool:
        del now_s
        self._traces, self._asked = traces, True
        return self._stopped

    async def _tell_changes(self) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            if self._asked:  # before, there may be requests that are not known here
                await self._tell_once()

    async def _tell_once(self) -> None:
        """Tell what changed, a chunk at a time, and up to when that is everything."""
        as_of_s = self._clock.now()
        for rows in self._changes.chunks(self._traces):
            if rows:
                self.tell("rows", rows)
                await asyncio.sleep(0)
        self.tell("as_of", as_of_s)


if __name__ == "__main__":
    sys.exit(main())
