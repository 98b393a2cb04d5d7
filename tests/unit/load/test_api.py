import json
from typing import Any

import pytest

from tokenwatt_site.errors import RefusedError
from tokenwatt_site.load.api import DIALECTS, dialect
from tokenwatt_site.load.api.chunk import error_message
from tokenwatt_site.method.outcome import StreamFacts, count_tokens

UNKNOWN = -1


def text(value: str | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": value, "finish_reason": finish}], **more}


def delta(fields: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}], **more}


def usage(tokens: int, prompt: int = 5, **more: Any) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": tokens, **more}}


def read(
    api: str, *chunks: dict[str, Any] | list[Any] | str, name: bytes = b""
) -> tuple[list[int | None], StreamFacts]:
    """Return what each event tells of its tokens, and the facts of them all."""
    facts = StreamFacts()
    payloads = [c if isinstance(c, str) else json.dumps(c) for c in chunks]
    return [dialect(api).read(name, p.encode(), facts) for p in payloads], facts


def test_each_dialect_has_a_path_and_puts_the_prompt_in_its_place() -> None:
    assert {name: dialect(name).PATH for name in DIALECTS} == {
        "completions": "/completions",
        "chat": "/chat/completions",
        "responses": "/responses",
    }
    assert dialect("completions").prompt_fields([7, 8]) == {"prompt": [7, 8]}
    assert dialect("completions").prompt_fields("hi") == {"prompt": "hi"}
    assert dialect("chat").prompt_fields("hi") == {"messages": [{"role": "user", "content": "hi"}]}
    assert dialect("responses").prompt_fields("hi") == {"input": "hi"}


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_token_ids_are_refused_where_they_have_no_place(api: str) -> None:
    with pytest.raises(RefusedError, match=f"{api} takes text"):
        dialect(api).prompt_fields([7])


def test_a_dialect_that_is_not_spoken_is_refused_by_name() -> None:
    with pytest.raises(RefusedError) as unknown:
        dialect("grpc")
    assert (unknown.value.what, unknown.value.hint) == (
        "engine.api 'grpc'",
        "use one of: chat, completions, responses",
    )


@pytest.mark.parametrize(
    "chunk, tokens",
    [
        (text("a"), UNKNOWN),
        (text("a", "length"), UNKNOWN),
        (text(""), UNKNOWN),  # a token that decodes to nothing
        (text("", ""), UNKNOWN),  # an empty finish_reason is none
        (text("", "length"), None),
        (text(None), None),
        ({"choices": [], **usage(8)}, None),
        (text("", "length", **usage(8)), None),
        ({"choices": None}, None),
        ({}, None),
    ],
)
def test_completions_token_events(chunk: dict[str, Any], tokens: int | None) -> None:
    """After a first token, so that a usage in the chunk is not the running count of a stream."""
    told, _ = read("completions", text("first"), chunk)
    assert told[1] == tokens


@pytest.mark.parametrize(
    "chunk, tokens",
    [
        (delta({"role": "assistant", "content": ""}), None),
        (delta({"role": "assistant", "content": None}), None),
        (delta({"role": "assistant"}), None),
        (delta({"role": "assistant", "content": "a"}), UNKNOWN),
        (delta({"content": "a"}), UNKNOWN),
        (delta({"content": ""}), UNKNOWN),
        (delta({"content": ""}, "stop"), None),
        (delta({}), None),
        (delta({}, "stop"), None),
        (delta({"reasoning_content": "a", "content": None}), UNKNOWN),
        (delta({"reasoning": "a", "content": "", "role": "assistant"}), UNKNOWN),
        (delta({"tool_calls": [{"index": 0}]}), UNKNOWN),
        (delta({"tool_calls": None, "content": None}), None),
        ({"choices": [{"index": 0, "delta": None}]}, None),
    ],
)
def test_chat_token_events(chunk: dict[str, Any], tokens: int | None) -> None:
    told, _ = read("chat", chunk)
    assert told == [tokens]


def test_the_answer_is_told_apart_from_reasoning() -> None:
    _, facts = read("chat", delta({"reasoning_content": "hm"}))
    assert not facts.answered
    _, facts = read("chat", delta({"reasoning_content": "hm"}), delta({"content": "a"}))
    assert facts.answered


def test_usage_is_read_wherever_it_comes() -> None:
    for chunks in (
        [text("a"), text("b", "stop"), {"choices": [], **usage(2)}],
        [text("a"), text("b", "stop", **usage(2))],
        [text("a"), text("b"), text("", "stop", **usage(2))],
        [text("a", **usage(1)), text("b", "stop", **usage(2))],
        [text("a", **usage(1)), text("b", "stop", **usage(2)), {"choices": [], **usage(2)}],
    ):
        _, facts = read("completions", *chunks)
        assert count_tokens(facts) == (2, "usage")
        assert facts.prompt_tokens == 5


def test_a_continuous_usage_tells_the_tokens_of_each_event() -> None:
    told, _ = read(
        "completions", text("ab", **usage(2)), text("c", **usage(3)), text("", "stop", **usage(3))
    )
    assert told == [2, 1, None]


def test_a_rise_of_a_continuous_usage_is_a_token_even_without_text() -> None:
    told, facts = read(
        "chat",
        delta({"role": "assistant", "content": ""}, **usage(0)),
        delta({}, **usage(1)),
        delta({}, **usage(1)),
        delta({}, "stop", **usage(2)),
    )
    assert told == [None, 1, None, 1]
    assert facts.events == 2


def test_a_usage_that_comes_once_is_no_rise() -> None:
    told, _ = read("completions", text("a"), text("b", "stop", **usage(8)))
    assert told == [UNKNOWN, UNKNOWN]


