from array import array
from typing import Any, get_args

import pytest

from tokenwatt_site.method.outcome import (
    WHOLE,
    Asked,
    Ending,
    StreamFacts,
    classify,
    coalesced,
    count_tokens,
)
from tokenwatt_site.method.trace import RequestTrace

STAMPS = [0.3 + 0.05 * i for i in range(8)]


def trace(status: int | None = 200, asked: int = 8, stamps: list[float] = STAMPS) -> RequestTrace:
    return RequestTrace(0, 0.0, 5, asked, t_send_s=0.0, status=status, events_s=array("d", stamps))


def facts(**changed: Any) -> StreamFacts:
    """A stream of 8 tokens that ends as it should, and changes to it."""
    return StreamFacts(
        **{"events": 8, "usage": {WHOLE: 8}, "choices": 1, "finish": "length", "done": True}
        | changed
    )


def test_a_whole_stream_is_ok() -> None:
    conclusion = classify(trace(), facts(), Asked())
    assert (conclusion.outcome, conclusion.reason) == ("ok", "")
    assert (conclusion.n_output, conclusion.n_source) == (8, "usage")
    assert not conclusion.coalesced


@pytest.mark.parametrize(
    "changed", [{"done": False}, {"finish": None}, {"finish": "stop"}, {"usage": {}}]
)
def test_a_finish_or_done_is_enough(changed: dict[str, Any]) -> None:
    assert classify(trace(), facts(**changed), Asked()).outcome == "ok"


@pytest.mark.parametrize(
    "changed, reason",
    [
        ({"error": True}, "error"),
        ({"malformed": True}, "malformed"),
        ({"finish": None, "done": False}, "truncated"),
        ({"finish": "content_filter"}, "finish_content_filter"),
        ({"finish": "<b>9\n"}, "finish_b"),
        ({"finish": "9"}, "finish"),
        ({"finish": "tool_calls"}, "finish_tool_calls"),
        ({"choices": 2}, "choices"),
        ({"events": 0, "usage": {}}, "empty"),
        ({"events": 0}, "empty"),  # tokens that nobody saw have no latency
        ({"usage": {WHOLE: 0}}, "empty"),
        ({"finish": None, "done": False, "events": 0, "usage": {}}, "empty"),
        ({"usage": {WHOLE: 7}}, "short"),
        ({"usage": {WHOLE: 9}}, "long"),
        ({"usage": {}, "events": 3}, "short"),
    ],
)
def test_everything_else_failed(changed: dict[str, Any], reason: str) -> None:
    conclusion = classify(trace(), facts(**changed), Asked())
    assert (conclusion.outcome, conclusion.reason) == ("failed", reason)


def test_the_length_counts_only_with_ignore_eos() -> None:
    assert classify(trace(), facts(usage={WHOLE: 3}), Asked(ignore_eos=False)).outcome == "ok"


def test_tool_calls_end_an_answer_where_tools_were_offered() -> None:
    assert classify(trace(), facts(finish="tool_calls"), Asked(tools=True)).outcome == "ok"


@pytest.mark.parametrize(
    "status, reason", [(400, "http_400"), (503, "http_503"), (307, "http_307")]
)
def test_a_refusal_is_named_by_its_status(status: int, reason: str) -> None:
    conclusion = classify(trace(status, stamps=[]), StreamFacts(), Asked())
    assert (conclusion.outcome, conclusion.reason) == ("failed", reason)


@pytest.mark.parametrize("ending", get_args(Ending))
def test_no_answer_fails_by_how_it_ended_and_has_no_count(ending: Ending) -> None:
    conclusion = classify(trace(None, stamps=[]), StreamFacts(), Asked(), ending)
    silent = ending in ("complete", "closed")
    assert conclusion.reason == ("no_response" if silent else ending)
    assert (conclusion.n_output, conclusion.n_source) == (None, None)


@pytest.mark.parametrize(
    "ending, reason",
    [
        ("closed", "truncated"),
        ("reset", "reset"),
        ("timeout", "timeout"),
        ("protocol", "protocol"),
        ("malformed", "malformed"),
    ],
)
def test_a_stream_cut_before_its_end_fails(ending: Ending, reason: str) -> None:
    cut = facts(finish=None, done=False, usage={}, events=3)
    conclusion = classify(trace(stamps=STAMPS[:3]), cut, Asked(), ending)
    assert (conclusion.outcome, conclusion.reason) == ("failed", reason)
    assert (conclusion.n_output, conclusion.n_source) == (3, "chunks")


@pytest.mark.parametrize("ending", ["closed", "reset", "timeout"])
def test_what_follows_the_end_is_a_tail(ending: Ending) -> None:
    assert classify(trace(), facts(done=False), Asked(), ending).outcome == "ok"


@pytest.mark.parametrize(
    "known, counted",
    [
        ({"usage": {WHOLE: 9, 0: 4}, "ids": 5, "events": 3}, (9, "usage")),
        ({"usage": {0: 4, 1: 3}, "ids": 5, "events": 3}, (7, "usage")),
        ({"ids": 5, "events": 3}, (5, "ids")),
        ({"ids": 5, "ids_missing": True, "events": 3}, (3, "chunks")),
        ({}, (0, "chunks")),
    ],
)
def test_tokens_are_counted_by_the_best_source(known: dict[str, Any], counted: Any) -> None:
    assert count_tokens(StreamFacts(**known)) == counted


@pytest.mark.parametrize(
    "n, stamps, tokens, lumped",
    [
        (8, STAMPS, None, False),
        (8, [1.0] * 8, None, True),
        (8, [1.0] * 4 + [2.0] * 4, None, False),
        (8, [1.0] * 3 + [2.0] * 5, None, True),
        (3, [1.0, 2.0, 3.0], [1, 1, 9], True),
        (10, [1.0], None, True),  # ten tokens in one event
        (1, [1.0], None, False),
        (0, [], None, False),
        (2, [1.0, 2.0], None, False),
    ],
)
def test_more_than_half_of_the_tokens_in_one_read_is_coalesced(
    n: int, stamps: list[float], tokens: list[int] | None, *, lumped: bool
) -> None:
    assert coalesced(n, stamps, tokens) is lumped
