"""A config that isn't understood is refused by the name of its key; nothing is guessed."""

from typing import Any

import pytest

from tests.support.configs import TINY, model_of, raw_config
from tokenwatt_site.errors import UsageError

ATTENTION = 2 * 4 * 8 + 2 * (1 * 4 * 8) + 2 * 4 * 8
LAYER = ATTENTION + 2 * 4 + 2 * 8 + 4 * 8 + 4 * 3 * 8 * 6
TOTAL = 2 * 10 * 8 + 8 + 2 * LAYER


def params(**changed: Any) -> int:
    return model_of({**TINY, **changed}).geometry.params


def test_a_tiny_model_counted_by_hand() -> None:
    assert params() == TOTAL


def test_shared_embeddings_are_counted_once() -> None:
    assert params(tie_word_embeddings=True) == TOTAL - 10 * 8


def test_layers_without_experts() -> None:
    dense = 3 * 8 * 20 - (4 * 8 + 4 * 3 * 8 * 6)
    assert params(intermediate_size=20, mlp_only_layers=[0]) == TOTAL + dense
    assert params(intermediate_size=20, decoder_sparse_step=2) == TOTAL + dense
    assert params(intermediate_size=20, first_k_dense_replace=1) == TOTAL + dense
    assert params(intermediate_size=20, moe_layer_freq=[0, 1]) == TOTAL + dense
    assert params(intermediate_size=20, mlp_layer_types=["dense", "sparse"]) == TOTAL + dense


@pytest.mark.parametrize(
    "changed, key",
    [
        ({"num_experts_per_tok": 0}, "num_experts_per_tok"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok"),
        ({"num_experts_per_tok": 5}, "num_experts_per_tok"),
        ({"num_experts": 0}, "num_experts_per_tok"),
        ({"num_experts": 10**6}, "num_experts"),
        ({"num_experts_per_tok": 2, "experts_per_token": 3}, "experts_per_token"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "8"}, "hidden_size"),
        ({"hidden_size": -8}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": 10**12}, "hidden_size"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"cross_layer_sharing": 2}, "cross_layer_sharing"),
        ({"a_new_matrix": False}, "a_new_matrix"),
        ({"model_type": "unheard_of"}, "model_type"),
        ({"model_type": 3}, "model_type"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"moe_layer_freq": 2}, "moe_layer_freq"),
        ({"moe_layer_freq": [1]}, "moe_layer_freq"),
        ({"mlp_layer_types": ["dense", "thick"]}, "mlp_layer_types"),
        ({"mlp_only_layers": "all"}, "mlp_only_layers"),
        ({"layer_types": ["full_attention", "ring"]}, "layer_types"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window"),
        ({"use_sliding_window": True, "sliding_window": 5}, "use_sliding_window"),
        ({"attention_chunk_size": 5}, "attention_chunk_size"),
        ({"sparse_attention_config": {"use_sparse_attention": 1}}, "use_sparse_attention"),
        ({"dtype": "posit"}, "dtype"),
    ],
)
def test_what_is_not_understood_is_named(changed: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError) as caught:
        params(**changed)
    assert key in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(
    "name, changed, key",
    [
        ("deepseek-ai--DeepSeek-V3", {"kv_lora_rank": None}, "kv_lora_rank"),
        ("deepseek-ai--DeepSeek-V3.2", {"indexer_types": ["shared"] * 61}, "indexer_types"),
        ("deepseek-ai--DeepSeek-V4-Flash", {"compress_ratios": None}, "compress_ratios"),
        ("deepseek-ai--DeepSeek-V4-Flash", {"compress_ratios": [0.5] * 43}, "compress_ratios"),
        ("deepseek-ai--DeepSeek-V4-Flash", {"num_key_value_heads": 2}, "num_key_value_heads"),
        ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"num_hidden_layers": 3}, "num_hidden"),
        (
            "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            {"hybrid_override_pattern": "MX"},
            "hybrid_override_pattern",
        ),
    ],
)
def test_so_is_what_other_families_lack(name: str, changed: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError, match=key):
        model_of(raw_config(name) | changed)


def test_gemma_with_embeddings_per_layer_is_refused() -> None:
    config = raw_config("google--gemma-4-26B-A4B")
    config["text_config"]["hidden_size_per_layer_input"] = 256
    with pytest.raises(UsageError, match="hidden_size_per_layer_input"):
        model_of(config)


def test_a_block_that_becomes_a_matrix_is_refused() -> None:
    config = raw_config("nvidia--Llama-3_3-Nemotron-Super-49B-v1")
    config["block_configs"][3]["attention"]["replace_with_linear"] = True
    with pytest.raises(UsageError, match="replace_with_linear"):
        model_of(config)


def test_index_values_are_refused() -> None:
    config = raw_config("MiniMaxAI--MiniMax-M3")
    config["sparse_attention_config"]["sparse_disable_index_value"] = [0] * 60
    with pytest.raises(UsageError, match="sparse_disable_index_value"):
        model_of(config)


def test_null_keys_and_harmless_ones_pass_and_are_listed() -> None:
    shape = model_of({**TINY, "anything": None, "rope_theta": 1e6, "use_cache": True}).geometry
    assert {"anything", "rope_theta", "use_cache"} <= set(shape.ignored)


def test_geometry_overrides_the_config() -> None:
    shape = model_of(TINY, geometry={"num_hidden_layers": 3}).geometry
    assert shape.params == TOTAL + LAYER
    known = model_of(
        {**TINY, "odd": 1, "model_type": "new"}, geometry={"odd": None, "model_type": "qwen3_moe"}
    )
    assert known.geometry.params == TOTAL


def test_a_hostile_name_is_shown_tamed() -> None:
    with pytest.raises(UsageError) as caught:
        params(**{"evil\x1b]0;x\x07" + "k" * 500: 1})
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400
