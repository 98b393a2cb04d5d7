"""Every real config's parameters against the figure that its makers publish.

Totals are those of the language model: without towers for images, and without the layers of a draft
model (MTP). A figure is written with the digits it is published with.
"""

import pytest

from tests.support.configs import FOLDER, real_model
from tests.support.shared import shared_path
from tokenwatt_site.documents.model_config import load_model_config
from tokenwatt_site.method.mbu import Machine, Step, mbu
from tokenwatt_site.method.models.model import Served, model

CARD = "the model's card on huggingface.co"
PUBLIC: dict[str, tuple[str, str]] = {
    # name: (parameters in billions, who says so)
    "MiniMaxAI--MiniMax-M2.5": ("230", CARD),
    "MiniMaxAI--MiniMax-M2.7": ("230", CARD),
    "MiniMaxAI--MiniMax-M3": ("428", CARD),
    "Qwen--Qwen3-0.6B": ("0.6", CARD),
    "Qwen--Qwen3-1.7B": ("1.7", CARD),
    "Qwen--Qwen3-235B-A22B": ("235", CARD),
    "Qwen--Qwen3-30B-A3B": ("30.5", CARD),
    "Qwen--Qwen3-32B": ("32.8", CARD),
    "Qwen--Qwen3-8B": ("8.2", CARD),
    "Qwen--Qwen3-Coder-480B-A35B-Instruct": ("480", CARD),
    "Qwen--Qwen3-VL-235B-A22B-Instruct": ("235", "the card of its language model, Qwen3-235B"),
    "Qwen--Qwen3-VL-2B-Instruct": ("1.7", "the card of its language model, Qwen3-1.7B"),
    "Qwen--Qwen3-VL-30B-A3B-Instruct": ("30.5", "the card of its language model, Qwen3-30B"),
    "Qwen--Qwen3-VL-32B-Instruct": ("32.8", "the card of its language model, Qwen3-32B"),
    "Qwen--Qwen3-VL-4B-Instruct": ("4.0", "the card of its language model, Qwen3-4B"),
    "Qwen--Qwen3-VL-8B-Instruct": ("8.2", "the card of its language model, Qwen3-8B"),
    "Qwen--Qwen3.5-27B": ("27", CARD),
    "Qwen--Qwen3.5-35B-A3B": ("35", CARD),
    "Qwen--Qwen3.5-397B-A17B": ("397", CARD),
    "XiaomiMiMo--MiMo-7B-Base": ("7.6", "its weights without the MTP layer"),
    "deepseek-ai--DeepSeek-V3": ("671", "arXiv 2412.19437"),
    "deepseek-ai--DeepSeek-V4-Flash": ("284", CARD),
    "deepseek-ai--DeepSeek-V4-Pro": ("16e2", CARD),
    "google--gemma-4-26B-A4B": ("25.2", CARD),
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct": ("400", CARD),
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": ("108", "its 109 without the image tower"),
    "meta-llama--Meta-Llama-3.1-405B": ("405", CARD),
    "meta-llama--Meta-Llama-3.1-70B": ("70.6", "its weights"),
    "meta-llama--Meta-Llama-3.1-8B": ("8.03", "its weights"),
    "mistralai--Mixtral-8x7B-v0.1": ("46.7", "mistral.ai, Mixtral of experts"),
    "moonshotai--Kimi-K2-Instruct": ("1026", "its weights; the card says 1T"),
    "nvidia--Gemma-4-31B-IT-NVFP4": ("30.7", CARD),
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1": ("49.9", "its weights"),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("31.6", CARD),
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": ("550", CARD),
    "nvidia--Nemotron-H-56B-Base-8K": ("56", CARD),
    "openai--gpt-oss-120b": ("116.8", "arXiv 2508.10925"),
    "openai--gpt-oss-20b": ("20.9", "arXiv 2508.10925"),
    "zai-org--GLM-5": ("744", CARD),
}
TWINS = {
    "Qwen--Qwen3-235B-A22B-FP8": "Qwen--Qwen3-235B-A22B",
    "Qwen--Qwen3-30B-A3B-FP8": "Qwen--Qwen3-30B-A3B",
    "Qwen--Qwen3-32B-FP8": "Qwen--Qwen3-32B",
    "Qwen--Qwen3-32B-FP8-Static-PerTensor": "Qwen--Qwen3-32B",
    "Qwen--Qwen3-VL-32B-Thinking": "Qwen--Qwen3-VL-32B-Instruct",
    "deepseek-ai--DeepSeek-R1": "deepseek-ai--DeepSeek-V3",
    "moonshotai--Kimi-K2.5": "moonshotai--Kimi-K2-Instruct",
    "nvidia--DeepSeek-V3.1-NVFP4": "deepseek-ai--DeepSeek-V3",
    "nvidia--DeepSeek-V3.2-NVFP4": "deepseek-ai--DeepSeek-V3.2",
    "nvidia--DeepSeek-V4-Flash-NVFP4": "deepseek-ai--DeepSeek-V4-Flash",
    "nvidia--DeepSeek-V4-Pro-NVFP4": "deepseek-ai--DeepSeek-V4-Pro",
    "nvidia--GLM-5-NVFP4": "zai-org--GLM-5",
    "nvidia--GLM-5.1-NVFP4": "zai-org--GLM-5",
    "nvidia--Gemma-4-26B-A4B-NVFP4": "google--gemma-4-26B-A4B",
    "nvidia--Kimi-K2.5-NVFP4": "moonshotai--Kimi-K2-Instruct",
    "nvidia--Kimi-K2.6-NVFP4": "moonshotai--Kimi-K2-Instruct",
    "nvidia--Kimi-K2.7-Code-NVFP4": "moonshotai--Kimi-K2-Instruct",
    "nvidia--Llama-3.1-70B-Instruct-FP8": "meta-llama--Meta-Llama-3.1-70B",
    "nvidia--MiniMax-M2.5-NVFP4": "MiniMaxAI--MiniMax-M2.5",
    "nvidia--MiniMax-M2.7-NVFP4": "MiniMaxAI--MiniMax-M2.7",
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4": (
        "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
    ),
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8": (
        "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"
    ),
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4": (
        "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"
    ),
    "nvidia--Qwen3-235B-A22B-NVFP4": "Qwen--Qwen3-235B-A22B",
    "nvidia--Qwen3.5-397B-A17B-NVFP4": "Qwen--Qwen3.5-397B-A17B",
    "nvidia--Qwen3.6-27B-NVFP4": "Qwen--Qwen3.5-27B",
    "nvidia--Qwen3.6-35B-A3B-NVFP4": "Qwen--Qwen3.5-35B-A3B",
    "sgl-project--DeepSeek-V4-Flash-FP8": "deepseek-ai--DeepSeek-V4-Flash",
    "sgl-project--DeepSeek-V4-Pro-FP8": "deepseek-ai--DeepSeek-V4-Pro",
    "zai-org--GLM-5-FP8": "zai-org--GLM-5",
    "zai-org--GLM-5.1": "zai-org--GLM-5",
    "zai-org--GLM-5.1-FP8": "zai-org--GLM-5",
}
"""Other precisions and later versions of the same architecture: exactly as many parameters."""
GOLDEN = {
    "meta-llama--Meta-Llama-3.1-70B": "70.6",
    "mistralai--Mixtral-8x7B-v0.1": "46.7",
    "deepseek-ai--DeepSeek-V3": "671.0",
    "Qwen--Qwen3-235B-A22B": "235.1",
    "openai--gpt-oss-120b": "116.8",
    "moonshotai--Kimi-K2-Instruct": "1026.4",
}


