from dataclasses import replace

from tests.support.traces import request, steady
from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.probe import Record
from tokenwatt_site.method.records import Misses, records_of
from tokenwatt_site.method.window import Window

SLO = SpecSlo(ttft_p99_ms=1000, tpot_p99_ms=50)
WINDOW = Window(index=0, phase="search", rate_rps=10.0, w0_s=10.0, w1_s=40.0, warmup_s=10.0)


def misses() -> Misses:
    return Misses(WINDOW, SLO, ignore_eos=True)


def test_a_record_says_what_a_model_of_the_server_may_know() -> None:
    traces = [
        replace(request(0.0, [0.5, 0.6, 0.7]), injected=True),
        request(1.0, [1.5, 1.6], outcome="running", asked=9),
        request(2.0, outcome="running", asked=9),
        request(3.0, [3.5], outcome="failed", asked=9),
    ]
    assert records_of(traces) == (
        Record(0.0, 0.5, 0.7, 100, 3, 3, finished=True, failed=False, injected=True),
        Record(1.0, 1.5, 1.6, 100, 9, 2, finished=False, failed=False, injected=False),
        Record(2.0, None, None, 100, 9, 0, finished=False, failed=False, injected=False),
        Record(3.0, 3.5, 3.5, 100, 9, 1, finished=False, failed=True, injected=False),
    )


def test_tokens_of_a_running_request_are_guessed_from_the_finished_ones() -> None:
    """A server that sends two tokens an event does so for all."""
    finished = request(0.0, [0.5, 0.6, 0.7], tokens=6)
    running = request(1.0, [1.5, 1.6], outcome="running", asked=9)
    assert [record.tokens for record in records_of([finished, running])] == [6, 4]


def test_misses_are_counted_of_what_has_a_verdict() -> None:
    counting = misses()
    traces = [steady(5.0, ttft_s=2.0), steady(11.0), request(12.0, outcome="running", asked=9)]
    assert counting.look(traces, 12.5) == (0, 1)
    traces += [steady(12.6, ttft_s=2.0), steady(12.7, ttft_s=2.0), steady(12.8, tpot_s=0.06)]
    assert counting.look(traces, 20.0) == (3, 5)  # the one that waited is over the limit by now
    traces[2].outcome = "ok"
    assert counting.look(traces, 21.0) == (3, 5)


def test_a_stalled_answer_is_a_miss_as_soon_as_it_is_lost() -> None:
    stalled = request(11.0, [11.1, 11.12], outcome="running", asked=11)
    counting = misses()
    assert counting.look([stalled], 11.5) == (0, 0)
    assert counting.look([stalled], 11.7) == (1, 1)


def test_a_failed_request_is_one_miss() -> None:
    assert misses().look([request(11.0, outcome="failed")] * 3, 12.0) == (3, 3)


def test_a_look_touches_only_what_is_undecided() -> None:
    counting = misses()
    traces = [steady(11.0 + i / 100) for i in range(1000)]
    assert counting.look(traces, 25.0) == (0, 1000)
    for trace in traces:
        trace.outcome = "failed"  # nobody asks any more
    assert counting.look(traces, 26.0) == (0, 1000)
