"""Real faults of real tools, each played through the whole client against a server of known truth.

The truth of every stream: the first token 0.30 s after the request, 8 tokens, 50 ms apart.
"""

import json
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.scripted import END, HEAD, Do, Script, ScriptedServer, chunk, event
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

TIMES = [0.30 + 0.05 * i for i in range(8)]
DONE = event("[DONE]")
CLOSING_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def token(text: str = "x", finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return event({"choices": [choice], **more})


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def usage(n: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": 5, "completion_tokens": n, "total_tokens": n + 5}}


def usage_chunk(n: int = 8) -> bytes:
    return event({"choices": [], **usage(n)})


Body = list[tuple[float, bytes]]
"""What a server sends as the body, and when."""


def tokens(*events: bytes, last: bytes = b"") -> Body:
    """Return each token event at its time; ``last`` comes with the last of them."""
    body = [(t, each) for t, each in zip(TIMES, events, strict=False)]
    return [*body[:-1], (body[-1][0], body[-1][1] + last)]


def sent(body: Body) -> Script:
    """Return a whole answer: each piece in an HTTP chunk of its own, and the end with the last."""
    return [*unfinished(body[:-1]), (body[-1][0], chunk(body[-1][1]) + END)]


def unfinished(body: Body) -> Script:
    """Return an answer whose end doesn't come."""
    return [(t, chunk(piece)) for t, piece in body]


SEVEN = [token()] * 7
WHOLE = tokens(*SEVEN, token(finish="length"), last=usage_chunk() + DONE)
THREE = tokens(*[token()] * 3)


def rewritten(change: Callable[[bytes], bytes]) -> Script:
    """Return the whole stream, each piece of its body changed."""
    return sent([(t, change(piece)) for t, piece in WHOLE])


@dataclass(frozen=True)
class Trap:
    """A stream, and what it is. TTFT and TPOT are exact, in virtual time."""

    name: str
    script: Script
    reason: str = ""
    ttft_s: float | None = 0.30
    tpot_s: float = 0.05
    n: int | None = 8
    source: str | None = "usage"
    answer_s: float | None = None  # where it differs from the TTFT
    coalesced: bool = False
    asked: int = 8
    head: bytes = HEAD
    end_s: float = 0.70  # concluded by then


def split_character() -> Script:
    """Cut the first token's event in the middle of a character."""
    first = text_token("é")
    place = first.index("é".encode()) + 1
    return sent([(0.29, first[:place]), (0.30, first[place:]), *WHOLE[1:]])


def text_token(text: str) -> bytes:
    payload = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n"


def two_a_chunk(first: int, step: int, gap: float, n: int) -> Script:
    """Chunks of several tokens with a continuous usage."""
    counts = list(range(first, n + 1, step))
    events = [token("xx", None if c < n else "length", **usage(c)) for c in counts]
    events[-1] += DONE
    return sent([(0.30 + gap * i, each) for i, each in enumerate(events)])


ERROR = event({"error": {"message": "engine died", "code": 500}})
TRAPS = [
    Trap("plain", sent(WHOLE)),
    Trap(
        "the role comes at once", sent([(0.005, delta(role="assistant", content="")), *WHOLE]),
    ),
    Trap(
        "the role has null content",
        sent([(0.005, delta(role="assistant", content=None)), *WHOLE]),
    ),
    Trap(
        "the role in one read with the first token",
        sent([(0.30, delta(role="assistant", content=None) + token()), *WHOLE[1:]]),
    ),
    Trap(
        "comments before and between",
        sent([(0.1, b": keep-alive\n\n"),
              *[(t, b": keep-alive\n\n" + piece + b":\n\n") for t, piece in WHOLE]]),
    ),
    Trap(
        "no space after the colon", rewritten(lambda body: body.replace(b"data: ", b"data:")),
    ),
    Trap(
        "event and id lines",
        rewritten(lambda body: body.replace(b"data: ", b"id: 1\nevent: message\ndata: ")),
    ),
    Trap("CRLF", rewritten(lambda body: body.replace(b"\n", b"\r\n"))),
    Trap("CR alone", rewritten(lambda body: body.replace(b"\n", b"\r"))),
    Trap("a byte order mark", sent([(0.2, b"\xef\xbb\xbf"), *WHOLE])),
    Trap(
        "CRLF, several events in one read",
        sent([
            (t, piece.replace(b"\n", b"\r\n"))
            for t, piece in [(0.30, token()), (0.65, b"".join(piece for _, piece in WHOLE[1:]))]
        ]),
        coalesced=True,
    ),
    Trap("a character cut over two reads", split_character()),
    Trap(
        "line separators inside text",
        sent(tokens(*[text_token("a\u2028b\u0085c\u2029d")] * 7, token(finish="stop"),
                    last=usage_chunk() + DONE)),
    ),
    Trap("two tokens a chunk", two_a_chunk(2, 2, 0.10, 8), tpot_s=0.30 / 6),
    Trap(
        "two tokens a chunk, usage at the end",
        sent([*[(0.30 + 0.1 * i, token("xx")) for i in range(3)],
              (0.60, token("xx", "length") + usage_chunk() + DONE)]),
        tpot_s=0.30 / 7,
    ),
    Trap(
        "the first chunk holds 10 of 100", two_a_chunk(10, 10, 0.5, 100), n=100, asked=100,
        tpot_s=4.5 / 90, end_s=4.8,
    ),
    Trap(
        "an error object after 3 tokens", sent(tokens(*[token()] * 3, last=ERROR)),
        "error", n=3, source="chunks",
    ),
    Trap(
        "an error object, then [DONE]", sent(tokens(*[token()] * 3, last=ERROR + DONE)),
        "error", n=3, source="chunks",
    ),
    Trap(
        "an error object after all tokens",
        sent(tokens(*SEVEN, token(finish="length"), last=usage_chunk() + ERROR + DONE)), "error",
    ),
    Trap(
        "an event named error",
        sent(tokens(*[token()] * 3, last=b"event: error\ndata: {}\n\n" + DONE)),
        "error", n=3, source="chunks",
    ),
    Trap(
        "ends after 3 tokens without a finish", sent(THREE), "truncated", n=3, source="chunks",
    ),
    Trap(
        "closes after 3 tokens", [*unfinished(THREE), (0.40, Do.HANG_UP)],
        "truncated", n=3, source="chunks",
    ),
    Trap(
        "closes after 3 tokens, no length announced", [*THREE, (0.45, Do.HANG_UP)],
        "truncated", n=3, source="chunks", head=CLOSING_HEAD,
    ),
    Trap(
        "a reset after 3 tokens", [*unfinished(THREE), (0.42, Do.RESET)],
        "reset", n=3, source="chunks",
    ),
    Trap(
        "the end is a closed connection", [*WHOLE, (0.70, Do.HANG_UP)], head=CLOSING_HEAD,
    ),
    Trap(
        "a content length", WHOLE,
        head=CLOSING_HEAD[:-2] + b"Content-Length: %d\r\n\r\n" % sum(len(p) for _, p in WHOLE),
    ),
    Trap(
        "reasoning_content, then content",
        sent(tokens(*[delta(reasoning_content="hm")] * 4, *SEVEN[:3], token(finish="stop"),
                    last=usage_chunk() + DONE)),
        answer_s=0.50,
    ),
    Trap(
        "reasoning, then content",
        sent(tokens(*[delta(reasoning="hm", content="", role="assistant")] * 4, *SEVEN[:3],
                    token(finish="stop"), last=usage_chunk() + DONE)),
        answer_s=0.50,
    ),
    Trap(
        "tool calls",
        sent(tokens(*[delta(tool_calls=[{"function": {"arguments": "x"}}])] * 8,
                    last=delta("stop") + usage_chunk() + DONE)),
    ),
    Trap(
        "usage inside the last content chunk",
        sent(tokens(*SEVEN, token(finish="length", **usage(8)), last=DONE)),
    ),
    Trap(
        "usage in every chunk, cumulative",
        sent(tokens(*[token(**usage(i + 1)) for i in range(7)],
                    token(finish="length", **usage(8)), last=DONE)),
    ),
    Trap(
        "usage null in every chunk",
        sent(tokens(*[token(usage=None)] * 7, token(finish="length", usage=None),
                    last=usage_chunk() + DONE)),
    ),
    Trap("no usage", sent(tokens(*SEVEN, token(finish="length"), last=DONE)), source="chunks"),
    Trap(
        "no usage, stops at 3 of 8 tokens",
        sent(tokens(token(), token(), token(finish="stop"), last=DONE)),
        "short", n=3, source="chunks",
    ),
    Trap(
        "cut at the context's end, finish length",
        sent(tokens(token(), token(), token(finish="length"), last=usage_chunk(3) + DONE)),
        "short", n=3,
    ),
    Trap(
        "the first token decodes to nothing",
        sent(tokens(token(""), *SEVEN[1:], token(finish="length"), last=usage_chunk() + DONE)),
    ),
    Trap(
        "no tokens, finish stop", sent([(0.3, delta("stop") + usage_chunk(0) + DONE)]),
        "empty", ttft_s=None, n=0,
    ),
    Trap("an empty stream", [(0.3, END)], "empty", ttft_s=None, n=0, source="chunks"),
    Trap(
        "only hidden tokens", sent([(0.3, delta("length") + usage_chunk(8) + DONE)]),
        "empty", ttft_s=None,
    ),
    Trap("no [DONE]", sent(tokens(*SEVEN, token(finish="length"), last=usage_chunk()))),
    Trap(
        "[DONE] without its blank line, no finish",
        sent(tokens(*SEVEN, token(), last=usage_chunk() + b"data: [DONE]")),
    ),
    Trap(
        "a tail: usage and [DONE] come 2 s late",
        sent([*tokens(*SEVEN, token(finish="length")), (2.65, usage_chunk() + DONE)]),
        end_s=2.65,
    ),
    Trap(
        "closes after the last token, before usage",
        [*unfinished(tokens(*SEVEN, token(finish="length"))), (0.66, Do.HANG_UP)],
        source="chunks", end_s=0.66,
    ),
    Trap(
        "a buffering proxy", sent([(0.65, b"".join(piece for _, piece in WHOLE))]),
        ttft_s=0.65, coalesced=True,
    ),
    Trap(
        "data that is no JSON",
        sent(tokens(*SEVEN, token(finish="length"), last=b"data: oops\n\n" + DONE)),
        "malformed", source="chunks",
    ),
    Trap(
        "cut inside an event", [*unfinished([*THREE, (0.41, token()[:20])]), (0.42, Do.HANG_UP)],
        "truncated", n=3, source="chunks",
    ),
    Trap(
        "bytes after the end of the answer",
        [*sent(WHOLE)[:-1], (0.65, sent(WHOLE)[-1][1] + b"HTTP/1.1 200 OK\r\n")],
    ),
    Trap(
        "two choices",
        sent(tokens(*SEVEN, event({"choices": [{"index": 1, "delta": {"content": "x"}}]}),
                    last=delta("length") + usage_chunk() + DONE)),
        "choices",
    ),
    Trap(
        "503", [(0.3, b"Content-Length: 0\r\n\r\n")], "http_503",
        ttft_s=None, n=0, source="chunks", head=b"HTTP/1.1 503 Busy\r\n",
    ),
    Trap(
        "no HTTP at all", [(0.3, b"SSH-2.0-OpenSSH_9.2\r\n")], "protocol",
        ttft_s=None, n=None, source=None, head=b"",
    ),
    Trap(
        "closes without an answer", [(0.3, Do.HANG_UP)], "no_response",
        ttft_s=None, n=None, source=None, head=b"",
    ),
    Trap("never answers", [], "timeout", ttft_s=None, n=None, source=None, head=b"", end_s=30),
    Trap("stalls after 3 tokens", unfinished(THREE), "timeout", n=3, source="chunks", end_s=30),
    Trap("100 Continue first", sent(WHOLE), head=b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD),
]  # fmt: skip


def played(trap: Trap) -> Played:
    """Play one request against the trap; the head of the answer comes with its first step."""
    steps = list(trap.script)
    if trap.head and steps:
        at_s, first = steps[0]
        assert isinstance(first, bytes)
        steps[0] = (at_s, trap.head + first)
    server = ScriptedServer(lambda _, __: steps)

    async def run() -> Played:
        clock = VirtualClock()
        schedule = Schedule(array("d", [0.1]), array("q", [5]), array("q", [trap.asked]), 0, 1.0)
        target = Target("http://server/v1", "chat", "m", timeout_s=30)
        connector = MemoryConnector(server)
        return await play(
            target, schedule, lambda _: "hi", clock, connector, lambda *_: False, clock.now() + 1
        )

    return run_virtual(run())


def tpot_s(trace: RequestTrace) -> float | None:
    """(last − first token)/(n − tokens of the first event), as the method defines it."""
    decoded = (trace.n_output or 0) - trace.n_first
    if trace.coalesced or decoded < 1:
        return None
    return (trace.events_s[-1] - trace.events_s[0]) / decoded


@pytest.mark.parametrize("trap", [pytest.param(trap, id=trap.name) for trap in TRAPS])
def test_trap(trap: Trap) -> None:
    (trace,) = played(trap).traces
    assert trace.t_end_s is not None
    assert trace.t_end_s - trace.t_sched_s <= trap.end_s + 1e-6
    assert (trace.outcome, trace.reason) == ("failed" if trap.reason else "ok", trap.reason)
    assert (trace.n_output, trace.n_source) == (trap.n, trap.source)
    assert trace.coalesced is trap.coalesced
    ttft_s = trace.events_s[0] - trace.t_sched_s if trace.events_s else None
    assert ttft_s == pytest.approx(trap.ttft_s, abs=1e-6)
    if trap.answer_s is not None:
        assert trace.t_answer_s == pytest.approx(trace.t_sched_s + trap.answer_s, abs=1e-6)
    if not trap.reason and not trap.coalesced:
        assert tpot_s(trace) == pytest.approx(trap.tpot_s, abs=1e-6)


def test_a_failed_request_still_has_its_end_and_its_words() -> None:
    error = next(trap for trap in TRAPS if trap.name == "an error object after 3 tokens")
    result = played(error)
    assert result.messages == {"error": "engine died"}
    assert result.traces[0].t_end_s == pytest.approx(result.traces[0].t_sched_s + 0.40)


def test_a_timeout_counts_from_sending() -> None:
    never = next(trap for trap in TRAPS if trap.name == "never answers")
    trace = played(never).traces[0]
    assert trace.t_send_s is not None
    assert trace.t_end_s == pytest.approx(trace.t_send_s + 30)


def test_no_trap_is_named_twice() -> None:
    assert len({trap.name for trap in TRAPS}) == len(TRAPS)
