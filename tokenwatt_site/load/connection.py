"""Kept-alive HTTP/1.1 connections that carry one streamed request at a time.

Our own protocol over httptools, because a general client costs ten times as much a token and stamps
late: here the clock is read once for every read of the socket, before anything is parsed.
"""

import asyncio
import errno
from collections.abc import Coroutine
from typing import cast

import httptools

from tokenwatt_site.load.clock import Clock
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.method.outcome import Ending

_SPARES_MOST = 64  # being opened at a time
_FRESH_S = 1.0  # no server gives a new connection up so soon


class Pool:
    """Sends requests over idle connections, opening as many more as it takes.

    >>> pool = Pool(TcpConnector(target), clock, timeout_s=300)  # doctest: +SKIP
    >>> pool.send(stream)  # doctest: +SKIP
    """

    def __init__(self, connector: Connector, clock: Clock, timeout_s: float) -> None:
        self.clock = clock
        self.timeout_s = timeout_s
        self.idle: dict[Connection, None] = {}
        """In the order in which they became so."""
        self.connections: set[Connection] = set()
        self.spares_last = True
        """No connection that was opened ahead was refused or given up since one had an answer."""
        self._connector = connector
        self._opening: set[asyncio.Task[None]] = set()
        self._spares_opening = 0

    def prepare(self, requests: int) -> None:
        """See to it that so many requests find a connection, by opening some ahead of them.

        A request that has to open its own is late by a few round trips. A server that doesn't keep
        what is opened ahead is left alone.
        """
        if self.spares_last:
            missing = min(requests - len(self.idle), _SPARES_MOST) - self._spares_opening
            for _ in range(missing):
                self._spares_opening += 1
                self._soon(self._open_spare())

    def send(self, stream: Stream) -> None:
        """Send a request now, or as soon as a new connection is open."""
        while self.idle:
            connection, _ = self.idle.popitem()
            if connection.open:  # the server may have hung up meanwhile
                connection.start(stream)
                return
        self.send_anew(stream)

    def send_anew(self, stream: Stream) -> None:
        """Send a request over a new connection."""
        self._soon(self._open(stream))

    async def close(self) -> None:
        """Abort every connection, whatever it carries."""
        for task in self._opening:
            task.cancel()
        for connection in list(self.connections):
            connection.abort()
        for _ in range(1000):  # until each has been told that it is lost
            if not (self._opening or self.connections):
                break
            await asyncio.sleep(0)

    def _soon(self, opening: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(opening)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, stream: Stream) -> None:
        try:
            connection = await self._connect()
        except OSError as error:  # TimeoutError and ssl.SSLError are OSErrors too
            ending: Ending = "client_limit" if _ours(error) else "connect"
            stream.end(ending, self.clock.now(), f"{type(error).__name__}: {error}")
            return
        if connection.open:
            connection.start(stream)
        else:
            stream.end("reset", self.clock.now(), "closed as soon as it was open")

    async def _open_spare(self) -> None:
        try:
            connection = await self._connect()
        except OSError:
            self.spares_last = False  # the request that opens its own says why
        else:
            if connection.open:
                self.idle[connection] = None
        finally:
            self._spares_opening -= 1

    async def _connect(self) -> "Connection":
        connection = Connection(self)
        async with asyncio.timeout(self.timeout_s):
            await self._connector.connect(lambda: connection)
        return connection


_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)


def _ours(error: OSError) -> bool:
    """Tell whether this machine could open no more, which says nothing about the server.

    Where a name has several addresses, asyncio joins the texts of their errors and drops the codes.
    """
    return any(f"[Errno {code}]" in str(error) for code in _EXHAUSTED)


class Connection(asyncio.Protocol):
    """One connection to the server; its parser calls the ``on_…`` methods."""

    _transport: asyncio.Transport

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._now = pool.clock.now
        self._parser = httptools.HttpResponseParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._stream: Stream | None = None
        self._status = 0
        self._used = False
        self._open_s = 0.0
        self._untouched = False  # not fresh, and nothing of the answer has come
        self._read_s = 0.0

    @property
    def open(self) -> bool:
        """Tell whether a request can be written."""
        return not self._transport.is_closing()

    def start(self, stream: Stream) -> None:
        """Write a request whose answer ``stream`` takes in, on an open connection."""
        self._stream = stream
        now_s = self._now()
        self._untouched = self._used or now_s - self._open_s > _FRESH_S
        self._used = True
        stream.sent(now_s)
        left_s = (stream.trace.t_send_s or now_s) + self._pool.timeout_s - now_s
        self._timer = asyncio.get_running_loop().call_later(left_s, self._finish, "timeout")
        self._transport.write(stream.request)
        if not self._untouched:
            stream.request = b""

    def abort(self) -> None:
        """Close at once; what is in flight is not concluded."""
        self._release()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._open_s = self._now()
        self._pool.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Stamp, then parse."""
        self._read_s = self._now()
        if self._untouched and self._stream is not None:
            self._untouched = False
            self._stream.request = b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a fault of ours, not of the server's
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._finish("protocol", str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """Conclude what was in flight, or send it again if the server had already hung up."""
        self._pool.connections.discard(self)
        self._pool.idle.pop(self, None)
        if not self._used:
            self._pool.spares_last = False
        del self._parser  # it refers to this connection, which would wait for the garbage collector
        stream = self._stream
        if stream is not None and self._untouched:
            self._release()
            self._pool.send_anew(stream)
        else:
            self._finish("reset" if exc else "closed", str(exc or ""))

    def on_message_begin(self) -> None:
        """Hang up on an answer that nobody asked for, such as 408 to an idle connection."""
        if self._stream is None:
            self._transport.abort()

    def on_headers_complete(self) -> None:
        """Note the status; 1xx announces another."""
        self._status = self._parser.get_status_code()
        if self._stream is not None and self._status >= 200:  # noqa: PLR2004
            self._stream.head(self._status)

    def on_body(self, data: bytes) -> None:
        """Hand a piece of the body on."""
        stream = self._stream
        if stream is not None:
            stream.body(data, self._read_s)
            if stream.ended:
                self._finish("malformed")

    def on_message_complete(self) -> None:
        """Conclude the request, and keep the connection if the server does."""
        if self._status < 200:  # noqa: PLR2004
            return
        stream = self._release()
        if stream is None:
            return
        if self._parser.should_keep_alive() and not self._transport.get_write_buffer_size():
            self._pool.idle[self] = None
            self._pool.spares_last = True
        else:
            self._transport.abort()
        stream.end("complete", self._read_s)

    def _finish(self, ending: Ending, message: str = "") -> None:
        """Conclude a request that didn't end as it should, and give the connection up."""
        stream = self._release()
        self._transport.abort()
        if stream is not None:
            stream.end(ending, self._now(), message)

    def _release(self) -> Stream | None:
        stream, self._stream = self._stream, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return stream
