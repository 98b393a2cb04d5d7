"""What happens to the HTTP exchange around a stream."""

import json

from tokenwatt_site.load.conformance.case import Case, failed, no_answer, nothing
from tokenwatt_site.load.conformance.cases.endings import TIMEOUT_S
from tokenwatt_site.load.conformance.script import (
    CLOSING_HEAD,
    GAP_S,
    HEAD,
    Do,
    Script,
    headed,
    sent,
    tokens,
    unfinished,
)
from tokenwatt_site.load.conformance.writer import WORDS, Writer

ERROR = json.dumps({"error": {"message": WORDS, "code": 500}}).encode()


def _json(status: bytes, body: bytes, more: bytes = b"") -> Script:
    """Return an answer that is a JSON document."""
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
    return [(0.3, head % (status, more, len(body)) + body)]


def _length(writer: Writer) -> Script:
    body = writer.whole()
    size = sum(len(piece) for _, piece in body)
    return headed(body, CLOSING_HEAD[:-2] + b"Content-Length: %d\r\n\r\n" % size)


def _broken_chunks(writer: Writer) -> Script:
    three = unfinished(tokens(*[writer.token()] * 3))
    return [*three, (0.45, b"zz\r\nno chunk\r\n")]


def _head_at(writer: Writer, at_s: float) -> Script:
    return [(at_s, HEAD), *sent(writer.whole(), b"")]


def _announced(head: bytes, writer: Writer) -> Script:
    """Send another head first, as a server may while it works."""
    return [(0.1, head), *sent(writer.whole())]


def _cut_everywhere(writer: Writer) -> Script:
    """Cut each piece in two, within the lines of HTTP itself too; the end is on time."""
    halves: list[tuple[float, bytes | Do]] = []
    for t_s, piece in sent(writer.whole()):
        if isinstance(piece, bytes):
            halves += [(t_s - GAP_S / 2, piece[:1]), (t_s, piece[1:])]
    return halves


EXCHANGES = (
    Case("head-at-once", "the head comes 5 ms after the request", lambda w: _head_at(w, 0.005)),
    Case("slow-head", "the head comes 10 ms before the token", lambda w: _head_at(w, 0.290)),
    Case("content-length", "the length of the whole stream is announced", _length),
    Case(
        "http-cut", "every HTTP chunk and the head are cut after their first byte", _cut_everywhere
    ),
    Case(
        "100-continue",
        "100 Continue before the answer",
        lambda w: _announced(b"HTTP/1.1 100 Continue\r\n\r\n", w),
    ),
    Case(
        "103-early-hints",
        "103 Early Hints before the answer",
        lambda w: _announced(b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n", w),
    ),
    Case(
        "200-json-error",
        "HTTP 200 whose body is a JSON error and no stream",
        lambda _: _json(b"200 OK", ERROR),
        nothing("error", end_s=0.30),
    ),
    Case(
        "200-json",
        "HTTP 200 whose body is a JSON answer and no stream",
        lambda _: _json(b"200 OK", b'{"object": "chat.completion", "choices": []}'),
        nothing("empty", end_s=0.30),
    ),
    Case(
        "400",
        "400 with a JSON error",
        lambda _: _json(b"400 Bad Request", ERROR),
        nothing("http_400", end_s=0.30),
    ),
    Case(
        "429",
        "429 with Retry-After",
        lambda _: _json(b"429 Too Many Requests", ERROR, b"Retry-After: 1\r\n"),
        nothing("http_429", end_s=0.30),
    ),
    Case(
        "503",
        "503 without a body",
        lambda _: [(0.3, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")],
        nothing("http_503", end_s=0.30),
    ),
    Case(
        "500-stream",
        "500 with 8 tokens in its body",
        lambda w: sent(w.whole(), HEAD.replace(b"200 OK", b"500 Oops")),
        nothing("http_500"),
    ),
    Case(
        "broken-chunks",
        "the HTTP chunk after 3 tokens has no length",
        _broken_chunks,
        failed("protocol", end_s=0.45),
    ),
    Case(
        "no-http",
        "bytes that are no HTTP",
        lambda _: [(0.3, b"SSH-2.0-OpenSSH_9.2\r\n")],
        no_answer("protocol", end_s=0.30),
    ),
    Case(
        "closed-at-once",
        "closes without an answer",
        lambda _: [(0.3, Do.HANG_UP)],
        no_answer("no_response", end_s=0.30),
    ),
    Case("silent", "never answers", lambda _: [], no_answer("timeout", end_s=TIMEOUT_S)),
)
