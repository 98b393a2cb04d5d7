"""Which precision each module has, by a config's quantisation blocks.

Read are ``quantization_config`` (fp8, mxfp4, compressed-tensors, modelopt, gptq, awq), else
``hf_quant_config.json`` beside it, and ``expert_dtype``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokenwatt_site.documents.jsonfile import is_array, is_object
from tokenwatt_site.method.models.geometry import Module
from tokenwatt_site.method.models.keys import Keys
from tokenwatt_site.method.models.patterns import Names
from tokenwatt_site.method.models.precision import (
    MXFP4,
    NVFP4,
    Precision,
    fp8_blocks,
    grouped,
    named,
)

_UNTOUCHED = ("router", "lm_head", "embedding", "norms", "hyper-connections")
"""Groups that a quantiser leaves alone unless it names them."""
_SPOKEN = (
    *("activation_scheme", "fmt", "producer", "quantization_status", "format", "desc_act", "sym"),
    *("quant_type", "version", "modules_in_block_to_quantize", "true_sequential", "damp_percent"),
    *("static_groups", "model_file_base_name", "model_name_or_path", "moe_quant_algo", "backend"),
    *("global_compression_ratio", "sparsity_config", "transform_config", "checkpoint_format"),
    *("pack_dtype", "meta"),
)
_ALGOS: dict[str, Precision | None] = {
    "FP8": named("fp8", "quant_algo"),
    "FP8_PB_WO": fp8_blocks(128, 128, 4),
    "FP8_PER_CHANNEL_PER_TOKEN": named("fp8", "quant_algo"),
    "NVFP4": NVFP4,
    "W4A16_NVFP4": NVFP4,
    "MXFP4": MXFP4,
    "W4A8_MXFP4_FP8": MXFP4,
    "MXFP8": named("mxfp8", "quant_algo"),
    "W8A16": named("int8", "quant_algo"),
    "INT8": named("int8", "quant_algo"),
    "MIXED_PRECISION": None,
}
_FLOAT_BITS, _HALF = 8, 4


@dataclass(frozen=True, slots=True)
class Quantization:
    """What the blocks say."""

    base: Precision | None = None
    """Of every linear module that isn't exempt; None: as the model's own data type."""
    exempt: Names | None = None
    layers: tuple[tuple[Names, Precision], ...] = ()
    """Modules that are named with a precision of their own; these go first."""
    experts: Precision | None = None
    kv: Precision | None = None
    """Of the KV cache."""
    source: str = ""
    """Where it was read."""

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Return every precision that the blocks give to weights."""
        found = [self.base, self.experts, *(each for _, each in self.layers)]
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def of(self, module: Module) -> Precision | None:
        """Return a module's precision, None for that of the model's own data type."""
        for names, precision in self.layers:
            if names.hold(module.path):
                return precision
        if module.group == "experts" and self.experts is not None:
            return self.experts
        plain = module.kind == "vector" or module.group in _UNTOUCHED
        if plain or self.base is None or (self.exempt and self.exempt.hold(module.path)):
            return None
        return self.base


def quantization(
    config: Mapping[str, Any], beside: Mapping[str, Any] | None = None
) -> Quantization:
    """Return what is quantised how.

    Args:
        config: the keys of the language part, its quantization_config among them.
        beside: ``hf_quant_config.json``, as parsed.

    Raises:
        UsageError: naming the key that isn't understood.
    """
    block, source = config.get("quantization_config"), "quantization_config"
    if block is None and beside is not None:
        block, source = beside.get("quantization"), "hf_quant_config.json"
    own = Keys(config)
    expert = own.text("expert_dtype")
    experts = named(expert, "config.json: expert_dtype") if expert else None
    if block is None:
        return Quantization(experts=experts, source="expert_dtype" if experts else "")
    if not is_object(block):
        raise own.refuse("quantization_config", "it is no object")
    return _block(Keys(block, source), source, experts)


def _block(keys: Keys, source: str, experts: Precision | None) -> Quantization:
    method = keys.text("quant_method")
    base = _base(keys, method)
    layers = _named_layers(keys)
    if layers:
        # the precision of the others is that of the model before a tool converted those layers
        exempt = None if method == "fp8" else _exempt(keys)
        keys.spare("config_groups", "group_size", "ignore", "exclude_modules")
        base = base if method == "fp8" else None
    elif keys.has("config_groups"):
        base, layers = _groups(keys)
        exempt = _exempt(keys)
    else:
        exempt = _exempt(keys)
    kv = _kv(keys)
    keys.finish(_SPOKEN)
    return Quantization(base, exempt, layers, experts if not layers else None, kv, source)


