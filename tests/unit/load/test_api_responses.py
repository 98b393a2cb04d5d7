"""The Responses API: what its events are, and how an answer ends."""

import json
from typing import Any

import pytest

from tokenwatt_site.load.api import dialect
from tokenwatt_site.method.outcome import StreamFacts, count_tokens

UNKNOWN = -1


def kind(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{name}", **fields}


def end(name: str, **response: Any) -> dict[str, Any]:
    return kind(name, response={"object": "response", "error": None, **response})


def usage(tokens: int, prompt: int = 5, **more: Any) -> dict[str, Any]:
    return {"usage": {"input_tokens": prompt, "output_tokens": tokens, **more}}


def read(*events: dict[str, Any] | str) -> tuple[list[int | None], StreamFacts]:
    facts = StreamFacts()
    told: list[int | None] = []
    for each in events:
        name = b"" if isinstance(each, str) else str(each.get("type", "")).encode()
        data = each if isinstance(each, str) else json.dumps(each)
        told.append(dialect("responses").read(name, data.encode(), facts))
    return told, facts


@pytest.mark.parametrize(
    "event, tokens",
    [
        (kind("output_text.delta", delta="a"), UNKNOWN),
        (kind("output_text.delta", delta="", logprobs=[]), UNKNOWN),  # decodes to nothing
        (kind("output_text.delta", delta="ab", logprobs=[{"token": "a"}, {"token": "b"}]), 2),
        (kind("reasoning_text.delta", delta="hm"), UNKNOWN),
        (kind("reasoning_summary_text.delta", delta="hm"), UNKNOWN),
        (kind("function_call_arguments.delta", delta="{}"), UNKNOWN),
        (kind("refusal.delta", delta="no"), UNKNOWN),
        (kind("output_item.added", item={"type": "function_call", "name": "f"}), UNKNOWN),
        (kind("output_item.added", item={"type": "function_call", "name": ""}), None),
        (kind("output_item.added", item={"type": "message", "content": []}), None),
        (kind("output_item.added", item=None), None),
        (kind("output_text.delta", delta=None), None),
        (kind("output_text.delta"), None),
        (kind("output_text.done", text="ab"), None),
        (kind("content_part.added", part={"type": "output_text", "text": ""}), None),
        (kind("created", response={"usage": None}), None),
        (kind("in_progress"), None),
        (end("completed", **usage(8)), None),
        ({"type": 7}, None),
        ({}, None),
    ],
)
def test_token_events(event: dict[str, Any], tokens: int | None) -> None:
    told, facts = read(event)
    assert (told, facts.events) == ([tokens], 0 if tokens is None else 1)
    assert not facts.error


def test_reasoning_is_told_apart_from_the_answer() -> None:
    hidden = kind("reasoning_text.delta", delta="hm")
    assert not read(hidden)[1].answered
    assert read(hidden, kind("output_text.delta", delta="a"))[1].answered
    assert read(kind("function_call_arguments.delta", delta="{"))[1].answered


def test_usage_comes_with_the_end() -> None:
    details = {"input_tokens_details": {"cached_tokens": 3}}
    _, facts = read(
        kind("output_text.delta", delta="a"), end("completed", **usage(8, 11, **details))
    )
    assert (count_tokens(facts), facts.prompt_tokens, facts.cached_tokens) == ((8, "usage"), 11, 3)
    _, facts = read(kind("output_text.delta", delta="a"), end("completed", usage=None))
    assert (count_tokens(facts), facts.prompt_tokens) == ((1, "chunks"), None)


def test_logprobs_count_where_there_is_no_usage() -> None:
    two = kind("output_text.delta", delta="ab", logprobs=[{}, {}])
    assert count_tokens(read(two, two)[1]) == (4, "ids")
    assert count_tokens(read(two, kind("output_text.delta", delta="c"))[1]) == (2, "chunks")


@pytest.mark.parametrize(
    "event, finish",
    [
        (end("completed", output=[{"type": "message"}]), "stop"),
        (end("completed"), "stop"),
        (end("completed", output=[{"type": "function_call"}]), "tool_calls"),
        (end("completed", output=[{"type": "web_search_call"}, {"type": "message"}]), "stop"),
        (end("incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (end("incomplete", incomplete_details={"reason": "content_filter"}), "content_filter"),
        (end("incomplete", incomplete_details={"reason": ["x"]}), "incomplete"),
        (end("incomplete", incomplete_details=None), "incomplete"),
        (end("cancelled"), "cancelled"),
        (kind("completed", response=None), "stop"),
    ],
)
def test_an_end_has_the_words_of_chat(event: dict[str, Any], finish: str) -> None:
    _, facts = read(event)
    assert (facts.finish, facts.error) == (finish, False)


@pytest.mark.parametrize(
    "event",
    [
        end("failed", error={"code": "server_error", "message": "out of memory"}),
        end("completed", error={"code": "server_error", "message": "out of memory"}),
        {"type": "error", "code": None, "message": "out of memory", "sequence_number": 3},
        {"error": {"message": "out of memory"}},
        {"object": "error", "message": "out of memory"},
    ],
)
def test_an_error_is_one_in_every_shape(event: dict[str, Any]) -> None:
    _, facts = read(event)
    assert (facts.error, facts.message, facts.finish) == (True, "out of memory", None)


def test_hostile_usage_is_ignored() -> None:
    for bad in (-1, 1.5, True, "8", None, 2**60, [], {}):
        _, facts = read(end("completed", **usage(bad, bad)))  # type: ignore[arg-type]
        assert (facts.usage, facts.prompt_tokens) == ({}, None)
    assert read(end("completed", usage=[1]))[1].usage == {}


def test_done_ends_it_too() -> None:
    assert read("[DONE]")[1].done
