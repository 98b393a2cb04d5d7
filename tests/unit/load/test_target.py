import datetime as dt
import json
from typing import Any

import pytest

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.target import Target

URL = "http://127.0.0.1:8000/v1"


def spec(**engine: Any) -> Spec:
    return Spec.model_validate(
        {"name": "s", "engine": {"endpoint": URL, **engine}, "model": {"name": "m"}}
    )


def body(target: Target, prompt: Any = "hi") -> dict[str, Any]:
    read: dict[str, Any] = json.loads(target.body(prompt, 16))
    return read


def test_the_body_of_completions() -> None:
    target = Target.of(spec(), URL, ServerFacts("m", ids_ok=True))
    assert body(target, [5, 6]) == {
        "model": "m",
        "prompt": [5, 6],
        "max_tokens": 16,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }


def test_the_body_of_chat() -> None:
    target = Target.of(spec(api="chat", ignore_eos=False), URL, ServerFacts("m"))
    assert target.text_prompts
    assert body(target)["messages"] == [{"role": "user", "content": "hi"}]
    assert "ignore_eos" not in body(target)


def test_the_authorities_of_the_spec_are_the_targets() -> None:
    assert Target.of(spec(ca_file="ca.pem"), URL, ServerFacts("m")).ca_file == "ca.pem"
    assert Target.of(spec(), URL, ServerFacts("m")).ca_file is None


def test_usage_is_not_asked_for_where_the_server_refuses_it() -> None:
    target = Target.of(spec(), URL, ServerFacts("m", usage_ok=False))
    assert "stream_options" not in body(target)


def test_ignore_eos_is_left_out_where_the_server_does_not_take_it() -> None:
    target = Target.of(spec(), URL, ServerFacts("m", ignore_eos_ok=False))
    assert "ignore_eos" not in body(target)
    assert not target.asked.ignore_eos


def test_ignore_eos_is_sent_where_the_servers_counts_do_not_tell() -> None:
    target = Target.of(spec(), URL, ServerFacts("m", lengths_ok=False))
    assert body(target)["ignore_eos"] is True
    assert not target.asked.ignore_eos


def test_extra_body_is_merged_last() -> None:
    target = Target.of(
        spec(extra_body={"temperature": 1, "ignore_eos": None}), URL, ServerFacts("m")
    )
    assert body(target)["temperature"] == 1
    assert body(target)["ignore_eos"] is None


@pytest.mark.parametrize(
    "name",
    [
        *("model", "stream", "stream_options", "prompt", "messages", "input"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    ],
)
def test_extra_body_replaces_nothing_that_the_measurement_sets(name: str) -> None:
    with pytest.raises(UsageError, match=f"extra_body can't replace '{name}'"):
        Target.of(spec(extra_body={name: 1}), URL, ServerFacts("m"))


@pytest.mark.parametrize(
    "value", [dt.date(2026, 1, 1), {"at": [dt.date(2026, 1, 1)]}, float("inf"), b"x", "\ud800"]
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=r"engine\.extra_body") as refused:
        Target.of(
            spec().model_copy(
                update={"engine": spec().engine.model_copy(update={"extra_body": {"when": value}})}
            ),
            URL,
            ServerFacts("m"),
        )
    assert refused.value.hint


def test_several_answers_a_request_are_refused() -> None:
    for n in (2, 0, "1", None):
        with pytest.raises(UsageError, match=r"n = .* answers a request"):
            Target.of(spec(extra_body={"n": n}), URL, ServerFacts("m"))
    Target.of(spec(extra_body={"n": 1}), URL, ServerFacts("m"))


def test_tools_are_asked_where_extra_body_offers_some() -> None:
    assert Target.of(spec(extra_body={"tools": [{}]}), URL, ServerFacts("m")).asked.tools
    assert not Target.of(spec(), URL, ServerFacts("m")).asked.tools


def test_the_body_of_responses_asks_for_no_usage() -> None:
    target = Target.of(spec(api="responses"), URL, ServerFacts("m"))
    assert body(target) == {
        "model": "m",
        "input": "hi",
        "max_output_tokens": 16,
        "stream": True,
        "ignore_eos": True,
    }
    assert target.head().startswith(b"POST /v1/responses HTTP/1.1\r\n")


def test_responses_takes_no_token_ids() -> None:
    target = Target.of(spec(api="responses"), URL, ServerFacts("m", ids_ok=False))
    assert target.text_prompts
    with pytest.raises(RefusedError, match="responses takes text"):
        target.body([5, 6], 16)


def test_the_head_has_the_key_and_ends_at_the_length() -> None:
    target = Target.of(spec(api_key_env="K"), URL, ServerFacts("m"), {"K": " k-1\n"})
    assert target.head().split(b"\r\n") == [
        b"POST /v1/completions HTTP/1.1",
        b"Host: 127.0.0.1:8000",
        b"Accept: text/event-stream",
        b"Content-Type: application/json",
        b"Authorization: Bearer k-1",
        b"Content-Length: ",
    ]


def test_the_key_is_in_no_text() -> None:
    target = Target.of(spec(api_key_env="K"), URL, ServerFacts("m"), {"K": "sesame"})
    assert "sesame" not in repr(target)
    assert target.without_key("bad key sesame!") == "bad key …!"
    assert target.without_key("cut within sesam") == "cut within …"


@pytest.mark.parametrize(
    "value, fault", [("", "not set"), ("a\r\nb", "no HTTP header"), ("sésame", "no HTTP header")]
)
def test_a_key_that_no_header_can_carry_is_refused_unseen(value: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault) as refused:
        Target.of(spec(api_key_env="MY_KEY"), URL, ServerFacts("m"), {"MY_KEY": value})
    assert "engine.api_key_env" in str(refused.value)
    assert "MY_KEY" not in str(refused.value)  # it may be a key that was taken for a name
    assert not value or value not in str(refused.value)
