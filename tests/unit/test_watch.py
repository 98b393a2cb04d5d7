"""What a window is watched for while it plays."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.traces import request, steady
from tokenwatt_site.documents.spec import Spec, SpecSweep
from tokenwatt_site.errors import ServerError
from tokenwatt_site.method.probe import Cut
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import Window
from tokenwatt_site.watch import Watch

SPEC = Spec.model_validate(
    {
        "name": "x",
        "engine": {"endpoint": "http://127.0.0.1:1/v1"},
        "model": {"name": "m"},
        "measurement": {"request_timeout_s": 60},
    }
)
WINDOW = Window(0, "search", 10.0, 2.0, 12.0, 2.0)


def watch(
    told: list[dict[str, Any]] | None = None,
    *,
    exact: bool = False,
    window: Window = WINDOW,
    cut: Cut | None = None,
) -> Watch:
    shown = [] if told is None else told
    return Watch(SPEC, window, shown.append, [], exact_prompts=exact, ignore_eos=True, cut=cut)


def cohort(open_ones: int) -> list[RequestTrace]:
    """Return 200 requests of the window, the last of which still run with a token just now."""
    running = [
        request(11.9, [12.0, 12.04], outcome="running", tokens=2, asked=10_000)
        for _ in range(open_ones)
    ]
    return [steady(2 + i / 20) for i in range(200 - open_ones)] + running


def test_a_window_does_not_end_before_its_last_request_has_left() -> None:
    """A client that was held up at the end of a window still has to send what was due in it."""
    traces = cohort(0)
    looks = [(traces[:199], 12.05), (traces[:199], 71.9), (traces, 71.95), (traces[:199], 72.0)]
    for sent, now_s in looks:
        look = Watch(
            SPEC, WINDOW, lambda _: None, [], exact_prompts=False, ignore_eos=True, due=200
        )
        assert look(sent, now_s) is (now_s > 71.9)


@pytest.mark.parametrize(
    "now_s,open_ones,ends",
    [
        (11.9, 0, False),  # the window isn't over
        (12.05, 0, True),
        (12.05, 2, False),  # 1 % without a verdict is too many
        (12.05, 1, False),  # nor is one, so soon
        (22.0, 1, True),  # 0.5 % may stay open after ten seconds
        (22.0, 2, False),
        (72.0, 2, True),  # nobody waits for longer than a request may take
    ],
)
def test_a_window_ends_with_its_verdicts(now_s: float, open_ones: int, *, ends: bool) -> None:
    assert watch()(cohort(open_ones), now_s) is ends


def test_an_adaptive_search_waits_for_every_verdict() -> None:
    spec = SPEC.model_copy(update={"sweep": SpecSweep(strategy="adaptive")})
    watching = Watch(spec, WINDOW, [].append, [], exact_prompts=False, ignore_eos=True)
    assert watching(cohort(1), 22.0) is False
    assert watching(cohort(1), 72.0) is True


@pytest.mark.parametrize(
    "now_s,open_ones,ends",
    [(12.05, 0, True), (12.05, 1, False), (16.9, 40, False), (17.0, 40, True)],
)
def test_a_short_tail_is_waited_for_and_no_longer(
    now_s: float, open_ones: int, *, ends: bool
) -> None:
    assert watch(window=replace(WINDOW, tail_s=5.0))(cohort(open_ones), now_s) is ends


def test_a_window_is_given_up_when_its_cut_says_so() -> None:
    long = replace(WINDOW, w1_s=62.0)
    late = [steady(2 + i / 20, ttft_s=3.0) for i in range(200)]
    watching = watch(window=long, cut=Cut(over=30))
    assert watching(late[:20], 11.9) is False
    assert watching(late[:30], 12.0) is False  # ten seconds of the window: not more than 30 misses
    assert watching(late, 21.9) is False  # nobody asks before the next ten seconds are over
    assert not watching.aborted
    assert watching(late, 22.0) is True
    assert watching.aborted


def test_a_window_that_has_run_is_not_given_up_any_more() -> None:
    watching = watch(cut=Cut(over=0))
    assert watching([steady(2 + i / 20, ttft_s=3.0) for i in range(200)], 30.0) is True
    assert not watching.aborted


def test_what_is_certain_to_miss_is_not_waited_for() -> None:
    traces = cohort(0)[:198] + [request(11.9, outcome="running") for _ in range(2)]
    watching = watch()
    assert watching(traces, 12.05) is False
    assert watching(traces, 11.9 + 2.001) is True  # TTFT limit is 2 s


def prompts(counted: int, n: int = 20) -> list[RequestTrace]:
    traces = [steady(2 + i / 20) for i in range(n)]
    for trace in traces:
        trace.n_prompt = counted
    return traces


def test_prompts_that_arrive_whole_are_fine() -> None:
    assert watch(exact=True)(prompts(101), 5.0) is False


def test_prompts_of_another_length_stop_the_run() -> None:
    with pytest.raises(ServerError, match="counts 2040 prompt tokens where 2000 were sent"):
        watch(exact=True)(prompts(102), 5.0)


def test_few_answers_say_nothing_yet() -> None:
    assert watch(exact=True)(prompts(500, n=19), 5.0) is False


@pytest.mark.parametrize("counted, told", [(100, 0), (95, 0), (94, 1), (500, 1)])
def test_text_prompts_of_another_length_are_told_once(counted: int, told: int) -> None:
    shown: list[dict[str, Any]] = []
    look = watch(shown, exact=False)
    assert look(prompts(counted), 5.0) is False
    assert look(prompts(counted), 6.0) is False
    notes = [each["text"] for each in shown if each["event"] == "note"]
    assert notes == told * [f"the server counts {20 * counted} tokens in texts made for 2000"]


def test_a_tick_shows_where_the_window_stands() -> None:
    told: list[dict[str, Any]] = []
    watching = watch(told)
    watching(cohort(3), 11.0)
    watching(cohort(3), 11.1)  # too soon to show again
    assert [event["event"] for event in told] == ["tick"]
    assert told[0]["in_flight"] == 3
    assert told[0]["left_s"] == pytest.approx(1.0)
    assert told[0]["ttft_p99_ms"] == pytest.approx(200)
    assert told[0]["watts"] is None


def test_a_tick_leaves_the_stationary_start_out_of_its_percentiles() -> None:
    told: list[dict[str, Any]] = []
    injected = steady(0.0, ttft_s=9.0)
    injected.injected = True
    watch(told)([injected, *cohort(3)], 11.0)
    assert told[0]["ttft_p99_ms"] == pytest.approx(200)


def test_a_look_at_a_long_window_touches_only_what_is_new() -> None:
    """Each look holds up the loop that stamps the tokens: it must not grow with the window."""
    watching = watch()
    traces = [steady(2 + i / 1000) for i in range(20_000)]
    watching(traces, 11.0)
    looked_at = _Counting(traces)
    watching(looked_at, 11.6)
    assert looked_at.touched < 1_000


class _Counting(list[RequestTrace]):
    """A list that counts the requests taken out of it."""

    touched = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.touched += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.touched += len(self)
        return super().__iter__()
