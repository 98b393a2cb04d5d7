"""A bare HTTP/1.1 client for tests: what was read, and when."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, cast

import httptools


@dataclass
class Reply:
    """One answer. ``reads`` are the pieces of its body with the loop's time of each."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    reads: list[tuple[float, bytes]] = field(default_factory=list[tuple[float, bytes]])
    head_s: float = 0.0

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Any]:
        """Return the payloads of a stream of server-sent events."""
        lines = [part for part in self.body.decode().split("\n\n") if part]
        assert all(line.startswith("data: ") for line in lines)
        return [line[6:] if line == "data: [DONE]" else json.loads(line[6:]) for line in lines]


class RawClient(asyncio.Protocol):
    """Asks over one connection and collects the answers in order."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.closed = False
        self._open = Reply()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.closed = True
        self._changed.set()

    def on_message_begin(self) -> None:
        self._open = Reply(head_s=asyncio.get_running_loop().time())

    def on_header(self, name: bytes, value: bytes) -> None:
        self._open.headers[name.decode().lower()] = value.decode()

    def on_headers_complete(self) -> None:
        self._open.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._open.body += body
        self._open.reads.append((asyncio.get_running_loop().time(), body))

    def on_message_complete(self) -> None:
        self.replies.append(self._open)
        self._changed.set()

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    async def answered(self, n: int) -> None:
        """Wait for ``n`` answers, or for the end of the connection."""
        while len(self.replies) < n and not self.closed:
            self._changed.clear()
            await self._changed.wait()

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send one request and return its answer."""
        n = len(self.replies) + 1
        self.write(request(method, path, body, **headers))
        await self.answered(n)
        return self.replies[n - 1]


def request(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    """Return the bytes of a request; a body that isn't bytes is sent as JSON."""
    payload = (
        body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    )
    fields = {"host": "engine", "content-length": str(len(payload))} | headers
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + payload
