"""However a stream is cut into reads, its events are those of the standard's own algorithm."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.load.sse import SseDecoder

ENDS = (b"\n", b"\r\n", b"\r")
LINES = st.one_of(
    st.sampled_from([b"", b"", b"data", b"data:", b"data: ", b":", b"event: error", b"id: 1"]),
    st.builds(lambda text: b"data: " + text.encode(), st.text(max_size=8)),
    st.builds(lambda text: b"data:" + text.encode(), st.text('ab\u2028\u0085é😀{}":', max_size=6)),
    st.binary(max_size=6),
)
STREAMS = st.builds(
    lambda bom, lines: bom + b"".join(line + end for line, end in lines),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb"]),
    st.lists(st.tuples(LINES, st.sampled_from(ENDS)), max_size=12),
)


def reference(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The whole stream at once, as the standard describes it (and named events kept)."""
    found: list[tuple[bytes, bytes]] = []
    data: list[bytes] = []
    name = b""
    for line in [*re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf")), b""]:
        if not line and (data or name):
            found.append((name, b"\n".join(data)))
            data, name = [], b""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return found


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(marks)]


@given(STREAMS, st.lists(st.integers(0, 10_000), max_size=8))
def test_any_cut_gives_the_same_events(stream: bytes, places: list[int]) -> None:
    decoder = SseDecoder()
    found = [event for read in cut(stream, places) for event in decoder.feed(read)]
    assert found + decoder.close() == reference(stream)


@given(STREAMS)
def test_byte_by_byte_gives_the_same_events(stream: bytes) -> None:
    decoder = SseDecoder()
    found = [event for place in range(len(stream)) for event in decoder.feed(stream[place:][:1])]
    assert found + decoder.close() == reference(stream)


@given(st.lists(st.lists(st.lists(LINES, max_size=3), max_size=4), max_size=4))
def test_reads_of_whole_events_give_the_same_events(reads: list[list[list[bytes]]]) -> None:
    """What a server sends: reads that end where events end, and no carriage return."""
    plain = [
        b"".join(line.replace(b"\r", b"") + b"\n" for event in read for line in [*event, b""])
        for read in reads
    ]
    decoder = SseDecoder()
    found = [event for read in plain for event in decoder.feed(read)]
    assert found + decoder.close() == reference(b"".join(plain))
