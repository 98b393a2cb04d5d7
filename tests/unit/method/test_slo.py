import math

import pytest

from tests.support.traces import request, steady
from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.slo import (
    decided,
    kept,
    n_output,
    tokens_seen,
    tpot_s,
    tpot_so_far_ms,
    tpot_value_ms,
    ttft_s,
    ttft_so_far_ms,
    ttft_value_ms,
)
from tokenwatt_site.method.trace import RequestTrace

SLO = SpecSlo(ttft_p99_ms=1000, tpot_p99_ms=50)


def test_ttft_counts_from_the_schedule_not_from_the_send() -> None:
    trace = request(10.0, [10.5, 10.6])
    trace.t_send_s = 10.4
    assert ttft_s(trace) == pytest.approx(0.5)


def test_there_is_no_ttft_without_a_token() -> None:
    assert ttft_s(request(0, outcome="running")) is None


def test_tpot_leaves_the_tokens_of_the_first_event_out() -> None:
    trace = request(0, [1.0, 1.1, 1.3], tokens=16)
    trace.n_first = 10
    assert tpot_s(trace) == pytest.approx(0.3 / 6)


def test_two_tokens_a_chunk_are_counted_from_usage() -> None:
    assert tpot_s(request(0, [1.0, 1.1, 1.2], tokens=6)) == pytest.approx(0.2 / 5)


def test_without_a_count_each_event_is_a_token() -> None:
    trace = request(0, [1.0, 1.1, 1.2])
    trace.n_output = None
    assert (n_output(trace), tpot_s(trace)) == (3, pytest.approx(0.1))


def test_counts_of_events_are_summed() -> None:
    trace = request(0, [1.0, 1.1], outcome="running")
    trace.event_tokens = [1, 4]
    assert tokens_seen(trace) == 5


def coalesced(tokens: int) -> RequestTrace:
    trace = request(0, [0.5], tokens=tokens)
    trace.coalesced, trace.n_first = True, tokens
    return trace


def one_token() -> RequestTrace:
    return request(0, [0.5])


@pytest.mark.parametrize(
    "trace, ttft_ms, tpot_ms, good",
    [
        (steady(0, 0.2, 0.02), 200, 20, True),
        (steady(0, 1.0, 0.04, n=2), 1000, 40, True),
        (steady(0, 1.1, 0.02), 1100, 20, False),
        (steady(0, 0.2, 0.06), 200, 60, False),
        (one_token(), 500, -math.inf, True),
        (coalesced(1), 500, -math.inf, True),
        (coalesced(20), 500, math.inf, False),
        (request(0, [0.2, 0.3], outcome="failed"), math.inf, math.inf, False),
        (request(0, [0.2, 0.3], outcome="running"), 200, math.inf, False),
        (request(0, outcome="running"), math.inf, math.inf, False),
    ],
)
def test_what_a_request_is_worth(
    trace: RequestTrace, ttft_ms: float, tpot_ms: float, *, good: bool
) -> None:
    assert ttft_value_ms(trace) == pytest.approx(ttft_ms)
    assert tpot_value_ms(trace) == pytest.approx(tpot_ms)
    assert kept(trace, ttft_value_ms(trace), tpot_value_ms(trace), SLO) is good


@pytest.mark.parametrize("outcome", ["ok", "failed"])
def test_what_has_ended_is_decided(outcome: str) -> None:
    assert decided(request(0, [0.1, 0.2], outcome=outcome), SLO, 0.2)  # type: ignore[arg-type]


@pytest.mark.parametrize("now_s, lost", [(1.0, False), (1.001, True)])
def test_a_request_without_a_token_is_lost_when_the_limit_has_passed(
    now_s: float, *, lost: bool
) -> None:
    assert decided(request(0, outcome="running", asked=10), SLO, now_s) is lost


def test_a_late_first_token_is_decided_while_it_runs() -> None:
    assert decided(request(0, [1.2], outcome="running", asked=10), SLO, 1.2)


@pytest.mark.parametrize("now_s, lost", [(0.6, False), (1.0, False), (1.01, True)])
def test_a_running_answer_is_lost_once_all_its_missing_tokens_at_once_come_too_late(
    now_s: float, *, lost: bool
) -> None:
    """11 tokens at 50 ms: the last may come half a second after the first, however few came yet."""
    assert decided(request(0, [0.5, 0.52], outcome="running", asked=11), SLO, now_s) is lost


@pytest.mark.parametrize("last_s, lost", [(0.62, True), (0.54, False)])
def test_an_answer_that_may_stop_early_is_lost_only_if_stopping_now_is_too_slow_too(
    last_s: float, *, lost: bool
) -> None:
    """At 2 s going on can't help; stopping at 2 tokens is within 50 ms a token, or not."""
    trace = request(0, [0.5, last_s], outcome="running", asked=11)
    assert decided(trace, SLO, 2.0, ignore_eos=False) is lost
    assert decided(trace, SLO, 2.0, ignore_eos=True) is True


def test_an_answer_of_one_token_so_far_may_still_stop_there() -> None:
    assert not decided(request(0, [0.5], outcome="running", asked=11), SLO, 9.0, ignore_eos=False)


@pytest.mark.parametrize("last_s, lost", [(1.0, False), (1.1, True)])
def test_an_answer_that_has_all_its_tokens_waits_for_its_end_without_losing(
    last_s: float, *, lost: bool
) -> None:
    events = [0.5, 0.6, 0.7, 0.8, 0.9, last_s]
    trace = request(0, events, outcome="running", asked=11)
    trace.event_tokens = [1, 2, 2, 2, 2, 2]
    assert decided(trace, SLO, 5.0) is lost


def test_an_answer_of_one_token_can_not_lose_on_tpot() -> None:
    assert not decided(request(0, [0.5], outcome="running", asked=1), SLO, 50.0)


def test_a_running_request_is_worth_what_it_had_so_far() -> None:
    waiting = request(10, outcome="running")
    assert (ttft_so_far_ms(waiting, 10.7), tpot_so_far_ms(waiting)) == (
        pytest.approx(700),
        -math.inf,
    )
    decoding = request(10, [10.2, 10.23, 10.26], outcome="running", asked=100)
    assert ttft_so_far_ms(decoding, 12) == pytest.approx(200)
    assert tpot_so_far_ms(decoding) == pytest.approx(30)
    assert tpot_so_far_ms(decoding, an_event=2.0) == pytest.approx(60 / 5)
    decoding.event_tokens = [1, 2, 2]
    assert tpot_so_far_ms(decoding, an_event=2.0) == pytest.approx(60 / 4)


def test_what_has_ended_is_worth_the_same_at_any_time() -> None:
    for trace in (steady(0, 0.2, 0.06), request(0, [0.2], outcome="failed"), one_token()):
        assert ttft_so_far_ms(trace, 9) == ttft_value_ms(trace)
        assert tpot_so_far_ms(trace) == tpot_value_ms(trace)
