"""Bandwidth utilisation: the method's golden vectors, and what each part of the formula does."""

from typing import Any

import pytest

from tests.support.configs import model_of, raw_config, real_model
from tokenwatt_site.method.mbu import Machine, Mbu, Step, block, distinct_experts, mbu
from tokenwatt_site.method.models.model import Model

GB = 1e9


def bare(name: str) -> dict[str, Any]:
    config = raw_config(name)
    config.pop("quantization_config", None)
    return config


def on_h200(model: Model, tp: int, step: Step, **more: int) -> Mbu:
    return mbu(model, step, Machine(4.8, tensor_parallel=tp, **more))


def test_llama_70b() -> None:
    result = on_h200(real_model("meta-llama--Meta-Llama-3.1-70B"), 4, Step(16, 2000, 30))
    assert f"{result.pct:.1f}" == "26.0"
    assert result.distinct_experts is None


def test_mixtral() -> None:
    result = on_h200(real_model("mistralai--Mixtral-8x7B-v0.1"), 2, Step(8, 1000, 14))
    assert f"{result.pct:.1f} {result.distinct_experts:.1f}" == "63.4 7.2"


def test_deepseek_v3_with_every_weight_at_a_byte() -> None:
    model = model_of(bare("deepseek-ai--DeepSeek-V3"), weight_dtype="fp8", kv_dtype="bf16")
    result = on_h200(model, 8, Step(32, 4000, 40))
    assert f"{result.pct:.1f} {result.distinct_experts:.1f}" == "32.9 163.3"
    assert f"{result.weight_bytes / GB:.1f} {result.kv_bytes / GB:.2f}" == "433.3 71.96"
    assert f"{on_h200(model, 8, Step(32, 4000, 40, 2, 1.8)).pct:.1f}" == "23.7"


def test_deepseek_v3_as_its_files_say() -> None:
    """Router and lm_head are bf16, the others have a scale for each block of 128 x 128."""
    model = real_model("deepseek-ai--DeepSeek-V3", kv_dtype="bf16")
    result = on_h200(model, 8, Step(32, 4000, 40))
    assert f"{result.pct:.1f} {result.weight_bytes / GB:.1f}" == "33.0 434.5"
    assert f"{on_h200(model, 8, Step(32, 4000, 40, 2, 1.8)).pct:.1f}" == "23.8"


def test_qwen3_235b() -> None:
    model = model_of(bare("Qwen--Qwen3-235B-A22B-FP8"), weight_dtype="fp8", kv_dtype="bf16")
    assert f"{on_h200(model, 8, Step(32, 4000, 30)).pct:.1f}" == "22.1"


def test_gpt_oss_at_8_ms_is_impossible() -> None:
    result = on_h200(real_model("openai--gpt-oss-120b", kv_dtype="bf16"), 1, Step(32, 4000, 8))
    assert f"{result.pct:.0f}" == "122"
    assert not result.possible


def test_distinct_experts() -> None:
    assert distinct_experts(8, 2, 1) == 2
    assert distinct_experts(256, 8, 0) == 0
    assert distinct_experts(4, 4, 1) == 4
    assert distinct_experts(256, 8, 1e9) == pytest.approx(256)


def test_prompt_tokens_touch_more_experts_in_the_steps_that_have_them() -> None:
    model = real_model("mistralai--Mixtral-8x7B-v0.1")
    alone = on_h200(model, 2, Step(2, 1000, 14)).distinct_experts or 0
    mixed = on_h200(model, 2, Step(2, 1000, 14, prefill_tokens=100)).distinct_experts or 0
    tenth = Step(2, 1000, 14, prefill_tokens=100, prefill_share=0.1)
    assert mixed == pytest.approx(8)
    assert on_h200(model, 2, tenth).distinct_experts == pytest.approx(0.9 * alone + 0.1 * mixed)


def test_replicas_read_and_offer_as_many_times_more() -> None:
    model = real_model("Qwen--Qwen3-8B")
    one = on_h200(model, 1, Step(4, 100, 10))
    four = on_h200(model, 1, Step(4, 100, 10), replicas=4)
    assert four.pct == pytest.approx(one.pct)
    assert four.machine.accelerators == 4


