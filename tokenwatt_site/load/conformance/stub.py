"""A connection to a server of scripts: each request is answered byte for byte, at its times."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import httptools

from tokenwatt_site.load.conformance.script import Do, Script

_LONGEST_BODY = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked."""

    method: str
    path: str
    body: bytes


class StubConnection(asyncio.Protocol):
    """Plays the script that ``answer`` returns for a request."""

    transport: asyncio.Transport

    def __init__(self, answer: Callable[[Request], Script]) -> None:
        self.lost = False
        self.headers: dict[str, str] = {}
        self._answer = answer
        self._parser = httptools.HttpRequestParser(self)
        self._body = bytearray()
        self._path = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse; hang up on what is no request."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a fault of ours
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Play no further."""
        del exc
        self.lost = True

    def on_url(self, url: bytes) -> None:
        """Begin a request."""
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the latest request."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        """Keep the body."""
        self._body += data
        if len(self._body) > _LONGEST_BODY:
            self.transport.abort()

    def on_message_complete(self) -> None:
        """Answer."""
        method, path = self._parser.get_method().decode(), self._path.decode("latin-1")
        request = Request(method, path, bytes(self._body))
        self._path = b""
        self._body.clear()
        now_s = asyncio.get_running_loop().time()
        self._play(now_s, deque(self._answer(request)))

    def _play(self, asked_s: float, steps: deque[tuple[float, bytes | Do]]) -> None:
        loop = asyncio.get_running_loop()
        while steps and not self.lost:
            after_s, what = steps[0]
            if asked_s + after_s > loop.time() + 1e-9:
                loop.call_at(asked_s + after_s, self._play, asked_s, steps)
                return
            steps.popleft()
            if isinstance(what, bytes):
                self.transport.write(what)
            elif what is Do.HANG_UP:
                self.transport.close()
            else:
                self.reset()

    def reset(self) -> None:
        """End the connection so that the client sees a TCP reset."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
