"""From a parsed config.json to a geometry, by the config's model_type."""

from collections.abc import Callable, Mapping
from typing import Any

from tokenwatt_site.documents.jsonfile import is_object
from tokenwatt_site.method.models import hybrid, latent
from tokenwatt_site.method.models.geometry import Cache, Geometry, Module
from tokenwatt_site.method.models.keys import Keys
from tokenwatt_site.method.models.parts import routed
from tokenwatt_site.method.models.transformer import STYLES, transformer

Family = Callable[[Keys], tuple[list[Module], list[Cache]]]

_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(latent.MLA, latent.latent),
    **dict.fromkeys(latent.V4, latent.compressed),
    **dict.fromkeys(hybrid.QWEN, hybrid.delta),
    **dict.fromkeys(hybrid.NEMOTRON_H, hybrid.nemotron_h),
    **dict.fromkeys(hybrid.NEMOTRON_NAS, hybrid.searched),
    **dict.fromkeys(hybrid.GEMMA, hybrid.gemma),
}
_SHARED = ("tie_word_embeddings", "torch_dtype", "dtype")
"""Keys of a whole model that hold for its language part where that has none of its own."""
_ABSENT = ("add_cross_attention", "is_encoder_decoder", "tie_encoder_decoder")
_READ_ELSEWHERE = ("quantization_config", "expert_dtype")
"""Keys that decide data types: method.models.precision."""


def known_types() -> tuple[str, ...]:
    """Return the model types that can be read."""
    return tuple(sorted({*STYLES, *_FAMILIES}))


def language_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the language model: of a model with towers those of its text_config."""
    part = config.get("text_config")
    if not is_object(part):
        return dict(config)
    shared = {key: config[key] for key in (*_SHARED, *_READ_ELSEWHERE) if key in config}
    return {**shared, **part}


def geometry(config: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Geometry:
    """Return the geometry of a model.

    Args:
        config: its config.json, as parsed.
        overrides: keys that replace those of the language part; null leaves one out.

    Raises:
        UsageError: naming the key that is missing, contradicts another or isn't known.
    """
    keys = Keys({**language_part(config), **(overrides or {})})
    model_type = keys.text("model_type")
    family = _FAMILIES.get(model_type)
    if family is not None:
        modules, caches = family(keys)
    elif model_type in STYLES:
        modules, caches = transformer(keys, model_type)
    else:
        raise keys.refuse(
            "model_type", f"{model_type!r} isn't known, of: {', '.join(known_types())}"
        )
    keys.off(*_ABSENT)
    keys.only("cross_attention_hidden_size")
    keys.only("pruned_heads", {})
    experts, top_k = routed(keys)
    dtype = keys.text("dtype") or keys.text("torch_dtype")
    ignored = keys.finish(_READ_ELSEWHERE)
    return Geometry(
        model_type,
        keys.used.get("num_hidden_layers") or _listed(keys),
        tuple(modules),
        tuple(caches),
        experts,
        top_k,
        dtype,
        keys.used,
        tuple(name for name in ignored if name not in _READ_ELSEWHERE),
    )


def _listed(keys: Keys) -> int:
    return len(keys.used.get("layers_block_type") or ())
