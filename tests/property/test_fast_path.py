"""A stream read by the shape of its chunks leaves the trace that reading all of it leaves."""

import json
import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random

import httptools
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shared import shared_path
from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.shape import Trust
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.method.outcome import Asked
from tokenwatt_site.method.trace import RequestTrace

EVENT_END = re.compile(rb"\r?\n\r?\n")


class Body:
    """The body of an HTTP answer, put together."""

    def __init__(self, answer: bytes) -> None:
        self.data = b""
        with suppress(httptools.HttpParserError):  # what came before it counts
            httptools.HttpResponseParser(self).feed_data(answer)

    def on_body(self, data: bytes) -> None:
        self.data += data


def recorded() -> list[bytes]:
    """Return the bodies of every stream that a real engine or provider sent."""
    found = [
        Body(path.read_bytes()).data
        for path in sorted(shared_path("captures").glob("*/*.response.http"))
    ]
    for path in sorted(shared_path("data/sse").glob("*/*")):
        found += bodies(path)
    return [body for body in found if b"data:" in body and b"\n\n" in body]


def bodies(path: Path) -> list[bytes]:
    """Return the streams of a provider's recording, as they were sent or put together again."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        # a cassette's strings, quoted in either of YAML's ways or as a block
        blocks = re.findall(r"^ +(data:.*|event:.*|)$", text, re.MULTILINE)
        return ["".join(line + "\n" for line in blocks).encode()]
    chunks = json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())
    chunks = [chunks] if isinstance(chunks, dict) else list(chunks)
    spaced = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    tight = "".join(
        f"data: {json.dumps(chunk, separators=(',', ':'), ensure_ascii=False)}\n\n"
        for chunk in chunks
    )
    return [spaced.encode(), tight.encode()]


def pieces(body: bytes, places: list[int], *, by_event: bool) -> list[bytes]:
    """Cut a body at some places, and at the end of each event where ``by_event``."""
    ends = [match.end() for match in EVENT_END.finditer(body)] if by_event else []
    marks = sorted({0, len(body), *ends, *(place % (len(body) + 1) for place in places)})
    return [body[a:b] for a, b in pairwise(marks)]


def left(api: str, cut: list[bytes], *, shapes: bool) -> tuple[RequestTrace, str, Trust]:
    """Return what a stream leaves, read by shapes or in full."""
    trust = Trust(on=shapes)
    trace = RequestTrace(0, 0.0, 5, 8)
    stream = Stream(trace, b"", dialect(api), Asked(ignore_eos=False), lambda _: None, trust)
    stream.sent(0.5)
    stream.head(200)
    for t_s, piece in enumerate(cut, 1):
        if not stream.ended:
            stream.body(piece, float(t_s))
    stream.end("complete", 1e6)
    return trace, stream.message, trust


def check(api: str, cut: list[bytes]) -> None:
    fast, words, trust = left(api, cut, shapes=True)
    full, full_words, _ = left(api, cut, shapes=False)
    assert fast == full
    assert words == full_words
    assert trust.wrong == 0


APIS = ("chat", "completions", "responses")


def spoken(body: bytes) -> str:
    if b"chat.completion" in body:
        return "chat"
    return "responses" if b'"response.' in body else "completions"


def test_recorded_streams() -> None:
    streams = recorded()
    assert len(streams) > 150
    draw = Random(20261130)  # noqa: S311 - where to cut, not secrets
    for body in streams:
        for by_event in (True, False):
            places = [draw.randrange(10**6) for _ in range(draw.randrange(8))]
            check(spoken(body), pieces(body, places, by_event=by_event))


INSIDE = st.one_of(
    st.sampled_from(
        [b" a", b"", b"\xc3\xa9", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\n", b'\\"',
         b"\\u00e9", b"\\ud800", b"\\u00", b"\\x", b"\\", b'"', b'","x":"', b"\t", b"\x7f",
         b'a","usage":{"completion_tokens":3},"x":"', b"\xe2\x80\xa8", b"\n", b"\r", b"\n\ndata: "]
    ),
    st.text(max_size=3).map(lambda text: json.dumps(text)[1:-1].encode()),
    st.binary(max_size=3),
)  # fmt: skip
MOLDS = (
    b'{"choices":[{"index":0,"text":"@","logprobs":null,"finish_reason":null}],"usage":null}',
    b'{"choices": [{"text": "@", "index": 0, "finish_reason": "length"}]}',
    b'{"choices":[{"index":1,"text":"@"}]}',
    b'{"choices":[{"index":0,"text":"@","token_ids":[5]}]}',
    b'{"choices":[{"index":0,"text":"@"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}',
    b'{"choices":[{"index":0,"text":"@"}],"usage":{"prompt_tokens":5}}',
    b'{"choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]}',
    b'{"choices":[{"index":0,"delta":{"role":"assistant","content":"@"}}]}',
    b'{"choices":[{"index":0,"delta":{"content":"","reasoning_content":"@"}}]}',
    b'{"choices":[{"index":0,"delta":{"reasoning":"@","content":null}}]}',
    b'{"choices":[{"delta":{"content":"@","tool_calls":[{"function":{"arguments":"@"}}]}}]}',
    b'{"choices":[{"delta":{"content":"@"}},{"index":1,"delta":{"content":"x"}}]}',
    b'[{"choices":[{"index":0,"text":"@"}]}]',
    b'{"error":{"message":"x"},"choices":[{"text":"@"}]}',
    b'{"text":"x","choices":[{"text":"@","text":"y"}]}',
    b'{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4}}',
    b'{"type":"response.output_text.delta","delta":"x","text":"@"}',
    b"[DONE]",
)
FRAMES = st.sampled_from(
    [b"data: %b\n\n"] * 6
    + [b"data:%b\n\n", b"data: %b\r\n\r\n", b"event: error\ndata: %b\n\n", b": x\n\ndata: %b\n\n"]
    + [b"data: %b\n", b"data: %b", b"data: %b \n\n", b"%b\n\n"]
)
SENT = st.lists(st.tuples(st.booleans(), INSIDE, FRAMES, st.integers(1, 3)), max_size=10)


@given(
    st.sampled_from(APIS),
    st.tuples(st.sampled_from(MOLDS), st.sampled_from(MOLDS)),
    SENT,
    st.lists(st.integers(0, 10**6), max_size=2),
)
def test_hostile_streams(
    api: str,
    molds: tuple[bytes, bytes],
    drawn: list[tuple[bool, bytes, bytes, int]],
    places: list[int],
) -> None:
    """Chunks that look alike and aren't: each may come after each, whole or cut."""
    sent = [
        frame % molds[other].replace(b"@", inside)
        for other, inside, frame, times in drawn
        for _ in range(times)
    ]
    check(api, sent)
    check(api, pieces(b"".join(sent), places, by_event=True))


@given(st.sampled_from(MOLDS[:11]), st.lists(INSIDE, min_size=2, max_size=8))
def test_texts_in_one_mold(mold: bytes, insides: list[bytes]) -> None:
    for api in APIS:
        check(api, [b"data: %b\n\n" % mold.replace(b"@", inside) for inside in [b"a", *insides]])
