"""A model as it is served: its geometry, and how many bytes each part of it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.models.geometry import Cache, Geometry, Module
from tokenwatt_site.method.models.precision import BF16, NVFP4, Precision, named
from tokenwatt_site.method.models.quantization import Quantization, quantization
from tokenwatt_site.method.models.read import geometry, language_part

ATTENTION_TP = "attention_tensor_parallel"
"""Keys of model.geometry that are none of config.json. Over how many accelerators attention is
split, where engines run it data-parallel (1) beside experts that are split over all."""
MOST = 10_000
VERIFIED, ACCEPTED = "tokens_verified", "tokens_accepted"
"""Tokens of a sequence that a step verifies, and that it gets of them, with a draft."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the operator says of the model beside its files."""

    weight_dtype: str = ""
    kv_dtype: str = ""
    geometry: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose bytes can be counted."""

    geometry: Geometry
    quantization: Quantization
    weight: Precision | None
    """Of every weight, where the operator says another than the files do."""
    kv: Precision
    kv_source: str
    own: Precision
    """Of what isn't quantised."""
    attention_tp: int | None
    """Accelerators that attention is split over; None: all of the tensor parallel ones."""
    verified: float
    """Tokens of a sequence in one step."""
    accepted: float
    """Tokens that a sequence gets of one step."""
    config: ModelConfig
    """The keys that were used, enough to make this model again."""

    def precision(self, module: Module) -> tuple[Precision, str]:
        """Return a module's precision, and where that was read."""
        if module.dtype:
            return named(module.dtype, "config.json"), "the architecture"
        if self.weight is not None:
            return self.weight, "weight_dtype"
        found = self.quantization.of(module)
        if found is not None:
            return found, self.quantization.source
        source = "dtype" if self.geometry.dtype else "assumed: the config names no dtype"
        return self.own, source

    def cached(self, cache: Cache) -> tuple[Precision, str]:
        """Return the precision of what is kept of a sequence, and where that was read."""
        if cache.dtype == "weights":
            return self.own, "dtype"
        if cache.dtype:
            return named(cache.dtype, "config.json"), "the architecture"
        return self.kv, self.kv_source


def model(files: ModelConfig, served: Served) -> Model:
    """Return the model that files and operator describe.

    Raises:
        UsageError: naming the key that isn't understood.
    """
    overrides = dict(served.geometry or {})
    attention_tp = _own_key(overrides, ATTENTION_TP)
    verified, accepted = (_own_key(overrides, key) or 1.0 for key in (VERIFIED, ACCEPTED))
    if accepted > verified:
        raise UsageError(
            f"model.geometry.{ACCEPTED}: more tokens are accepted than verified",
            f"give {VERIFIED}, which is no less",
        )
    shape = geometry(files.config, overrides)
    language = {**language_part(files.config), **overrides}
    quantized = quantization(language, files.quant)
    own = named(shape.dtype, "config.json: dtype") if shape.dtype else BF16
    kv, kv_source = _kv(served.kv_dtype, quantized, own)
    used = {**shape.used, **{key: language[key] for key in _BLOCKS if key in language}}
    kept = ModelConfig(
        {key: value for key, value in used.items() if key not in overrides},
        files.quant if quantized.source == "hf_quant_config.json" else None,
        files.sha256,
    )
    weight = _weight(served.weight_dtype, quantized)
    split = None if attention_tp is None else int(attention_tp)
    return Model(shape, quantized, weight, kv, kv_source, own, split, verified, accepted, kept)


def _own_key(overrides: dict[str, Any], key: str) -> float | None:
    """Take one of our own keys out of the overrides."""
    value = overrides.pop(key, None)
    if value is None:
        return None
    whole = key == ATTENTION_TP
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise UsageError(f"model.geometry.{key}: it is no number", "a number of 1 or more")
    if not 1 <= value <= MOST:
        raise UsageError(f"model.geometry.{key}: {value:g} can't be", "a number of 1 or more")
    return value


_BLOCKS = ("quantization_config", "expert_dtype")


def _weight(text: str, quantized: Quantization) -> Precision | None:
    """Return the precision that replaces the files', None where the word agrees with theirs."""
    word = text.strip().lower().replace("-", "_")
    if word in ("", "auto"):
        return None
    names = {each.name.split(",")[0] for each in quantized.precisions}
    if word in names or (word == "fp4" and NVFP4.name in names):
        return None
    found = named(text, "model.weight_dtype")
    return None if found.name in names else found


def _kv(text: str, quantized: Quantization, own: Precision) -> tuple[Precision, str]:
    if text.strip().lower() not in ("", "auto"):
        return named(text, "model.kv_dtype"), "kv_dtype"
    if quantized.kv is not None:
        return quantized.kv, quantized.source
    return own, "as the weights: no KV type is named"
