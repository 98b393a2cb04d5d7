"""Which precision each module has, by the blocks that quantisers write."""

from typing import Any

import pytest

from tests.support.configs import TINY, model_of, raw_config, real_model
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.mbu import Machine, Step, dtypes, mbu
from tokenwatt_site.method.models.model import Model
from tokenwatt_site.method.models.patterns import Names
from tokenwatt_site.method.models.precision import MXFP4, NVFP4, grouped


def found(model: Model) -> dict[str, str]:
    return dtypes(mbu(model, Step(32, 4000, 40), Machine(4.8)).terms)


def tiny(block: dict[str, Any] | None, quant: dict[str, Any] | None = None, **served: Any) -> Model:
    config = dict(TINY) if block is None else {**TINY, "quantization_config": block}
    return model_of(config, quant, **served)


def test_the_scales_are_counted() -> None:
    assert MXFP4.bytes == 0.53125
    assert NVFP4.bytes == 0.5625
    assert grouped(4, 32, "int").bytes == 0.5625
    assert grouped(4, 128, "int", zero=True).bytes == 0.5 + 2.5 / 128


@pytest.mark.parametrize(
    "name, expected",
    [
        ("deepseek-ai--DeepSeek-V3", {"experts": "fp8, 128×128 blocks", "router": "bf16"}),
        ("openai--gpt-oss-120b", {"experts": "mxfp4", "attention": "bf16", "lm_head": "bf16"}),
        (
            "deepseek-ai--DeepSeek-V4-Flash",
            {"experts": "mxfp4", "shared experts": "fp8, 128×128 blocks"},
        ),
        (
            "nvidia--DeepSeek-V4-Flash-NVFP4",
            {"experts": "nvfp4", "attention": "fp8, 128×128 blocks"},
        ),
        (
            "moonshotai--Kimi-K2.5",
            {"experts": "int4, groups of 32", "attention": "bf16", "MLP": "bf16"},
        ),
        (
            "nvidia--Qwen3.6-35B-A3B-NVFP4",
            {"lm_head": "nvfp4", "attention": "fp8", "experts": "nvfp4"},
        ),
        ("nvidia--Gemma-4-26B-A4B-NVFP4", {"experts": "nvfp4", "MLP": "bf16", "KV cache": "fp8"}),
        ("nvidia--GLM-5.1-NVFP4", {"experts": "nvfp4", "shared experts": "bf16", "MLP": "bf16"}),
        ("nvidia--MiniMax-M2.5-NVFP4", {"experts": "nvfp4", "attention": "bf16", "router": "bf16"}),
        # from hf_quant_config.json alone
        (
            "nvidia--Llama-3.1-70B-Instruct-FP8",
            {"attention": "fp8", "lm_head": "bf16", "KV cache": "fp8"},
        ),
        ("nvidia--DeepSeek-V3.1-NVFP4", {"attention": "bf16, nvfp4", "latent KV cache": "fp8"}),
    ],
)
def test_real_blocks(name: str, expected: dict[str, str]) -> None:
    every = found(real_model(name))
    assert {group: every[group] for group in expected} == expected


def test_a_word_that_agrees_keeps_the_files_detail() -> None:
    name = "openai--gpt-oss-120b"
    assert found(real_model(name, weight_dtype="MXFP4")) == found(real_model(name))
    assert set(found(real_model(name, weight_dtype="bf16", kv_dtype="fp8")).values()) == {
        "bf16",
        "fp8",
    }


def test_another_word_replaces_every_weight() -> None:
    assert found(tiny(None, weight_dtype="fp8")) == {
        **dict.fromkeys(("norms", "lm_head", "attention", "router", "experts"), "fp8"),
        "KV cache": "bf16",
    }


@pytest.mark.parametrize("served", [{"weight_dtype": "ternary"}, {"kv_dtype": "\x1b[2J"}])
def test_unknown_words_are_refused(served: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(served))) as caught:
        tiny(None, **served)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "block, experts",
    [
        ({"quant_method": "fp8"}, "fp8"),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
            "int4, groups of 128",
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True},
            "int4, groups of 64",
        ),
        ({"quant_method": "fp8", "modules_to_not_convert": ["experts"]}, "bf16"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.*.mlp"]}, "bf16"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0"]}, "bf16, fp8"),
        (
            {"quant_method": "fp8", "ignored_layers": ["model.layers.1.mlp.experts.3.up_proj"]},
            "fp8, bf16",
        ),
        ({"quant_method": "fp8", "modules_to_not_convert": ["ayers"]}, "fp8"),
    ],
)
def test_other_blocks(block: dict[str, Any], experts: str) -> None:
    assert found(tiny(block))["experts"] == experts


def test_groups_of_compressed_tensors() -> None:
    weights = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}
    named = {"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}
    groups = {
        "group_0": {"weights": weights, "targets": ["Linear"]},
        "group_1": {"weights": named, "targets": ["re:.*experts.*"]},
    }
    block = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"]}
    assert found(tiny(block))["experts"] == "int4, groups of 128"
    assert found(tiny(block))["attention"] == "fp8"


@pytest.mark.parametrize(
    "block, key",
    [
        ({"quant_method": "bitsandbytes"}, "quant_method"),
        ({"quant_method": "gptq"}, "bits"),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "fp8", "new_scales": 3}, "new_scales"),
        ({"quant_method": "fp8", "modules_to_not_convert": "gate"}, "modules_to_not_convert"),
        ({"quant_method": "fp8", "modules_to_not_convert": [7]}, "isn't quantised"),
        ({"quant_method": "modelopt", "quant_algo": "FP3"}, "quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 64}, "group_size"),
        ({"quant_method": "modelopt", "quantized_layers": {"a": {}}}, "quant"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {}}}, "config_groups"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 3, "type": "float"}}},
            },
            "type",
        ),
    ],
)
def test_blocks_that_are_not_understood(block: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError, match=key):
        tiny(block)


def test_an_unknown_kv_type_is_named() -> None:
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP2"}}
    with pytest.raises(UsageError, match="kv_cache_quant_algo"):
        tiny(None, quant)


def test_simple_expressions_are_read_and_others_refused() -> None:
    names = Names([r"re:.*mlp\.(gate|up)_proj$"], "ignore")
    assert names.hold("layers.0.mlp.up_proj")
    assert not names.hold("layers.0.mlp.up_proj_b")
    assert not names.hold("layers.0.mlp.down_proj")
    for hostile in (r"re:(a+)+$", "re:[a-z]", r"re:(?=x)", "re:" + "(a|b)" * 20):
        with pytest.raises(UsageError, match="ignore"):
            Names([hostile], "ignore")


def test_stars_without_end_cost_nothing() -> None:
    names = Names(["*a" * 140], "ignore")
    assert not names.hold("a" * 130 + "b")


def test_a_config_without_a_type_says_that_two_bytes_are_assumed() -> None:
    config = {key: value for key, value in TINY.items() if key != "dtype"}
    terms = mbu(model_of(config), Step(1, 1, 1), Machine(1)).terms
    assert {term.source for term in terms if not term.cache} == {
        "assumed: the config names no dtype"
    }


def test_the_text_part_of_a_model_with_towers_takes_the_whole_models_blocks() -> None:
    config = raw_config("nvidia--Kimi-K2.5-NVFP4")
    assert "quantization_config" not in config["text_config"]
    assert found(model_of(config))["experts"] == "nvfp4"
