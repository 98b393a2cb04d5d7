"""Rows of evidence and back: the figures are computed from what was written."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.method.evidence import power_row, request_row, sample_of, trace_of
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.trace import RequestTrace

times = st.floats(min_value=-10, max_value=1e5, allow_nan=False)
maybe_time = st.none() | times
counts = st.none() | st.integers(0, 10**6)


@st.composite
def traces(draw: st.DrawFn) -> RequestTrace:
    stamps = array("d", sorted(draw(st.lists(times, max_size=20))))
    return RequestTrace(
        index=draw(st.integers(0, 10**6)),
        t_sched_s=draw(times),
        input_tokens=draw(st.integers(1, 10**6)),
        output_tokens=draw(st.integers(1, 10**6)),
        injected=draw(st.booleans()),
        n_planned=draw(st.integers(0, 100)),
        t_send_s=draw(maybe_time),
        events_s=stamps,
        event_tokens=draw(st.none() | st.just([1] * len(stamps))),
        n_output=draw(counts),
        n_source=draw(st.sampled_from([None, "usage", "chunks"])),
        n_first=draw(st.integers(1, 5)),
        n_prompt=draw(counts),
        n_cached=draw(counts),
        status=draw(st.sampled_from([None, 200, 503])),
        finish=draw(st.sampled_from([None, "length"])),
        done=draw(st.booleans()),
        coalesced=draw(st.booleans()),
        outcome=draw(st.sampled_from(["running", "ok", "failed"])),
        reason=draw(st.text(max_size=10)),
        t_end_s=draw(maybe_time),
    )


@given(traces(), st.floats(0, 1e6))
def test_a_trace_read_from_its_row_writes_the_same_row(trace: RequestTrace, t0_s: float) -> None:
    row = request_row(trace, 3, t0_s)
    again = trace_of(row)
    assert request_row(again, 3, 0.0) == row
    assert again.injected is trace.injected
    assert again.n_planned == trace.n_planned
    assert len(again.events_s) == len(trace.events_s)
    for mine, its in zip(again.events_s, trace.events_s, strict=True):
        assert abs(mine - (its - t0_s)) < 1e-6


@given(times, st.none() | st.floats(0, 1e4), st.none() | st.just(()) | st.just(("sw_power_cap",)))
def test_a_sample_read_from_its_row_writes_the_same_row(
    t_s: float, power_w: float | None, throttle: tuple[str, ...] | None
) -> None:
    sample = PowerSample(t_s, "GPU-0", power_w=power_w, throttle=throttle, throttle_ns={"a": 1})
    row = power_row(sample, 0, 0.0)
    assert power_row(sample_of(row), 0, 0.0) == row
    assert (sample_of(row).power_w, sample_of(row).throttle) == (power_w, throttle)
