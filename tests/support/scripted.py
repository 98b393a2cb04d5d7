"""A server of scripts: what it answers, byte for byte, and when. Its truth is known exactly."""

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

import httptools

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Do(Enum):
    """What a server can do beside writing bytes."""

    RESET = "reset the connection"
    HANG_UP = "close the connection"


Script = Sequence[tuple[float, bytes | Do]]
"""What happens how many seconds after the request, in order."""


def chunk(*payloads: bytes) -> bytes:
    """Return one HTTP chunk with these bytes."""
    body = b"".join(payloads)
    return b"%x\r\n%b\r\n" % (len(body), body)


def event(payload: dict[str, Any] | str) -> bytes:
    """Return one server-sent event."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return b"data: " + text.encode() + b"\n\n"


@dataclass(slots=True)
class Seen:
    """A request that the server got."""

    t_s: float
    body: dict[str, Any]
    connection: int


@dataclass(slots=True)
class ScriptedServer:
    """Answers request i (from 0) with ``script(i, body)``."""

    script: Callable[[int, dict[str, Any]], Script]
    seen: list[Seen] = field(default_factory=list)
    connections: list["Handler"] = field(default_factory=list)

    def __call__(self) -> "Handler":
        """Return the protocol of a new connection."""
        handler = Handler(self, len(self.connections))
        self.connections.append(handler)
        return handler


class Handler(asyncio.Protocol):
    """One connection to the scripted server."""

    def __init__(self, server: ScriptedServer, number: int) -> None:
        self.server = server
        self.number = number
        self.lost = False
        self.headers: dict[str, str] = {}
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.lost = True

    def on_message_begin(self) -> None:
        self._body = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        loop = asyncio.get_running_loop()
        now_s, body = loop.time(), json.loads(self._body)
        number = len(self.server.seen)
        self.server.seen.append(Seen(now_s, body, self.number))
        self._go_on(now_s, deque(self.server.script(number, body)))

    def _go_on(self, asked_s: float, steps: deque[tuple[float, bytes | Do]]) -> None:
        loop, transport = asyncio.get_running_loop(), cast("Any", self.transport)
        while steps and not self.lost:
            after_s, what = steps[0]
            if asked_s + after_s > loop.time() + 1e-9:
                loop.call_at(asked_s + after_s, self._go_on, asked_s, steps)
                return
            steps.popleft()
            if what is Do.RESET:
                reset(transport)
            elif what is Do.HANG_UP:
                transport.close()
            else:
                transport.write(what)


def reset(transport: Any) -> None:
    """End a connection so that the peer sees a reset, in memory or over TCP."""
    sock = transport.get_extra_info("socket")
    if sock is None:
        transport.reset()
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
