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
"""A key of model.geometry that is none of config.json: over how many accelerators attention is
split, where engines run it data-parallel (1) beside experts that are split over all."""


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
    attention_tp = overrides.pop(ATTENTION_TP, None)
    if attention_tp is not None and (type(attention_tp) is not int or attention_tp < 1):
        raise UsageError(
            f"model.geometry.{ATTENTION_TP}: {str(attention_tp)[:40]!r} is no number of devices",
            "1 where attention is data-parallel; leave it out where it is split like the rest",
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
    return Model(shape, quantized, weight, kv, kv_source, own, attention_tp, kept)


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