def test_usage_of_several_choices_is_summed_unless_it_counts_them_all() -> None:
    def one(index: int, **more: Any) -> dict[str, Any]:
        return {"choices": [{"index": index, "text": "", "finish_reason": "length"}], **more}

    _, facts = read("completions", one(0, **usage(4)), one(1, **usage(3)))
    assert (count_tokens(facts), facts.choices) == ((7, "usage"), 2)
    _, facts = read("completions", one(0, **usage(4)), one(1, **usage(3)), usage(7))
    assert count_tokens(facts) == (7, "usage")


def test_ids_and_logprobs_count_where_there_is_no_usage() -> None:
    def ids(value: Any, key: str = "token_ids") -> dict[str, Any]:
        return {"choices": [{"index": 0, "text": "ab", key: value}]}

    told, facts = read("completions", ids([1, 2]), ids([3]))
    assert (told, count_tokens(facts)) == ([2, 1], (3, "ids"))
    _, facts = read("completions", ids({"tokens": ["a", "b"]}, "logprobs"))
    assert count_tokens(facts) == (2, "ids")
    _, facts = read("completions", ids({"content": [{"token": "a"}]}, "logprobs"))
    assert count_tokens(facts) == (1, "ids")
    _, facts = read("completions", ids([1, 2]), ids(None))
    assert count_tokens(facts) == (2, "chunks")


def test_cached_tokens_are_read_from_both_shapes() -> None:
    _, facts = read("chat", usage(1, prompt_tokens_details={"cached_tokens": 3}))
    assert facts.cached_tokens == 3
    _, facts = read("chat", usage(1, prompt_tokens_details=None, prompt_cache_hit_tokens=4))
    assert facts.cached_tokens == 4
    _, facts = read("chat", usage(1))
    assert facts.cached_tokens is None


def test_done_and_finish_are_noted() -> None:
    _, facts = read("completions", text("a"), text("", "stop"), "[DONE]")
    assert (facts.finish, facts.done, facts.malformed) == ("stop", True, False)
    assert read("completions", " [DONE] ")[1].done


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": {"message": "out of memory", "code": 500}},
        {"error": "out of memory"},
        {"object": "error", "message": "out of memory"},
        delta({"content": ""}, error={"message": "out of memory"}),
        delta({"content": "a"}, error={"message": "out of memory"}),
    ],
)
def test_an_error_object_is_an_error_and_no_token(chunk: dict[str, Any]) -> None:
    told, facts = read("chat", chunk)
    assert (facts.error, facts.message) == (True, "out of memory")
    assert (told, facts.events) == ([None], 0)


def test_the_usage_of_an_error_counts() -> None:
    words = {"message": "out of memory"}
    _, facts = read("chat", delta({"content": "a"}), delta({}, error=words, **usage(3)))
    assert count_tokens(facts) == (3, "usage")
    _, facts = read("chat", delta({"content": "a"}), {"error": words, **usage(3)})
    assert count_tokens(facts) == (3, "usage")


def test_an_event_named_error_is_one_whatever_it_holds() -> None:
    _, facts = read("chat", {"message": "gone"}, name=b"error")
    assert (facts.error, facts.message) == (True, "gone")
    assert read("chat", "", name=b"error")[1].error


def test_a_null_error_is_none() -> None:
    assert not read("chat", {"error": None, "choices": []})[1].error


def test_a_list_of_chunks_in_one_event_is_read_chunk_by_chunk() -> None:
    told, facts = read("completions", [text("a"), text("b")])
    assert (told, facts.events) == ([UNKNOWN], 2)


@pytest.mark.parametrize("data", ["{", "nothing", '{"a": 1}}', "[" * 100_000])
def test_what_is_no_json_is_malformed(data: str) -> None:
    told, facts = read("chat", data)
    assert (told, facts.malformed) == ([None], True)


def test_bytes_that_are_no_utf8_are_malformed() -> None:
    facts = StreamFacts()
    assert dialect("chat").read(b"", b'{"a": "\xff"}', facts) is None
    assert facts.malformed


@pytest.mark.parametrize("data", ["", " ", "1", '"x"', "null", "[]", "[1]", "{}"])
def test_what_says_nothing_is_skipped(data: str) -> None:
    told, facts = read("chat", data)
    assert (told, facts) == ([None], StreamFacts())


def test_hostile_counts_are_ignored() -> None:
    for bad in (-1, 1.5, True, "8", None, 2**60, [], {}):
        _, facts = read("chat", {"usage": {"completion_tokens": bad, "prompt_tokens": bad}})
        assert (facts.usage, facts.prompt_tokens) == ({}, None)
    told, _ = read("chat", {"choices": [{"index": "0", "delta": {"content": "a"}}]})
    assert told == [UNKNOWN]


@pytest.mark.parametrize(
    "body, words",
    [
        ({"detail": [{"loc": ["body"], "msg": "wrong"}]}, "wrong"),
        ({"detail": ["wrong", "more"]}, "wrong"),
        ({"detail": {}, "other": "x"}, ""),
        ({"message": "a\nb\x1b[31m"}, "a b [31m"),
        ({"error": {"message": "x" * 999}}, "x" * 300),
        ("plain", "plain"),
        (None, ""),
        ({"error": True}, "True"),
    ],
)
def test_error_messages_of_all_shapes(body: Any, words: str) -> None:
    assert error_message(body) == words


@pytest.mark.parametrize("finish", ["\ud800", "stop\x1b[31m", "s" * 33])
def test_a_finish_that_could_not_be_stored_is_unknown(finish: str) -> None:
    _, facts = read("completions", text("a", finish))
    assert facts.finish == "unknown"
