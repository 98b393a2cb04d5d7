"""One HTTP/1.1 connection: requests in, answers out, one after the other."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, cast

import httptools

MOST_BYTES = 16 * 1024 * 1024
JSON = "application/json"
Abandon = Callable[[], None]
_END = b"0\r\n\r\n"


@dataclass(slots=True)
class HttpRequest:
    """A whole request."""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """By lower-case name."""
    body: bytes = b""
    keep_alive: bool = True


class Handler(Protocol):
    """What answers the requests of a connection."""

    def handle(self, request: HttpRequest, reply: "Connection") -> None:
        """Answer with ``reply.send``, or ``reply.begin`` and then ``reply.write``, now or later."""
        ...


class Connection(asyncio.Protocol):
    """Parses requests and writes answers; a stream costs one write a step.

    ``on_close`` is called when the client goes while its answer is under way.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._request = HttpRequest()
        self._bytes = 0
        self._waiting: deque[HttpRequest] = deque()
        self._answering: HttpRequest | None = None
        self.on_close: Abandon | None = None

    # the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse; answer what is complete."""
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        self._answer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Abandon the answer under way, whatever ``exc`` ended it."""
        del exc
        self._transport = None
        self._waiting.clear()
        if self.on_close is not None:
            self.on_close()
            self.on_close = None

    # the parser's side

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._request = HttpRequest()

    def on_url(self, url: bytes) -> None:
        """Keep the path, without the query."""
        self._request.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        self._request.body += body

    def on_message_complete(self) -> None:
        """Line the request up."""
        request = self._request
        request.method = self._parser.get_method().decode("ascii")
        request.keep_alive = self._parser.should_keep_alive()
        request.path = request.path.partition("?")[0]
        self._bytes = 0
        self._waiting.append(request)

    # the handler's side

    def send(self, status: int, body: bytes, content_type: str = JSON) -> None:
        """Send a whole answer."""
        head = f"Content-Length: {len(body)}\r\nContent-Type: {content_type}\r\n"
        self._write(self._head(status, head) + body)
        self._done()

    def begin(self, data: bytes) -> None:
        """Begin a stream of server-sent events, with what it has at once."""
        head = "Content-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
        self._write(self._head(HTTPStatus.OK, head) + _chunk(data))

    def write(self, data: bytes, *, last: bool) -> None:
        """Send a piece of the stream, and its end."""
        self._write(_chunk(data) + (_END if last else b""))
        if last:
            self._done()

    def _head(self, status: int, fields: str) -> bytes:
        keep = self._answering is not None and self._answering.keep_alive
        reason = HTTPStatus(status).phrase
        line = f"HTTP/1.1 {status} {reason}\r\n{fields}"
        return f"{line}Connection: {'keep-alive' if keep else 'close'}\r\n\r\n".encode()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _answer(self) -> None:
        while self._waiting and self._answering is None:
            self._answering = self._waiting.popleft()
            self._handler.handle(self._answering, self)

    def _done(self) -> None:
        request, self._answering, self.on_close = self._answering, None, None
        if self._transport is not None and (request is None or not request.keep_alive):
            self._transport.close()
        elif self._waiting:
            asyncio.get_running_loop().call_soon(self._answer)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer what can't be read, and hang up: where the next request begins is unknown."""
        if self._answering is None:
            self._write(self._head(status, "Content-Length: 0\r\n"))
        if self._transport is not None:
            self._transport.close()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
