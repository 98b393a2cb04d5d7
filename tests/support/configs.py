"""Real config.json files of the shared folder, and the models that they describe."""

import json
from pathlib import Path
from typing import Any

from tests.support.shared import shared_path
from tokenwatt_site.documents.model_config import ModelConfig, load_model_config
from tokenwatt_site.method.models.model import Model, Served, model

FOLDER = "data/configs/aiconfigurator"

TINY: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 10,
    "moe_intermediate_size": 6,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
"""A config whose matrices can be counted by hand."""


def config_path(name: str) -> Path:
    """Return the path of a model's config.json, such as ``deepseek-ai--DeepSeek-V3``."""
    return shared_path(FOLDER) / f"{name}_config.json"


def raw_config(name: str) -> dict[str, Any]:
    """Return a config as parsed, to be changed by a test."""
    parsed: dict[str, Any] = json.loads(config_path(name).read_bytes())
    return parsed


def real_model(name: str, **served: Any) -> Model:
    """Return a real model as an operator who says ``served`` has it."""
    return model(load_model_config(config_path(name)), Served(**served))


def model_of(config: dict[str, Any], quant: dict[str, Any] | None = None, **served: Any) -> Model:
    """Return the model of a parsed config."""
    return model(ModelConfig(config, quant, "0" * 64), Served(**served))
