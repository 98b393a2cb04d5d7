"""What a spec must not hold, since it is published with the run."""

from typing import Any

import pytest

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.secrecy import refuse_secrets

KEY = "sk-" + "a1" * 12


def spec(endpoint: str = "http://127.0.0.1:1/v1", **changes: Any) -> Spec:
    base: dict[str, Any] = {"name": "s", "model": {"name": "m"}}
    engine = {"endpoint": endpoint} | changes.pop("engine", {})
    return Spec.model_validate(base | {"engine": engine} | changes)


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "API-Key", "apiKey", "x-api-key", "token", "Token", "access_token",
        "Authorization", "password", "db_passwd", "client_secret", "credentials",
    ],
)  # fmt: skip
def test_a_key_named_like_a_secret_is_refused_at_any_depth(name: str) -> None:
    for body, place in (
        ({name: "hidden"}, f"engine.extra_body.{name}"),
        ({"a": [{"b": {name: "hidden"}}]}, f"engine.extra_body.a[0].b.{name}"),
    ):
        with pytest.raises(UsageError) as refused:
            refuse_secrets(spec(engine={"extra_body": body}))
        assert f"{place} " in refused.value.what
        assert refused.value.hint
        assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "changes, place",
    [
        ({"engine": {"extra_body": {"a": ["x", f"Bearer {KEY}"]}}}, "engine.extra_body.a[1]"),
        ({"engine": {"extra_body": {"a": {KEY: 1}}}}, "engine.extra_body.a"),
        ({"engine": {"kernels": f"serve --api-key {KEY}"}}, "engine.kernels"),
        ({"engine": {"api_key_env": "hf_" + "b2" * 12}}, "engine.api_key_env"),
        ({"endpoint": "http://me:hunter2@llm/v1"}, "engine.endpoint"),
        ({"power": {"source": "redfish", "url": "https://me:hun/ter2@bmc"}}, "power.url"),
        ({"power": [{"source": "board"}, {"url": "https://hunter2@bmc/"}]}, "power[1].url"),
        ({"text": {"reproduce": f"export K={KEY}"}}, "text.reproduce"),
    ],
)
def test_a_value_that_looks_like_a_secret_is_refused_unseen(
    changes: dict[str, Any], place: str
) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_secrets(spec(**changes))
    assert f"spec field {place} " in refused.value.what
    for hidden in (KEY, "hunter2", "ter2", "b2b2"):
        assert hidden not in str(refused.value)


def test_what_servers_are_really_asked_for_passes() -> None:
    body = {
        "temperature": 0.7,
        "stop_token_ids": [1],
        "min_tokens": 3,
        "eos_token": "</s>",
        "stop": ["\n\nQuestion:", "a@b"],
        "chat_template_kwargs": {"enable_thinking": False, "thinking_token_budget": 3},
        "return_tokens_as_token_ids": True,
        "prompt_cache_key": "p",
    }
    refuse_secrets(spec(engine={"extra_body": body, "api_key_env": "MY_API_TOKEN"}))
    refuse_secrets(spec(power={"source": "redfish", "url": "https://bmc/redfish/v1?a=b@c"}))
