"""How streams end: properly, in an error, cut off, or never."""

from tokenwatt_site.load.conformance.case import CHOICES, Case, Truth, failed, nothing
from tokenwatt_site.load.conformance.script import (
    CLOSING_HEAD,
    END,
    GAP_S,
    HEAD,
    Do,
    Script,
    event,
    headed,
    sent,
    tokens,
    unfinished,
)
from tokenwatt_site.load.conformance.writer import DONE, WORDS, Writer, named

TIMEOUT_S = 3.0
"""The client's own limit on a request, for the cases that never end."""


def _after_three(writer: Writer, last: bytes) -> Script:
    return sent(tokens(writer.token(), writer.token(), writer.token() + last))


def _three(writer: Writer) -> list[tuple[float, bytes]]:
    return unfinished(tokens(*[writer.token()] * 3))


def _eight(writer: Writer) -> list[bytes]:
    return [writer.token()] * 7 + [writer.token("x", "length")]


def _bytes_after_end(writer: Writer) -> Script:
    *steps, (last_s, last) = unfinished(writer.whole())
    more = b"HTTP/1.1 200 OK\r\n"
    return [*steps, (last_s, last + END + more), (last_s + GAP_S, Do.HANG_UP)]


def _failed_response() -> bytes:
    return named("response.failed", response={"error": {"message": WORDS}, "usage": None})


ENDINGS = (
    Case(
        "error-object",
        "an error object after 3 tokens, HTTP 200",
        lambda w: _after_three(w, w.error()),
        failed("error", end_s=0.40),
    ),
    Case(
        "error-then-done",
        "an error object after 3 tokens, then [DONE]",
        lambda w: _after_three(w, w.error() + DONE),
        failed("error", end_s=0.40),
    ),
    Case(
        "error-named",
        "an event named error after 3 tokens, its data an empty object",
        lambda w: _after_three(w, b"event: error\ndata: {}\n\n" + DONE),
        failed("error", end_s=0.40),
    ),
    Case(
        "response-failed",
        "response.failed after 3 tokens",
        lambda w: _after_three(w, _failed_response()),
        failed("error", end_s=0.40),
        apis=("responses",),
    ),
    Case(
        "error-after-all",
        "all tokens, finish_reason, usage, then an error object",
        lambda w: sent(tokens(*_eight(w)[:7], _eight(w)[7] + w.usage(8) + w.error() + DONE)),
        failed("error", 8, "usage"),
        apis=CHOICES,
    ),
    Case(
        "error-first",
        "an error object and nothing else, HTTP 200",
        lambda w: sent([(0.3, w.error())]),
        nothing("error", end_s=0.30),
    ),
    Case(
        "truncated",
        "the answer ends after 3 tokens: no finish_reason, no [DONE]",
        lambda w: _after_three(w, b""),
        failed("truncated", end_s=0.40),
    ),
    Case(
        "closed",
        "closes the connection after 3 tokens, in the middle of the HTTP message",
        lambda w: [*_three(w), (0.40, Do.HANG_UP)],
        failed("truncated", end_s=0.40),
    ),
    Case(
        "closed-no-length",
        "closes after 3 tokens of an answer that announced no length",
        lambda w: [*headed(tokens(*[w.token()] * 3), CLOSING_HEAD), (0.45, Do.HANG_UP)],
        failed("truncated", end_s=0.45),
    ),
    Case(
        "cut-inside",
        "closes inside the fourth event",
        lambda w: [*_three(w), (0.41, b"14\r\n" + w.token()[:20] + b"\r\n"), (0.42, Do.HANG_UP)],
        failed("truncated", end_s=0.42),
    ),
    Case(
        "reset",
        "a TCP reset after 3 tokens",
        lambda w: [*_three(w), (0.42, Do.RESET)],
        failed("reset", end_s=0.42),
    ),
    Case(
        "stall",
        "falls silent after 3 tokens",
        _three,
        failed("timeout", end_s=TIMEOUT_S),
    ),
    Case(
        "malformed",
        "data that is no JSON after the last token",
        lambda w: sent(tokens(*_eight(w)[:7], w.last().removesuffix(DONE) + event("oops") + DONE)),
        failed("malformed", 8, "usage"),
    ),
    Case(
        "no-done",
        "finish_reason and usage, but no [DONE]",
        lambda w: sent(tokens(*_eight(w)[:7], w.last().removesuffix(DONE))),
    ),
    Case(
        "done-no-finish",
        "[DONE], but no finish_reason",
        lambda w: sent(tokens(*_eight(w)[:7], w.token() + w.usage(8) + DONE)),
        apis=CHOICES,
    ),
    Case(
        "closed-after-finish",
        "closes after the finish_reason, before usage and the end of the HTTP message",
        lambda w: [*unfinished(tokens(*_eight(w))), (0.66, Do.HANG_UP)],
        Truth(source="chunks", end_s=0.66),
        apis=CHOICES,
    ),
    Case(
        "end-is-close",
        "no length announced: the closed connection is the end",
        lambda w: [*headed(w.whole(), CLOSING_HEAD), (0.70, Do.HANG_UP)],
        Truth(end_s=0.70),
    ),
    Case(
        "bytes-after-end",
        "bytes of another answer after the end of this one",
        _bytes_after_end,
    ),
    Case(
        "empty-stream",
        "an answer without a single event",
        lambda _: [(0.3, HEAD + END)],
        nothing("empty", end_s=0.30),
    ),
)
