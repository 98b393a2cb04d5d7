import math

import pytest

from tests.support.traces import request, steady
from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.flow import Flow, dispersion, gap_cv, gaps_ms
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.slo import kept, tpot_value_ms, ttft_value_ms
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.workloads import Fixed, Workload

SLO = SpecSlo(ttft_p99_ms=1000, tpot_p99_ms=50)
SPAN = (10.0, 20.0)


def met(trace: RequestTrace) -> bool:
    return kept(trace, ttft_value_ms(trace), tpot_value_ms(trace), SLO)


def flow(*traces: RequestTrace, now_s: float = 30.0) -> Flow:
    return Flow.of(traces, SPAN, met, now_s)


def test_tokens_count_where_they_come_not_where_their_request_was_scheduled() -> None:
    before = request(9.0, [9.99, 10.0, 10.01])
    after = request(19.0, [19.98, 19.99, 20.0])
    assert flow(before, after).output_tok_s == pytest.approx(4 / 10)


def test_failed_and_unfinished_tokens_are_output_but_not_goodput() -> None:
    failed = request(11.0, [11.1, 11.2], outcome="failed")
    running = request(12.0, [12.1, 12.2, 12.3], outcome="running")
    kept = request(13.0, [13.1, 13.12])
    seen = flow(failed, running, kept)
    assert seen.output_tok_s == pytest.approx(0.7)
    assert seen.goodput_tok_s == pytest.approx(0.2)


def test_goodput_takes_requests_from_before_the_window_and_no_tokens_from_after_it() -> None:
    before = steady(9.5, 0.4, 0.02, n=11)  # 9.90 to 10.10
    slow = steady(12.0, 0.1, 0.2, n=5)
    late = steady(19.8, 0.1, 0.02, n=11)  # 19.90 to 20.10
    assert flow(before, slow, late).goodput_tok_s == pytest.approx((6 + 5) / 10, abs=0.11)
    assert flow(before, slow, late).output_tok_s == pytest.approx((6 + 5 + 5) / 10, abs=0.11)


def test_tokens_of_an_event_are_counted_where_known() -> None:
    trace = request(9.0, [9.9, 10.5, 11.0], tokens=12)
    trace.event_tokens = [1, 5, 6]
    assert flow(trace).output_tok_s == pytest.approx(1.1)


def test_a_total_without_counts_an_event_is_spread_over_the_events() -> None:
    assert flow(request(9.0, [9.9, 10.5, 11.0], tokens=12)).output_tok_s == pytest.approx(0.8)


def test_a_running_request_is_taken_for_as_many_tokens_an_event_as_the_finished_ones() -> None:
    finished = request(1.0, [2.0, 3.0], tokens=8)
    running = request(11.0, [11.1, 11.2], outcome="running")
    assert flow(finished, running).output_tok_s == pytest.approx(0.8)


def test_a_prompt_counts_where_its_first_token_comes_by_the_servers_count() -> None:
    inside, before, later = request(9.0, [10.0, 10.1]), request(9.0, [9.9, 10.1]), request(19, [21])
    inside.n_prompt = 113
    assert flow(inside, before, later).input_tok_s == pytest.approx(11.3)


def test_requests_are_in_flight_from_send_to_end_or_to_now() -> None:
    ended = request(5.0, [15.0])
    running = request(18.0, [18.5], outcome="running")
    unsent = request(12.0, outcome="running")
    unsent.t_send_s = None
    past = request(1.0, [2.0])
    seen = flow(ended, running, unsent, past, now_s=19.0)
    assert seen.mean_concurrency == pytest.approx((5 + 0.999) / 10)


def test_gaps_between_token_events() -> None:
    assert gaps_ms([request(0, [1.0, 1.03, 1.05])]) == (
        [pytest.approx(20), pytest.approx(30)],
        True,
    )


def test_a_chunk_of_two_tokens_makes_two_gaps_of_half_its_length() -> None:
    trace = request(0, [1.0, 1.04], tokens=3)
    trace.event_tokens = [1, 2]
    assert gaps_ms([trace]) == ([pytest.approx(20), pytest.approx(20)], True)


def test_gaps_are_called_inter_chunk_where_a_chunk_may_hold_several_tokens() -> None:
    assert gaps_ms([request(0, [1.0, 1.1]), request(0, [1.0, 1.04], tokens=3)])[1] is False


def test_evenly_spaced_sends_do_not_vary() -> None:
    assert gap_cv([3.0, 1.0, 2.0, 4.0]) == pytest.approx(0)


def test_gap_variation_is_the_standard_deviation_over_the_mean() -> None:
    assert gap_cv([0.0, 1.0, 4.0]) == pytest.approx(math.sqrt(2) / 2)


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 2.0], [1.0, 1.0, 1.0]])
def test_gap_variation_needs_two_gaps_that_are_not_nothing(times: list[float]) -> None:
    assert gap_cv(times) is None


def test_dispersion_is_the_variance_of_counts_over_their_mean() -> None:
    """Ten bins of a second: 4, 6, 4, 6, … events; the sample variance is 10/9, the mean 5."""
    times = [second + i / 10 for second in range(10) for i in range(4 + 2 * (second % 2))]
    assert dispersion(times, 0.0, 10.0) == pytest.approx(10 / 9 / 5)
    assert dispersion([*times, 10.0, -1.0], 0.0, 10.0) == pytest.approx(10 / 9 / 5)


def test_a_clock_has_no_dispersion_bursts_have_much_and_poisson_has_one() -> None:
    clock = [i / 10 + 0.05 for i in range(3000)]
    assert dispersion(clock, 0.0, 300.0) == pytest.approx(0)
    bursts = [10.0 * (i // 100) for i in range(3000)]
    assert dispersion(bursts, 0.0, 300.0) == pytest.approx(90, rel=0.05)
    workload = Workload("w", Fixed(1), Fixed(1))
    drawn = [poisson_schedule(workload, 40, 60, seed).arrival_s for seed in range(40)]
    found = [dispersion(times, 0.0, 60.0) or 0 for times in drawn]
    assert sum(found) / 40 == pytest.approx(1, abs=3 * math.sqrt(2 / 299 / 40))


def test_too_few_events_have_no_dispersion() -> None:
    assert dispersion([i / 10 for i in range(49)], 0.0, 5.0) is None
    assert dispersion([], 0.0, 5.0) is None
