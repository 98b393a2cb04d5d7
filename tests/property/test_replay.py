"""Traces of strangers: a trace or one clear error; and loads that go on as they began."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwatt_site.documents.spec_workload import SpecWorkload
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.recorded import draw_schedule
from tokenwatt_site.method.replay import Trace, trace_of
from tokenwatt_site.method.workloads import workload_of

FORMS = (
    (
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
        b"2023-11-16 18:17:04.0319600,3180,8"
    ),
    (
        b'{"t_s": 0.5, "input_tokens": 10, "output_tokens": 3}\n'
        b'{"t_s": 2, "input_tokens": 20, "output_tokens": 4}\n'
    ),
    (
        b'{"timestamp": 0, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}\n'
        b'{"timestamp": 3000, "input_length": 20, "output_length": 4, "hash_ids": [7]}\n'
    ),
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(FORMS))
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 4)))
    return data[:start] + draw(st.binary(max_size=6)) + data[end:]


@given(st.binary(max_size=60) | spoiled())
@settings(max_examples=200)
def test_any_bytes_are_a_trace_or_a_usage_error(data: bytes) -> None:
    try:
        trace = trace_of(TraceFile("t", data))
    except UsageError:
        return
    assert trace is not None
    assert list(trace.at_s) == sorted(trace.at_s)
    assert trace.at_s[0] == 0 < trace.rate_rps
    assert min(*trace.input_tokens, *trace.output_tokens) >= 1
    assert len(trace.input_tokens) == len(trace.output_tokens) == len(trace)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    gaps = draw(st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(lambda g: sum(g[1:])))
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    rows = [{"t_s": t, "input_tokens": n + 1, "output_tokens": n + 2} for n, t in enumerate(times)]
    trace = trace_of(TraceFile("t", "\n".join(map(json.dumps, rows)).encode()))
    assert trace is not None
    return trace


@given(
    traces(),
    st.sampled_from(["rescaled", "kept", "poisson"]),
    st.floats(0.1, 30),
    st.tuples(st.floats(0, 30), st.floats(0, 30)),
    st.integers(0, 2**64),
)
@settings(max_examples=60)
def test_a_longer_load_goes_on_with_the_same_requests(
    trace: Trace, timestamps: str, rate_rps: float, seconds: tuple[float, float], seed: int
) -> None:
    spec = SpecWorkload.model_validate({"trace": "t.jsonl", "timestamps": timestamps})
    workload = workload_of(spec, trace)
    short = draw_schedule(workload, rate_rps, seconds[0], seed)
    long = draw_schedule(workload, rate_rps, sum(seconds), seed)
    n = len(short)
    assert list(long.arrival_s) == sorted(long.arrival_s)
    assert all(0 <= t < sum(seconds) for t in long.arrival_s)
    assert (long.arrival_s[:n], long.input_tokens[:n]) == (short.arrival_s, short.input_tokens)
    pairs = set(zip(long.input_tokens, long.output_tokens, strict=True))
    assert pairs <= set(zip(trace.input_tokens, trace.output_tokens, strict=True))
    if timestamps == "rescaled":
        # a whole round has the asked rate, whatever was cut off at both ends
        assert abs(len(long) - rate_rps * sum(seconds)) <= len(trace) + 1