def test_stages_share_the_layers() -> None:
    model = real_model("Qwen--Qwen3-8B")
    one = on_h200(model, 1, Step(4, 100, 10))
    assert on_h200(model, 1, Step(4, 100, 10), pipeline_parallel=2).pct == pytest.approx(
        one.pct / 2
    )


def test_kv_heads_are_copied_where_there_are_too_few() -> None:
    model = real_model("Qwen--Qwen3-8B")
    kv_bytes = [on_h200(model, tp, Step(4, 100, 10)).kv_bytes for tp in (1, 8, 16)]
    assert kv_bytes[1] == kv_bytes[0]
    assert kv_bytes[2] == 2 * kv_bytes[0]


def test_data_parallel_attention_keeps_one_copy_and_reads_its_weights_again() -> None:
    name = "deepseek-ai--DeepSeek-V3"
    split = on_h200(real_model(name), 8, Step(32, 4000, 40))
    parallel = real_model(name, geometry={"attention_tensor_parallel": 1})
    own = on_h200(parallel, 8, Step(32, 4000, 40))
    assert own.kv_bytes == pytest.approx(split.kv_bytes / 8)
    attention = {term.name: term.bytes for term in own.terms}["attention"]
    assert attention == pytest.approx(8 * {t.name: t.bytes for t in split.terms}["attention"])


def test_a_window_bounds_what_is_read() -> None:
    model = real_model("openai--gpt-oss-20b")
    near, far = (on_h200(model, 1, Step(1, ctx, 10)) for ctx in (1e5, 2e5))
    window = {term.name: term.bytes for term in near.terms}["KV cache in the window"]
    assert window == 12 * 128 * 1024 * 2
    assert far.kv_bytes - near.kv_bytes == 12 * 1e5 * 1024 * 2


def test_the_best_tokens_of_an_indexer_bound_what_is_read() -> None:
    """61 layers: 2,048 entries of 576 numbers, and a key of 132 bytes for each token."""
    result = on_h200(real_model("deepseek-ai--DeepSeek-V3.2"), 1, Step(1, 1e5, 10))
    assert result.kv_bytes == pytest.approx(61 * (2048 * 576 * 2 + 1e5 * 132))


def test_compressed_entries_of_v4() -> None:
    """43 windows; 21 layers with the best 512 of ctx/4 and their keys, 20 with ctx/128."""
    result = on_h200(real_model("deepseek-ai--DeepSeek-V4-Flash"), 1, Step(1, 64_000, 10))
    each = 512 * 2
    expected = 43 * 128 * each + 21 * (512 * each + 16_000 * 132) + 20 * 500 * each
    assert result.kv_bytes == pytest.approx(expected)


def test_a_state_is_read_and_written_whatever_the_context() -> None:
    model = real_model("Qwen--Qwen3.5-27B")
    near, far = (on_h200(model, 1, Step(1, ctx, 10)) for ctx in (1, 1001))
    assert far.kv_bytes - near.kv_bytes == 16 * 1000 * 2048 * 2
    state = {term.name: term.bytes for term in near.terms}["state of linear attention"]
    assert state == 2 * 48 * (48 * 128 * 128) * 4


def test_the_embedding_is_a_gather_and_a_tied_head_is_read() -> None:
    model = real_model("Qwen--Qwen3-0.6B")
    assert model.geometry.params_of("lm_head") == 0
    terms = {term.name: term.bytes for term in on_h200(model, 1, Step(1, 0, 10)).terms}
    assert terms["lm_head"] == 151_936 * 1024 * 2
    assert "embedding" not in terms


def test_the_block_says_what_it_was_made_of() -> None:
    result = on_h200(real_model("deepseek-ai--DeepSeek-V4-Flash"), 4, Step(32, 4000, 40))
    found = block(result, "a" * 64)
    assert sum(term["bytes"] for term in found["terms"]) == pytest.approx(
        found["weight_bytes"] + found["kv_bytes"]
    )
    assert found["dtypes"]["experts"] == "mxfp4"
    assert found["accelerators"] == 4
