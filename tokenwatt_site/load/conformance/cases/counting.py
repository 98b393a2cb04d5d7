"""What tells the number of tokens, and where several come in one chunk."""

from collections.abc import Callable
from typing import Any

from tokenwatt_site.load.conformance.case import CHOICES, Case, Truth, failed
from tokenwatt_site.load.conformance.script import GAP_S, LAST_S, Script, event, sent, tokens
from tokenwatt_site.load.conformance.writer import DONE, Writer, usage_of


def _continuous(first: int, step: int, last: int, gap_s: float) -> Callable[[Writer], Script]:
    """Return a script of chunks of ``step`` tokens, each with the usage so far."""

    def script(writer: Writer) -> Script:
        counts = range(first, last + 1, step)
        events = [writer.token("x" * step, **usage_of(n)) for n in counts[:-1]]
        end = writer.token("x" * step, "length", **usage_of(last)) + DONE
        return sent(tokens(*events, end, gap_s=gap_s))

    return script


def _with_ids(writer: Writer, size: int, finish: str | None = None) -> bytes:
    """Return a chunk with the ids of its tokens, as vLLM sends them when asked."""
    text: dict[str, Any] = {"text": "x"}
    if writer.api == "chat":
        text = {"delta": {"content": "x"}}
    choice = {"index": 0, **text, "token_ids": [7] * size, "finish_reason": finish}
    return event({"choices": [choice]})


def _seven(writer: Writer, **more: Any) -> list[bytes]:
    return [writer.token(**more)] * 7


COUNTING = (
    Case(
        "usage-in-last-chunk",
        "usage inside the last chunk with text",
        lambda w: sent(tokens(*_seven(w), w.token("x", "length", **usage_of(8)) + DONE)),
        apis=CHOICES,
    ),
    Case(
        "usage-in-finish-chunk",
        "usage inside a last chunk that has the finish_reason and no text",
        lambda w: sent(tokens(*_seven(w), w.token() + w.token("", "length", **usage_of(8)) + DONE)),
        apis=CHOICES,
    ),
    Case(
        "usage-in-each-chunk",
        "a cumulative usage in every chunk",
        _continuous(1, 1, 8, GAP_S),
        apis=CHOICES,
    ),
    Case(
        "usage-null",
        "usage: null in every chunk, the count at the end",
        lambda w: sent(
            tokens(*_seven(w, usage=None), w.token("x", "length", usage=None) + w.usage(8) + DONE)
        ),
        apis=CHOICES,
    ),
    Case(
        "no-usage",
        "usage never comes, one token a chunk",
        lambda w: sent(tokens(*_seven(w), w.token("x", "length") + DONE)),
        Truth(source="chunks"),
        apis=CHOICES,
    ),
    Case(
        "ids-no-usage",
        "usage never comes; two tokens a chunk, by their ids",
        lambda w: sent(
            tokens(*[_with_ids(w, 2)] * 3, _with_ids(w, 2, "length") + DONE, gap_s=2 * GAP_S)
        ),
        Truth(source="ids", tpot_s=0.30 / 6, end_s=0.60),
        apis=CHOICES,
    ),
    Case(
        "two-a-chunk",
        "two tokens a chunk, with a cumulative usage",
        _continuous(2, 2, 8, 2 * GAP_S),
        Truth(tpot_s=0.30 / 6, end_s=0.60),
        apis=CHOICES,
    ),
    Case(
        "two-a-chunk-usage-last",
        "two tokens a chunk, usage at the end: nothing tells what the first chunk held",
        lambda w: sent(tokens(*[w.token("xx")] * 3, w.last(text="xx"), gap_s=2 * GAP_S)),
        Truth(tpot_s=0.30 / 7, end_s=0.60),
    ),
    Case(
        "ten-a-chunk",
        "10 of 100 tokens in each chunk, the first one too, with a cumulative usage",
        _continuous(10, 10, 100, 0.15),
        Truth(tokens=100, tpot_s=1.35 / 90, end_s=1.65),
        apis=CHOICES,
        asked=100,
    ),
    Case(
        "short-no-usage",
        "stops after 3 of 8 tokens, finish_reason stop, no usage",
        lambda w: sent(tokens(w.token(), w.token(), w.token("x", "stop") + DONE)),
        failed("short", lenient=True, end_s=0.40),
        apis=CHOICES,
    ),
    Case(
        "short",
        "cut after 3 of 8 tokens where the context ends, finish_reason length",
        lambda w: sent(tokens(w.token(), w.token(), w.last(3))),
        failed("short", source="usage", lenient=True, end_s=0.40),
    ),
    Case(
        "long",
        "16 tokens by its usage where 8 were asked for",
        lambda w: sent(tokens(*_seven(w), w.last(16))),
        failed("long", 16, "usage", lenient=True),
    ),
    Case(
        "late-tail",
        "finish, usage and [DONE] come one second after the last token",
        lambda w: sent([*tokens(*[w.token()] * 8), (LAST_S + 1, w.end(8, "length"))]),
        Truth(end_s=LAST_S + 1),
    ),
)
