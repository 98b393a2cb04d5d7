import math
from array import array
from dataclasses import replace
from typing import Any

import pytest

from tests.support.traces import request, steady
from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.flow import gaps_ms
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import (
    Window,
    judge,
    still_open,
    window_length_s,
)

SLO = SpecSlo(ttft_p99_ms=1000, tpot_p99_ms=50)
WINDOW = Window(index=3, phase="confirm", rate_rps=10.0, w0_s=100.0, w1_s=120.0, warmup_s=10.0)


def cohort(good: int, *others: RequestTrace) -> list[RequestTrace]:
    return [*(steady(100 + 19 * i / max(good, 1)) for i in range(good)), *others]


def slow_first(sched_s: float = 110.0) -> RequestTrace:
    return steady(sched_s, ttft_s=1.5)


def slow_next(sched_s: float = 110.0) -> RequestTrace:
    return steady(sched_s, tpot_s=0.08)


def test_the_cohort_is_scheduled_in_the_half_open_window() -> None:
    traces = [steady(99.999), steady(100.0), steady(119.999), steady(120.0)]
    assert judge(traces, WINDOW, SLO, 130.0).counts.sent == 2


def test_conservation() -> None:
    tally = judge(
        cohort(3, request(110, outcome="failed"), request(111, outcome="running")), WINDOW, SLO, 130
    ).counts
    assert (tally.sent, tally.ok, tally.failed, tally.unfinished) == (5, 3, 1, 1)
    assert tally.reasons == {"http_503": 1}


@pytest.mark.parametrize(
    "good, bad, passed",
    [
        (198, [slow_first(), slow_first()], True),
        (197, [slow_first(), slow_first(), slow_first()], False),
        (196, [slow_first(), slow_first(), slow_next(), slow_next()], True),
        (197, [slow_next(), slow_next(), slow_next()], False),
        (99, [slow_next()], True),
        (198, [slow_next(), slow_next()], True),
        (98, [], False),
        (0, [], False),
    ],
)
def test_a_window_passes_when_each_of_the_two_shares_is_at_most_one_percent(
    good: int, bad: list[RequestTrace], *, passed: bool
) -> None:
    stats = judge(cohort(good, *bad), WINDOW, SLO, 130.0)
    assert stats.passed is passed
    assert stats.undecided_n is (good + len(bad) < 100)


def test_failed_requests_miss_both_limits() -> None:
    failed = [request(110, [110.1, 110.2], outcome="failed") for _ in range(2)]
    stats = judge(cohort(150, *failed), WINDOW, SLO, 130.0)
    assert (stats.counts.miss_ttft, stats.counts.miss_tpot, stats.passed) == (2, 2, False)
    assert stats.ttft_ms[-1] == math.inf


def test_what_has_no_verdict_at_the_end_is_a_miss() -> None:
    waiting = request(119.9, outcome="running", asked=10)
    decoding = request(118.0, [118.2], outcome="running", asked=10)
    stats = judge(cohort(150, waiting, decoding), WINDOW, SLO, 120.0)
    assert (stats.counts.miss_ttft, stats.counts.miss_tpot) == (1, 2)


def test_an_answer_of_one_token_meets_the_tpot_limit() -> None:
    stats = judge(cohort(99, request(110, [110.2])), WINDOW, SLO, 130.0)
    assert stats.counts.miss_tpot == 0
    assert stats.tpot_ms[0] == -math.inf


def test_the_share_that_kept_both_limits_is_reported_beside_the_verdict() -> None:
    stats = judge(
        cohort(196, slow_first(), slow_first(), slow_next(), slow_next()), WINDOW, SLO, 130
    )
    assert (stats.passed, stats.slo_attainment_pct) == (True, 98.0)
    assert stats.goodput_rps == pytest.approx(196 / 20)


def test_latencies_of_the_cohort() -> None:
    stats = judge(cohort(150, slow_first()), WINDOW, SLO, 130.0)
    assert nearest_rank(stats.ttft_ms, 0.5) == pytest.approx(200)
    assert stats.e2e_ms[-1] == pytest.approx(1700)
    assert (len(stats.itl_ms), stats.itl_by_token) == (151 * 10, True)
    assert (stats.mean_input_tokens, stats.mean_output_tokens) == (100, 11)


