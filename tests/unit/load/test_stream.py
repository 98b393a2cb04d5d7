import json
from typing import Any

from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.method.outcome import Asked
from tokenwatt_site.method.trace import RequestTrace


def piece(text: str, finish: str | None = None, **more: Any) -> bytes:
    chunk = {"choices": [{"index": 0, "text": text, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def usage(n: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": 5, "completion_tokens": n}}


def stream(asked: int = 3) -> Stream:
    ended: list[Stream] = []
    trace = RequestTrace(0, 0.0, 5, asked)
    made = Stream(trace, b"POST", dialect("completions"), Asked(), ended.append)
    made.sent(0.5)
    made.head(200)
    return made


def test_the_first_sending_is_the_one_that_counts() -> None:
    one = stream()
    one.sent(0.7)
    assert one.trace.t_send_s == 0.5


def test_tokens_are_told_for_every_event_or_for_none() -> None:
    told = stream()
    told.body(piece("ab", **usage(2)), 1.0)
    told.body(piece("c", "length", **usage(3)), 2.0)
    assert (told.trace.event_tokens, told.trace.n_first) == ([2, 1], 2)
    partly = stream()
    partly.body(piece("ab", **usage(2)), 1.0)
    partly.body(piece("c", "length"), 2.0)
    assert (partly.trace.event_tokens, partly.trace.n_first) == (None, 2)
    late = stream()
    late.body(piece("a"), 1.0)
    late.body(piece("b", "length", **usage(2)), 2.0)
    assert (late.trace.event_tokens, late.trace.n_first) == (None, 1)


def test_a_last_event_without_its_blank_line_has_the_stamp_of_its_read() -> None:
    cut = stream(asked=2)
    cut.body(piece("a"), 1.0)
    cut.body(piece("b", "length", **usage(2)).rstrip(), 2.0)
    cut.end("closed", 9.0)
    assert list(cut.trace.events_s) == [1.0, 2.0]
    assert (cut.trace.outcome, cut.trace.t_end_s) == ("ok", 9.0)


def test_a_last_event_cut_inside_is_no_malformed_one() -> None:
    cut = stream()
    cut.body(piece("a") + piece("b")[:30], 1.0)
    cut.end("closed", 2.0)
    assert cut.trace.reason == "truncated"


def test_an_end_is_final() -> None:
    one = stream()
    one.end("reset", 1.0, "gone")
    one.end("timeout", 2.0, "late")
    assert (one.trace.reason, one.trace.t_end_s, one.message) == ("reset", 1.0, "gone")


def test_a_refusal_gives_its_words_and_no_tokens() -> None:
    refused = stream()
    refused.head(400)
    refused.body(piece("a"), 1.0)
    refused.end("complete", 1.0)
    assert (refused.trace.reason, len(refused.trace.events_s)) == ("http_400", 0)
    plain = stream()
    plain.head(502)
    plain.body(b"Bad " + b"Gateway" * 1000, 1.0)
    plain.end("complete", 1.0)
    assert plain.message.startswith("Bad Gateway")
    assert len(plain.message) == 300


def test_a_cancelled_stream_stays_undecided() -> None:
    one = stream()
    one.body(piece("a"), 1.0)
    one.cancel(1.5)
    assert (one.trace.outcome, one.trace.t_end_s, one.trace.n_output) == ("running", 1.5, None)
