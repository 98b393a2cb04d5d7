"""How many events are parsed, and what happens when one of a known shape means something else."""

import json
from typing import Any

import pytest

from tokenwatt_site.load.api import Dialect, dialect
from tokenwatt_site.load.shape import Shape, Trust
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.method.outcome import Asked, StreamFacts
from tokenwatt_site.method.trace import RequestTrace


class Counting:
    """A dialect that counts what it reads."""

    PATH = "/completions"
    LENGTH = "max_tokens"

    def __init__(self, *, turns: bool = False) -> None:
        self.reads = 0
        self.turns = turns

    def read(self, name: bytes, data: bytes, facts: StreamFacts) -> int | None:
        self.reads += 1
        if self.turns and b'"y"' in data:
            facts.error = True
        return dialect("completions").read(name, data, facts)


def piece(text: str, **more: Any) -> bytes:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": None}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def stream(counting: Counting, trust: Trust) -> Stream:
    read: Any = counting
    spoken: Dialect = read
    trace = RequestTrace(0, 0.0, 5, 3)
    made = Stream(trace, b"", spoken, Asked(ignore_eos=False), lambda _: None, trust)
    made.sent(0.5)
    made.head(200)
    return made


def test_few_of_a_streams_events_are_parsed() -> None:
    counting, trust = Counting(), Trust()
    one = stream(counting, trust)
    for i in range(640):
        one.body(piece(f" {i}é\n"), float(i))
    assert len(one.trace.events_s) == 640
    assert trust.checked == 9
    assert counting.reads <= 2 + 1 + trust.checked  # the first, its example, the samples


def test_short_answers_are_sampled_too() -> None:
    trust = Trust()
    for _ in range(32):
        one = stream(Counting(), trust)
        for i in range(9):
            one.body(piece("a"), float(i))
    assert (trust.fitted, trust.checked) == (32 * 8, 4)


def test_a_changed_chunk_is_parsed_and_becomes_the_shape() -> None:
    counting = Counting()
    one = stream(counting, Trust())
    for i in range(60):
        one.body(piece("a", created=i // 20), float(i))
    assert len(one.trace.events_s) == 60
    assert counting.reads <= 3 * 2 + 1


def test_a_server_whose_chunks_all_differ_costs_no_more() -> None:
    counting = Counting()
    one = stream(counting, Trust())
    for i in range(200):
        one.body(piece("a", id=i), float(i))
    assert len(one.trace.events_s) == 200
    assert counting.reads <= 200 + 4


def test_what_is_not_as_its_shape_says_ends_it_for_the_load() -> None:
    counting, trust = Counting(turns=True), Trust()
    one, other = stream(counting, trust), stream(counting, trust)
    for i in range(100):
        other.body(piece("a"), float(i))
    for i in range(65):
        turned = trust.fitted % 64 == 63
        one.body(piece("y" if turned else "x"), float(i))
    assert (trust.on, trust.wrong) == (False, 1)
    one.end("complete", 100.0)
    assert one.trace.reason == "error"
    before = counting.reads
    for i in range(10):
        other.body(piece("a"), 100.0 + i)
    assert counting.reads == before + 10


def test_what_follows_a_cut_event_is_not_taken_by_its_shape() -> None:
    one = stream(Counting(), Trust())
    for i, read in enumerate([piece("a"), piece("a"), b"data: x", piece("a"), piece("a")]):
        one.body(read, float(i))
    one.end("complete", 9.0)
    assert list(one.trace.events_s) == [0.0, 1.0, 4.0]
    assert one.trace.reason == "malformed"


@pytest.mark.parametrize(
    "payload",
    [
        b'{"choices":[{"text":""}]}',
        b'{"choices":[{"delta":{"tool_calls":[]}}]}',
        b"[DONE]",
        b'{"choices":[{"delta":{"content":null}}]}',
    ],
)
def test_no_text_no_shape(payload: bytes) -> None:
    assert Shape.of(payload) is None


def test_the_first_text_that_is_not_empty_is_the_one_that_may_differ() -> None:
    shape = Shape.of(b'{"delta":{"content":"","reasoning":"hm"}}')
    assert shape == (b'data: {"delta":{"content":"","reasoning":"', b'"}}\n\n')
    assert shape.example() == b'{"delta":{"content":"","reasoning":"?"}}'