def test_an_empty_window_has_no_figures_and_no_pass() -> None:
    stats = judge([], WINDOW, SLO, 130.0)
    assert (stats.passed, stats.undecided_n, stats.valid) == (False, True, True)
    assert (stats.slo_attainment_pct, stats.mean_output_tokens) == (None, None)
    assert (stats.client.lag_p99_s, stats.client.lag_max_s) == (None, None)


def every(traces: list[RequestTrace], nth: int, **fields: Any) -> list[RequestTrace]:
    """Return the requests with these fields set on each nth of them."""
    return [replace(t, **fields) if i % nth == 0 else t for i, t in enumerate(traces)]


def late(traces: list[RequestTrace], nth: int, lag_s: float) -> list[RequestTrace]:
    return [
        replace(t, t_send_s=t.t_sched_s + lag_s) if i % nth == 0 else t
        for i, t in enumerate(traces)
    ]


@pytest.mark.parametrize(
    "traces, reasons",
    [
        (cohort(200), []),
        (late(cohort(200), 200, 0.5), []),
        (late(cohort(200), 50, 0.02), ["LAG"]),
        (late(cohort(200), 50, 0.009), []),
        (every(cohort(200), 50, t_send_s=None, outcome="running"), ["LAG"]),
        (every(cohort(200), 100, coalesced=True), []),
        (every(cohort(200), 50, coalesced=True), ["COALESCED"]),
        (every(cohort(200), 1, n_cached=0), []),
        (every(cohort(200), 2, n_prompt=200, n_cached=1), []),
        (every(cohort(200), 2, n_prompt=200, n_cached=2), ["CACHED"]),
        (every(cohort(200), 1, n_prompt=200, n_cached=101, n_planned=100), []),
        (every(cohort(200), 1, n_prompt=200, n_cached=102, n_planned=100), ["CACHED"]),
        (every(cohort(200), 1, n_prompt=200, n_cached=0, n_planned=100), []),
        (
            [*cohort(200), replace(request(99, outcome="failed"), reason="client_limit")],
            ["CLIENT_LIMIT"],
        ),
        ([*cohort(200), replace(request(125, outcome="failed"), reason="client_limit")], []),
    ],
)
def test_what_makes_a_window_invalid(traces: list[RequestTrace], reasons: list[str]) -> None:
    stats = judge(traces, WINDOW, SLO, 130.0)
    assert (stats.reasons, stats.valid) == (reasons, not reasons)


def test_the_lag_limit_is_never_under_five_milliseconds() -> None:
    strict = SpecSlo(ttft_p99_ms=300, tpot_p99_ms=50)
    assert judge(late(cohort(200), 50, 0.0049), WINDOW, strict, 130.0).reasons == []
    assert judge(late(cohort(200), 50, 0.0051), WINDOW, strict, 130.0).reasons == ["LAG"]


def test_what_the_client_says_of_itself() -> None:
    traces = late(cohort(200), 50, 0.02)
    traces[1] = replace(traces[1], n_output=12)
    client = judge(traces, WINDOW, SLO, 130.0).client
    assert client.lag_p99_s == client.lag_max_s == pytest.approx(0.02)
    assert client.mismatch_pct == 0.5
    assert client.cached_pct is None
    assert client.gap_cv == pytest.approx(0.1, abs=0.1)
    assert client.dispersion == pytest.approx(0.31, abs=0.01)  # the last second is empty


def test_the_open_ones_are_those_of_the_cohort_without_a_verdict() -> None:
    waiting = request(119.0, outcome="running", asked=10)
    lost = request(105.0, outcome="running", asked=10)
    outside = request(120.0, outcome="running", asked=10)
    traces = [*cohort(3), waiting, lost, outside]
    assert still_open(traces, WINDOW, SLO, 119.5) == [waiting]
    assert still_open([waiting], WINDOW, SLO, 120.1) == []