def billions(name: str) -> float:
    return real_model(name).geometry.params / 1e9


def half_unit(text: str) -> float:
    """Half of the last digit's unit, which a rounded figure may be off."""
    digits, _, power = text.partition("e")
    return 0.5 * 10 ** (int(power or 0) - len(digits.partition(".")[2]))


@pytest.mark.parametrize("name", PUBLIC)
def test_within_a_percent_of_the_public_figure(name: str) -> None:
    text = PUBLIC[name][0]
    figure = float(text)
    assert abs(billions(name) - figure) <= max(0.01 * figure, half_unit(text))


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_has_as_many(name: str) -> None:
    assert billions(name) == billions(TWINS[name])


@pytest.mark.parametrize("name", GOLDEN)
def test_the_digits_of_the_method(name: str) -> None:
    assert f"{billions(name):.1f}" == GOLDEN[name]


def test_v4_flash_without_its_compressors_indexers_and_streams() -> None:
    shape = real_model("deepseek-ai--DeepSeek-V4-Flash").geometry
    extra = shape.params_of("compressor", "indexer", "hyper-connections")
    assert f"{(shape.params - extra) / 1e9:.1f} {shape.params / 1e9:.1f}" == "283.8 284.3"


def test_v3_2_has_an_indexer_beside_v3() -> None:
    shape = real_model("deepseek-ai--DeepSeek-V3.2").geometry
    plain = real_model("deepseek-ai--DeepSeek-V3").geometry
    indexer = shape.params_of("indexer")
    assert indexer > 8e8
    assert shape.params - indexer - plain.params == 61 * 2 * 128  # its norms


def test_every_config_is_listed_and_can_be_made_again_from_the_keys_that_were_used() -> None:
    names: list[str] = []
    for path in sorted(shared_path(FOLDER).glob("*_config.json")):
        if path.name.endswith("_hf_quant_config.json"):
            continue
        names.append(path.name.removesuffix("_config.json"))
        first = model(load_model_config(path), Served())
        again = model(first.config, Served())
        step, machine = Step(32, 4000, 40), Machine(4.8, tensor_parallel=8)
        assert mbu(again, step, machine) == mbu(first, step, machine)
    assert set(names) == {*PUBLIC, *TWINS, "deepseek-ai--DeepSeek-V3.2"}
