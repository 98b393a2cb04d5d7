"""However the bytes of an answer are cut into reads, its trace is the same."""

from array import array
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scripted import Do, ScriptedServer
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.conformance.case import Case
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.cases.endings import TIMEOUT_S
from tokenwatt_site.load.conformance.script import event
from tokenwatt_site.load.conformance.writer import WRITERS, Writer, usage_of
from tokenwatt_site.load.player import play
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.outcome import Asked
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

TEXTS = st.sampled_from(["x", " a", "", "é", "😀", "a\u2028b", '"', "\\", "data: x", "}"])


def plain(writer: Writer) -> st.SearchStrategy[bytes]:
    """An event as this dialect has them, and a few that are none."""
    return st.one_of(
        TEXTS.map(writer.token),
        TEXTS.map(writer.token),
        TEXTS.map(lambda text: writer.token(text, "length")),
        st.integers(0, 9).map(lambda n: writer.token("x", **usage_of(n))),
        st.integers(0, 9).map(writer.end),
        st.sampled_from(
            [writer.error(), event("oops"), b": keep-alive\n\n", b"event: error\ndata: {}\n\n"]
        ),
    )


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, bytes]:
    api = draw(st.sampled_from(sorted(WRITERS)))
    body = b"".join(draw(st.lists(plain(WRITERS[api]), max_size=8)))
    ends = draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]))
    body = body.replace(b"\n", ends)
    return api, body[: len(body) - draw(st.sampled_from([0, 0, 1, 2, 9]))]


def read(api: str, reads: list[bytes]) -> RequestTrace:
    """Take in an answer; each read's time is the number of bytes that have come by then."""
    trace = RequestTrace(0, 0.0, 5, 8)
    stream = Stream(trace, b"", dialect(api), Asked(), lambda _: None)
    stream.head(200)
    at = 0
    for each in reads:
        at += len(each)
        if not stream.ended:
            stream.body(each, float(at))
    stream.end("complete", 1e9)
    return trace


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in pairwise(marks) if b > a]


def facts(trace: RequestTrace) -> tuple[Any, ...]:
    told = (trace.n_output, trace.n_source, trace.n_prompt, trace.n_first, trace.event_tokens)
    return (trace.outcome, trace.reason, trace.finish, trace.done, len(trace.events_s), told)


@given(streams(), st.lists(st.integers(0, 10_000), max_size=10))
def test_any_cut_gives_the_same_trace(stream: tuple[str, bytes], places: list[int]) -> None:
    """A token's stamp is the time of the read that completed its event."""
    api, body = stream
    bytewise = read(api, [body[i : i + 1] for i in range(len(body))])
    reads = cut(body, places)
    trace = read(api, reads)
    assert facts(trace) == facts(bytewise)
    ends = [float(sum(map(len, reads[: i + 1]))) for i in range(len(reads))]
    complete = [next(end for end in ends if end >= at) for at in bytewise.events_s]
    assert list(trace.events_s) == complete


@settings(max_examples=60)
@given(st.sampled_from(rows()), st.lists(st.integers(0, 10_000), max_size=10))
def test_any_cut_of_the_http_answer_too(row: tuple[Case, str], places: list[int]) -> None:
    case, api = row
    script = case.script(WRITERS[api])
    answer = b"".join(what for _, what in script if isinstance(what, bytes))
    steps: list[tuple[float, bytes | Do]] = [
        (0.1 + 0.001 * i, piece) for i, piece in enumerate(cut(answer, places))
    ]
    steps += [(0.2, what) for _, what in script if isinstance(what, Do)]

    async def run() -> RequestTrace:
        clock = VirtualClock()
        schedule = Schedule(array("d", [0.0]), array("q", [5]), array("q", [case.asked]), 0, 1.0)
        target = Target("http://server/v1", api, "m", timeout_s=TIMEOUT_S, extra_body=case.extra)
        connector = MemoryConnector(ScriptedServer(lambda *_: steps))
        played = await play(
            target, schedule, lambda _: "hi", clock, connector, lambda *_: False, clock.now() + 1
        )
        return played.traces[0]

    trace, truth = run_virtual(run()), case.truth
    assert (trace.outcome, trace.reason) == (truth.outcome, truth.reason)
    assert (trace.n_output, trace.n_source) == (truth.tokens, truth.source)
