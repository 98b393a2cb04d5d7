"""An event loop in virtual time, and connections in memory: a minute of load takes milliseconds.

The loop's selector doesn't wait for a timeout, it advances the clock by it. Everything that uses
the loop's timers (``asyncio.sleep``, ``call_later``) runs in the exact order of its times.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class _TimeSelector(selectors.BaseSelector):
    """Knows no readiness; a wait moves the time on."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return self._keys.setdefault(fd, selectors.SelectorKey(fileobj, fd, events, data))

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("virtual time stands still: nothing is due and nothing can arrive")
        self.now_s += max(0.0, timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing is ready to run."""

    def __init__(self, start_s: float = 1000.0) -> None:
        self._times = _TimeSelector()
        self._times.now_s = start_s
        super().__init__(self._times)

    def time(self) -> float:
        return self._times.now_s


class VirtualClock:
    """The client's clock on a virtual loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep_until(self, t_s: float) -> None:
        await asyncio.sleep(max(0.0, t_s - self.now()))


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class MemoryTransport(asyncio.Transport):
    """One end of a connection in memory; what is written arrives in the next turn of the loop."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.peer: MemoryTransport | None = None
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert self.peer is not None
        if data and not self._closing:
            self._soon(self.peer._arrive, bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Close both ends, after what was written before."""
        self._end(None)

    def abort(self) -> None:
        self._end(None)

    def reset(self) -> None:
        """End the connection as a TCP reset does: the peer learns of an error."""
        self._end(ConnectionResetError(104, "Connection reset by peer"))

    def _end(self, at_peer: Exception | None) -> None:
        assert self.peer is not None
        if not self._closing:
            self._closing = True
            self._soon(self.protocol.connection_lost, None)
            self._soon(self.peer._hung_up, at_peer)

    def _hung_up(self, exc: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            self.protocol.connection_lost(exc)

    def _arrive(self, data: bytes) -> None:
        if not self._closing:
            self.protocol.data_received(data)

    @staticmethod
    def _soon(call: Callable[..., None], argument: Any) -> None:
        asyncio.get_running_loop().call_soon(call, argument)


class MemoryConnector:
    """The way to a server in this process: each connection gets a protocol of its own there."""

    def __init__(self, server_factory: Callable[[], asyncio.Protocol]) -> None:
        self._server_factory = server_factory
        self.opened = 0

    async def connect(self, protocol_factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Return the client's end of a new connection."""
        await asyncio.sleep(0)
        self.opened += 1
        server, client = (
            MemoryTransport(self._server_factory()),
            MemoryTransport(protocol_factory()),
        )
        server.peer, client.peer = client, server
        server.protocol.connection_made(server)
        client.protocol.connection_made(client)
        return client