def test_whether_answers_may_stop_early_reaches_the_rule() -> None:
    trace = request(110.0, [110.2, 110.24], outcome="running", asked=11)
    assert len(still_open([trace], WINDOW, SLO, 115.0)) == 0
    assert len(still_open([trace], WINDOW, SLO, 115.0, ignore_eos=False)) == 1


@pytest.mark.parametrize(
    "rate_rps, length_s",
    [(10.0, 60.0), (1.0, 135.0), (0.5, 270.0), (0.1, 600.0)],
)
def test_a_window_is_stretched_for_its_requests_at_most_ten_times(
    rate_rps: float, length_s: float
) -> None:
    assert window_length_s(60.0, rate_rps, 100) == length_s


@pytest.mark.parametrize("least", [100, 300])
def test_a_stretched_window_rarely_holds_too_few_requests(least: int) -> None:
    """The chance of fewer Poisson arrivals than asked for, summed term by term."""
    expected = window_length_s(1.0, least / 5, least) * least / 5
    short = math.fsum(
        math.exp(k * math.log(expected) - expected - math.lgamma(k + 1)) for k in range(least)
    )
    assert short < 1e-3


def test_times_are_floats_of_an_array() -> None:
    assert isinstance(judge(cohort(3), WINDOW, SLO, 130.0).ttft_ms, array)
    assert WINDOW.length_s == 20.0


def test_a_refused_connection_is_a_miss_and_no_lag() -> None:
    traces = [steady(100 + i / 20) for i in range(190)]
    refused = [request(100 + i, outcome="failed") for i in range(10)]
    for trace in refused:
        trace.t_send_s, trace.reason = None, "connect"
    stats = judge([*traces, *refused], WINDOW, SLO, 120.0)
    assert (stats.passed, stats.valid) == (False, True)
    assert stats.counts.miss_ttft == 10


def test_an_event_without_a_token_lends_its_gap_to_the_next() -> None:
    trace = request(100.0, [100.1, 100.2, 100.3, 100.5], tokens=3)
    trace.event_tokens = [1, 1, 0, 1]
    gaps, by_token = gaps_ms([trace])
    assert by_token
    assert gaps == pytest.approx([100, 300])


def test_injected_requests_are_in_no_cohort_but_their_tokens_count() -> None:
    """They stand for what was in flight before: only their TPOT can be good or bad."""
    good = replace(steady(100.0, ttft_s=5.0), injected=True)
    slow = replace(steady(100.0, ttft_s=5.0, tpot_s=0.08), injected=True)
    alone = judge(cohort(150), WINDOW, SLO, 130.0)
    stats = judge(cohort(150, good, slow), WINDOW, SLO, 130.0)
    assert (stats.counts, stats.ttft_ms, stats.tpot_ms) == (
        alone.counts,
        alone.ttft_ms,
        alone.tpot_ms,
    )
    assert stats.output_tok_s == pytest.approx(alone.output_tok_s + 22 / 20)
    assert stats.goodput_tok_s == pytest.approx(alone.goodput_tok_s + 11 / 20)
    assert (
        still_open([replace(request(100, outcome="running"), injected=True)], WINDOW, SLO, 100.0)
        == []
    )


def test_a_short_tail_judges_the_unfinished_by_what_they_had() -> None:
    fine = request(119.0, [119.1, 119.13], outcome="running", asked=500)
    slow = request(119.0, [119.1, 119.2], outcome="running", asked=500)
    waits = request(118.8, outcome="running", asked=500)
    stats = judge(cohort(150, fine, slow, waits), replace(WINDOW, tail_s=0.0), SLO, 120.0)
    assert (stats.counts.miss_ttft, stats.counts.miss_tpot, stats.counts.unfinished) == (1, 1, 3)
    assert stats.goodput_rps == pytest.approx(151 / 20)
    assert judge(cohort(150, fine, slow, waits), WINDOW, SLO, 120.0).counts.miss_tpot == 3


def test_a_window_that_was_given_up_passes_in_no_case() -> None:
    stats = judge(cohort(150), replace(WINDOW, aborted=True), SLO, 120.0)
    assert (stats.counts.miss_ttft, stats.passed) == (0, False)
