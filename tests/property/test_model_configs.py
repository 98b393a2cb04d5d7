"""A stranger's config gives a model or an error that says what next, whatever stands in it."""

import json
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.configs import FOLDER
from tests.support.shared import shared_path
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.mbu import Machine, Mbu, Step, mbu
from tokenwatt_site.method.models.model import Served, model

NAMES = (
    *("deepseek-ai--DeepSeek-V3.2", "deepseek-ai--DeepSeek-V4-Flash", "google--gemma-4-26B-A4B"),
    *("MiniMaxAI--MiniMax-M3", "moonshotai--Kimi-K2.5", "nvidia--Nemotron-H-56B-Base-8K"),
    *("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", "openai--gpt-oss-20b"),
    *("nvidia--Llama-3_3-Nemotron-Super-49B-v1", "Qwen--Qwen3.5-35B-A3B"),
    *("meta-llama--Llama-4-Scout-17B-16E-Instruct", "nvidia--Qwen3.6-35B-A3B-NVFP4"),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.integers(0, 70),
    st.floats(),
    st.text(max_size=8),
    st.lists(
        st.one_of(st.integers(0, 3), st.text(max_size=4), st.none(), st.lists(st.none())),
        max_size=4,
    ),
    st.lists(st.lists(st.integers()), min_size=130, max_size=130),
    st.dictionaries(st.text(max_size=4), st.integers(0, 9), max_size=3),
)


@cache
def texts() -> tuple[str, ...]:
    folder = shared_path(FOLDER)
    return tuple((folder / f"{n}_config.json").read_text(encoding="utf-8") for n in NAMES)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return every object within a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [each for one in inner for each in objects(one)]
    return [value, *found] if isinstance(value, dict) and value else found


def outcome(config: dict[str, Any]) -> Mbu | UsageError:
    """Return what a config comes to; any other error is a fault of the reader."""
    try:
        found = model(ModelConfig(config, None, "f" * 64), Served())
        return mbu(found, Step(32, 4000, 40), Machine(4.8, tensor_parallel=8))
    except UsageError as error:
        return error


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_changed_config_is_a_model_or_a_named_fault(data: st.DataObject) -> None:
    config = json.loads(data.draw(st.sampled_from(texts())))
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from(objects(config)))
        part[data.draw(st.sampled_from(sorted(part)))] = data.draw(VALUES)
    found = outcome(config)
    if isinstance(found, UsageError):
        assert found.hint
        assert "\n" not in found.what
        return
    assert found.pct > 0
    assert all(term.bytes >= 0 for term in found.terms)
