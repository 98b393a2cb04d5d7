"""The account of a window, whatever its requests did."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import request
from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.slo import decided, kept, tpot_value_ms, ttft_value_ms
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import Window, judge, still_open

SLO = SpecSlo(ttft_p99_ms=1000, tpot_p99_ms=100)
WINDOW = Window(0, "search", 10.0, 10.0, 30.0, 10.0)
END_S = 40.0


@st.composite
def requests(draw: st.DrawFn) -> RequestTrace:
    """A request that is finished, failed or running, with events before the end of the load."""
    sched_s = draw(st.floats(0, 35))
    gaps = draw(st.lists(st.floats(0, 1.5), max_size=12))
    times = [sched_s + math.fsum(gaps[: i + 1]) for i in range(len(gaps))]
    times = [t for t in times if t <= END_S]
    outcome = draw(
        st.sampled_from(["ok", "ok", "ok", "running", "failed"] if times else ["running"])
    )
    asked = len(times) + (draw(st.integers(0, 5)) if outcome != "ok" else 0)
    trace = request(sched_s, times, outcome=outcome, asked=max(1, asked))  # type: ignore[arg-type]
    if draw(st.booleans()):
        trace.event_tokens = draw(
            st.lists(st.integers(1, 4), min_size=len(times), max_size=len(times))
        )
        if outcome == "ok":
            trace.n_output, trace.n_first = sum(trace.event_tokens), trace.event_tokens[0]
    return trace


LOADS = st.lists(requests(), max_size=40)


@given(LOADS)
def test_requests_are_conserved_and_shares_are_shares(load: list[RequestTrace]) -> None:
    stats = judge(load, WINDOW, SLO, END_S)
    tally = stats.counts
    assert tally.sent == tally.ok + tally.failed + tally.unfinished
    assert tally.failed == sum(tally.reasons.values())
    assert tally.failed + tally.unfinished <= tally.miss_tpot <= tally.sent
    assert tally.failed <= tally.miss_ttft <= tally.sent
    assert stats.slo_attainment_pct is None or 0 <= stats.slo_attainment_pct <= 100


@given(LOADS)
def test_each_p99_is_within_its_limit_exactly_when_its_share_is(load: list[RequestTrace]) -> None:
    stats = judge(load, WINDOW, SLO, END_S)
    n = stats.counts.sent
    if n:
        for values, limit_ms, missed in (
            (stats.ttft_ms, SLO.ttft_p99_ms, stats.counts.miss_ttft),
            (stats.tpot_ms, SLO.tpot_p99_ms, stats.counts.miss_tpot),
        ):
            assert (nearest_rank(values, 0.99) <= limit_ms) == (100 * missed <= n)


@given(LOADS)
def test_goodput_is_a_part_of_the_output(load: list[RequestTrace]) -> None:
    stats = judge(load, WINDOW, SLO, END_S)
    assert 0 <= stats.goodput_tok_s <= stats.output_tok_s + 1e-9
    assert stats.goodput_rps <= stats.counts.ok / WINDOW.length_s


@given(LOADS, st.floats(11, 29))
def test_two_halves_hold_the_tokens_of_the_whole(load: list[RequestTrace], cut_s: float) -> None:
    whole = judge(load, WINDOW, SLO, END_S)
    halves = [replace(WINDOW, w1_s=cut_s), replace(WINDOW, w0_s=cut_s)]
    parts = [judge(load, half, SLO, END_S) for half in halves]
    for key in ("output_tok_s", "goodput_tok_s", "input_tok_s", "mean_concurrency", "goodput_rps"):
        total = sum(getattr(p, key) * half.length_s for p, half in zip(parts, halves, strict=True))
        assert math.isclose(
            total, getattr(whole, key) * WINDOW.length_s, rel_tol=1e-9, abs_tol=1e-9
        )


@given(LOADS, st.floats(10, 40), st.floats(0, 20), st.booleans())
def test_what_is_decided_stays_decided_and_asking_again_of_the_open_ones_is_enough(
    load: list[RequestTrace],
    now_s: float,
    more_s: float,
    ignore_eos: bool,  # noqa: FBT001
) -> None:
    running = [t for t in load if all(e <= now_s for e in t.events_s)]
    early = still_open(running, WINDOW, SLO, now_s, ignore_eos=ignore_eos)
    late = still_open(running, WINDOW, SLO, now_s + more_s, ignore_eos=ignore_eos)
    assert late == still_open(early, WINDOW, SLO, now_s + more_s, ignore_eos=ignore_eos)
    assert len(still_open(running, WINDOW, SLO, now_s, ignore_eos=ignore_eos)) == len(early)


@given(requests(), st.lists(st.floats(0, 1), min_size=12, max_size=12), st.booleans())
def test_a_certain_miss_is_a_miss_however_the_request_goes_on(
    trace: RequestTrace,
    gaps: list[float],
    stops: bool,  # noqa: FBT001
) -> None:
    """A running request called lost is finished in some way from then on: it is never met."""
    now_s = max([trace.t_sched_s + 0.5, *trace.events_s])
    running = replace(trace, outcome="running", n_output=None)
    if not decided(running, SLO, now_s, ignore_eos=not stops):
        return
    seen = running.event_tokens
    tokens = len(running.events_s) if seen is None else sum(seen)
    missing = 0 if stops and tokens else max(0, running.output_tokens - tokens)
    ends = [now_s + math.fsum(gaps[: i + 1]) for i in range(missing)]
    finished = replace(
        running,
        events_s=running.events_s + type(running.events_s)("d", ends),
        event_tokens=None if seen is None else [*seen, *[1] * missing],
        n_output=tokens + missing,
        outcome="ok",
    )
    assert not kept(finished, ttft_value_ms(finished), tpot_value_ms(finished), SLO)
