"""What a stub server does and when: the scripts of answers, byte for byte.

The truth of every stream, unless its case says otherwise: the first token 0.30 s after the request,
8 tokens, 50 ms apart.
"""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

FIRST_S = 0.30
GAP_S = 0.05
TOKENS = 8
LAST_S = FIRST_S + (TOKENS - 1) * GAP_S

CLOSING_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
"""Of an answer whose end is the end of the connection."""
HEAD = CLOSING_HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Do(Enum):
    """What a server can do beside writing bytes."""

    RESET = "reset the connection"
    HANG_UP = "close the connection"


Script = Sequence[tuple[float, bytes | Do]]
"""What happens how many seconds after the request, in order."""
Body = list[tuple[float, bytes]]
"""What a server sends as the body of its answer, and when."""


def event(payload: dict[str, Any] | str) -> bytes:
    """Return one server-sent event."""
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return b"data: " + text.encode() + b"\n\n"


def chunk(*payloads: bytes) -> bytes:
    """Return one HTTP chunk with these bytes."""
    body = b"".join(payloads)
    return b"%x\r\n%b\r\n" % (len(body), body)


def tokens(*events: bytes, gap_s: float = GAP_S) -> Body:
    """Return each token event at its time."""
    return [(FIRST_S + gap_s * i, each) for i, each in enumerate(events)]


def sent(body: Body, head: bytes = HEAD) -> Script:
    """Return a whole answer: each piece in an HTTP chunk of its own, and the end with the last."""
    steps = unfinished(body, head)
    last_s, last = steps[-1]
    return [*steps[:-1], (last_s, last + END)]


def unfinished(body: Body, head: bytes = HEAD) -> Body:
    """Return an answer whose end doesn't come; its head comes with the first piece."""
    return headed([(t, chunk(piece)) for t, piece in body], head)


def headed(body: Body, head: bytes) -> Body:
    """Return bytes as they are, after a head that comes with the first of them."""
    (first_s, first), *others = body
    return [(first_s, head + first), *others]


def rewritten(body: Body, change: Callable[[bytes], bytes]) -> Script:
    """Return a whole answer, each piece of its body changed."""
    return sent([(t, change(piece)) for t, piece in body])