def _base(keys: Keys, method: str) -> Precision | None:
    if method == "fp8":
        return _fp8(keys)
    if method == "mxfp4":
        return MXFP4
    keys.off("lm_head")
    if method in ("gptq", "awq"):
        bits = keys.size("bits", "w_bit")
        group = keys.raw("group_size") or keys.raw("q_group_size")
        zero = method == "awq" and keys.flag("zero_point", default=True)
        return grouped(
            bits, group if isinstance(group, int) and group > 0 else None, "int", zero=zero
        )
    if method not in ("", "modelopt", "modelopt_fp4", "compressed-tensors"):
        raise keys.refuse("quant_method", f"{method!r} isn't known")
    return _algo(keys, "quant_algo") if keys.has("quant_algo") else None


def _fp8(keys: Keys) -> Precision:
    shape = keys.items("weight_block_size")
    keys.spare("quant_algo", "kv_cache_quant_algo")
    scale_bytes = 1 if keys.text("scale_fmt") == "ue8m0" else 4
    if shape is None:
        return named("fp8", "quant_method")
    return _blocks(keys, "weight_block_size", shape, scale_bytes)


def _blocks(keys: Keys, name: str, shape: list[Any], scale_bytes: int) -> Precision:
    if len(shape) != 2 or not all(type(side) is int and side > 0 for side in shape):  # noqa: PLR2004
        raise keys.refuse(name, "it is no block of rows and columns")
    return fp8_blocks(shape[0], shape[1], scale_bytes)


def _algo(keys: Keys, name: str) -> Precision | None:
    """Return the precision of modelopt's word for it."""
    word = keys.text(name)
    if word not in _ALGOS:
        raise keys.refuse(name, f"{word!r} isn't known")
    group = keys.raw("group_size")
    if _ALGOS[word] is NVFP4 and group not in (None, 16):
        raise keys.refuse("group_size", "NVFP4 has groups of 16")
    return _ALGOS[word]


def _exempt(keys: Keys) -> Names | None:
    listed: list[Any] = []
    for name in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        value = keys.raw(name)
        if value is not None and not is_array(value):
            raise keys.refuse(name, "it is no list of modules")
        listed += value or []
    return Names(listed, "the list of what isn't quantised") if listed else None


def _named_layers(keys: Keys) -> tuple[tuple[Names, Precision], ...]:
    """Return the layers that have a precision each."""
    whole = keys.nested("quantized_layers")
    if whole is None:
        return ()
    by: dict[Precision, list[str]] = {}
    for path in whole.names():
        part = whole.nested(path)
        precision = _algo(part, "quant_algo") if part else None
        if part is None or precision is None:
            raise whole.refuse(path, "it has no quant_algo of its own")
        by.setdefault(precision, []).append(path)
    return tuple((Names(paths, "quantized_layers"), each) for each, paths in by.items())


def _groups(keys: Keys) -> tuple[Precision | None, tuple[tuple[Names, Precision], ...]]:
    """Return the precision of all linear modules, and of those that a group names."""
    whole = keys.nested("config_groups")
    base: Precision | None = None
    layers: list[tuple[Names, Precision]] = []
    for name in whole.names() if whole else ():
        group = whole.nested(name) if whole else None
        weights = group.nested("weights") if group else None
        if group is None or weights is None:
            raise keys.refuse("config_groups", f"{name} says nothing of weights")
        precision = _weights(weights)
        targets = group.raw("targets")
        if targets in (None, ["Linear"]):
            base = precision
        elif is_array(targets):
            layers.append((Names(targets, "targets"), precision))
        else:
            raise group.refuse("targets", "it is no list")
        group.finish(("input_activations", "output_activations", "format"))
    return base, tuple(layers)


_HOW = (
    *("actorder", "block_structure", "dynamic", "observer", "observer_kwargs", "symmetric"),
    *("strategy", "scale_dtype", "zp_dtype"),
)


def _weights(keys: Keys) -> Precision:
    bits, kind = keys.size("num_bits"), keys.text("type", "int")
    group = keys.raw("group_size")
    shape = keys.items("block_structure")
    zero = not keys.flag("symmetric", default=True)
    keys.finish(_HOW)
    if kind == "float" and bits == _FLOAT_BITS:
        return _blocks(keys, "block_structure", shape, 4) if shape else named("fp8", "num_bits")
    if kind == "float" and bits == _HALF and group in (16, 32):
        return NVFP4 if group == 16 else MXFP4  # noqa: PLR2004
    if kind != "int":
        raise keys.refuse("type", f"{kind} of {bits} bits in groups of {group} isn't known")
    return grouped(bits, group if isinstance(group, int) and group > 0 else None, "int", zero=zero)


def _kv(keys: Keys) -> Precision | None:
    """Return the precision of the KV cache, None where it is the model's own."""
    scheme = keys.raw("kv_cache_scheme")
    if is_object(scheme):
        part = Keys(scheme, "kv_cache_scheme")
        bits = part.size("num_bits")
        return named("fp8" if bits == _FLOAT_BITS else "nvfp4", "kv_cache_scheme")
    word = scheme if isinstance(scheme, str) else keys.text("kv_cache_quant_algo")
    return named(word, "kv_cache_quant_algo") if word else None
