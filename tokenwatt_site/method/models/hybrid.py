"""Models that mix attention with layers of a fixed state, and models of unlike layers.

Sources of the shapes: huggingface/transformers and vllm-project/vllm (qwen3_5, nemotron_h, gemma4),
NVIDIA's modeling_decilm.py (nemotron-nas).
"""

from dataclasses import replace
from typing import Any

from tokenwatt_site.documents.jsonfile import is_object
from tokenwatt_site.method.models.geometry import Cache, Group, Module
from tokenwatt_site.method.models.keys import Keys
from tokenwatt_site.method.models.parts import (
    Experts,
    Heads,
    attention_caches,
    ends,
    layer_count,
    mlp,
    norms,
    routed,
)

QWEN = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
NEMOTRON_H = ("nemotron_h",)
NEMOTRON_NAS = ("nemotron-nas",)
GEMMA = ("gemma4_text",)


def _head(keys: Keys, **more: Any) -> Heads:
    hidden, queries = keys.size("hidden_size"), keys.size("num_attention_heads")
    dim = keys.size("head_dim", "attention_head_dim", default=hidden // queries or 1)
    keys.off("attention_bias")
    narrow = keys.size("num_key_value_heads", default=queries)
    return Heads(hidden, queries, narrow, dim, **more)


def delta(keys: Keys) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a Qwen with gated delta layers."""
    layers = layer_count(keys)
    heads = _head(keys, gate=keys.flag("attn_output_gate", default=True))
    heads = replace(heads, norms=2 * heads.dim)
    modules = ends(keys, heads.hidden)
    step = keys.size("full_attention_interval", default=4)
    types = keys.words("layer_types", layers) or [
        "full_attention" if (index + 1) % step == 0 else "linear_attention"
        for index in range(layers)
    ]
    if not set(types) <= {"full_attention", "linear_attention"}:
        raise keys.refuse("layer_types", "other kinds than full and linear attention")
    if keys.counts("mlp_only_layers"):
        raise keys.refuse("mlp_only_layers", "layers without experts aren't known here")
    keys.only("decoder_sparse_step", 1)
    experts, _ = routed(keys)
    for index, kind in enumerate(types):
        path = f"layers.{index}"
        if kind == "full_attention":
            modules += heads.modules(f"{path}.self_attn")
        else:
            modules += _delta_layer(keys, f"{path}.linear_attn", heads.hidden)
        modules.append(norms(path, 2 * heads.hidden))
        modules += _qwen_mlp(keys, f"{path}.mlp", experts)
    full = types.count("full_attention")
    return modules, [*attention_caches([(heads, None)] * full), *_delta_state(keys, layers - full)]


def _delta_sizes(keys: Keys) -> tuple[int, int, int, int]:
    value_heads, value = keys.size("linear_num_value_heads"), keys.size("linear_value_head_dim")
    key_heads, key = keys.size("linear_num_key_heads"), keys.size("linear_key_head_dim")
    return key_heads * key, value_heads * value, value_heads, value


def _delta_layer(keys: Keys, path: str, hidden: int) -> list[Module]:
    wide_key, wide_value, heads, value = _delta_sizes(keys)
    mixed = 2 * wide_key + wide_value
    kernel = keys.size("linear_conv_kernel_dim")
    group: Group = "linear attention"
    return [
        Module(f"{path}.in_proj_qkv", group, hidden * mixed),
        Module(f"{path}.in_proj_z", group, hidden * wide_value),
        Module(f"{path}.in_proj_b", group, hidden * heads),
        Module(f"{path}.in_proj_a", group, hidden * heads),
        Module(f"{path}.conv1d", group, mixed * kernel, "vector"),
        Module(f"{path}.out_proj", group, wide_value * hidden),
        norms(path, 2 * heads + value),
    ]


def _delta_state(keys: Keys, layers: int) -> list[Cache]:
    """Return the states: a matrix for each value head, and the last inputs of the convolution."""
    if not layers:
        return []
    wide_key, wide_value, heads, _ = _delta_sizes(keys)
    dtype = keys.text("mamba_ssm_dtype", "float32")
    last = (2 * wide_key + wide_value) * (keys.size("linear_conv_kernel_dim") - 1)
    numbers = wide_value * keys.size("linear_key_head_dim")
    return [
        Cache("state of linear attention", layers, numbers, heads, state=True, dtype=dtype),
        Cache("state of its convolution", layers, last, heads, state=True, dtype="weights"),
    ]


def _qwen_mlp(keys: Keys, path: str, experts: int) -> list[Module]:
    hidden = keys.size("hidden_size")
    if not experts:
        return mlp(path, hidden, keys.size("intermediate_size"))
    shared = keys.size("shared_expert_intermediate_size")
    return [
        *Experts(hidden, experts, keys.size("moe_intermediate_size")).modules(path),
        *mlp(f"{path}.shared_expert", hidden, shared, shared=True),
        Module(f"{path}.shared_expert_gate", "router", hidden),
    ]


_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_h(keys: Keys) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a Nemotron-H: Mamba 2, attention, MLPs, experts."""
    pattern = keys.text("hybrid_override_pattern")
    kinds = [_PATTERN.get(mark, mark) for mark in pattern] or keys.words("layers_block_type")
    if not kinds or not set(kinds) <= set(_PATTERN.values()):
        where = "hybrid_override_pattern" if pattern else "layers_block_type"
        raise keys.refuse(where, "a layer of another kind, or none")
    if keys.count("num_hidden_layers", default=len(kinds)) != len(kinds):
        raise keys.refuse("num_hidden_layers", f"{len(kinds)} layers are listed")
    keys.off("mamba_proj_bias", "mlp_bias", "use_bias")
    keys.only("sliding_window")
    heads, (experts, _) = _head(keys), routed(keys)
    keys.spare("intermediate_size")
    modules = ends(keys, heads.hidden)
    for index, kind in enumerate(kinds):
        path = f"layers.{index}.mixer"
        modules.append(norms(path, heads.hidden))
        if kind == "mamba":
            modules += _mamba_layer(keys, path, heads.hidden)
        elif kind == "attention":
            modules += heads.modules(path)
        elif kind == "mlp":
            modules += mlp(path, heads.hidden, keys.size("intermediate_size"), gated=False)
        else:
            modules += _nemotron_moe(keys, path, heads.hidden, experts)
    caches = attention_caches([(heads, None)] * kinds.count("attention"))
    return modules, [*caches, *_mamba_state(keys, kinds.count("mamba"))]


def _mamba_sizes(keys: Keys) -> tuple[int, int, int]:
    """Return heads, width, and the width that the convolution goes over."""
    heads = keys.size("mamba_num_heads")
    inner = heads * keys.size("mamba_head_dim")
    return heads, inner, inner + 2 * keys.size("n_groups") * keys.size("ssm_state_size")


def _mamba_layer(keys: Keys, path: str, hidden: int) -> list[Module]:
    heads, inner, mixed = _mamba_sizes(keys)
    bias = keys.flag("use_conv_bias", default=True)
    group: Group = "linear attention"
    return [
        Module(f"{path}.in_proj", group, hidden * (inner + mixed + heads)),
        Module(f"{path}.conv1d", group, mixed * (keys.size("conv_kernel") + bias), "vector"),
        Module(f"{path}.out_proj", group, inner * hidden),
        norms(path, 3 * heads + inner),
    ]


def _mamba_state(keys: Keys, layers: int) -> list[Cache]:
    if not layers:
        return []
    heads, inner, mixed = _mamba_sizes(keys)
    dtype = keys.text("mamba_ssm_cache_dtype", "weights")
    numbers, last = inner * keys.size("ssm_state_size"), mixed * (keys.size("conv_kernel") - 1)
    return [
        Cache("state of Mamba layers", layers, numbers, heads, state=True, dtype=dtype),
        Cache("state of their convolution", layers, last, heads, state=True, dtype="weights"),
    ]


def _nemotron_moe(keys: Keys, path: str, hidden: int, experts: int) -> list[Module]:
    """Return a layer of experts without gates, which may work at a narrower width."""
    if not experts:
        raise keys.refuse("n_routed_experts", "there are layers of experts, and none of them")
    narrow = keys.count("moe_latent_size", default=0)
    routed_part = Experts(narrow or hidden, experts, keys.size("moe_intermediate_size"), 2)
    modules = routed_part.modules(path, router_hidden=hidden)
    if narrow:
        modules.append(Module(f"{path}.fc1_latent_proj", "MLP", hidden * narrow))
        modules.append(Module(f"{path}.fc2_latent_proj", "MLP", hidden * narrow))
    width = keys.count("moe_shared_expert_intermediate_size", default=0)
    shared = keys.count("n_shared_experts", default=0) * width
    if shared:
        modules += mlp(f"{path}.shared_experts", hidden, shared, gated=False, shared=True)
    return modules


def searched(keys: Keys) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a Nemotron whose blocks were searched one by one."""
    layers = layer_count(keys)
    hidden, queries = keys.size("hidden_size"), keys.size("num_attention_heads")
    keys.off("attention_bias", "mlp_bias")
    keys.only("num_key_value_heads")
    keys.only("intermediate_size")
    modules = ends(keys, hidden)
    attention: list[tuple[Heads, int | None]] = []
    for index, block in enumerate(keys.items("block_configs", layers) or []):
        if not is_object(block):
            raise keys.refuse("block_configs", f"block {index} is no object")
        whole = Keys(block, f"config.json, block_configs[{index}]")
        path = f"layers.{index}"
        modules.append(norms(path, 2 * hidden))
        part = _block(whole, "attention")
        group = part.count("n_heads_in_group", default=0)
        if not part.flag("no_op", default=False):
            if not group:
                raise part.refuse("n_heads_in_group", "the key is missing")
            heads = Heads(hidden, queries, queries // group or 1, hidden // queries)
            modules += heads.modules(f"{path}.self_attn")
            attention.append((heads, None))
        modules += _searched_mlp(_block(whole, "ffn"), f"{path}.mlp", hidden)
        whole.finish()
    if len(attention) == 0:
        raise keys.refuse("block_configs", "no block has attention")
    return modules, attention_caches(attention)


def _block(whole: Keys, name: str) -> Keys:
    part = whole.nested(name)
    if part is None:
        raise whole.refuse(name, "the key is missing")
    part.off("replace_with_linear", "unshifted_sink", "use_prefill_window_in_sink_attention")
    for other in ("sparsify", "num_sink_tokens", "window_length"):
        part.only(other)
    return part


def _searched_mlp(part: Keys, path: str, hidden: int) -> list[Module]:
    if part.flag("no_op", default=False):
        return []
    factor = part.raw("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 100:  # noqa: PLR2004
        raise part.refuse("ffn_mult", "it is no factor")
    width = int(2 * factor * hidden / 3)
    return mlp(path, hidden, -(-width // 256) * 256)


def gemma(keys: Keys) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a Gemma 4: windows, wide global layers, experts beside."""
    layers = layer_count(keys)
    local = _head(keys)
    wide = replace(
        local,
        dim=keys.size("global_head_dim", default=local.dim),
        keys=keys.size("num_global_key_value_heads", default=local.keys),
        shared_value=keys.flag("attention_k_eq_v", default=False),
    )
    keys.only("hidden_size_per_layer_input", 0)
    keys.only("num_kv_shared_layers", 0)
    keys.only("expert_intermediate_size")
    keys.off("use_double_wide_mlp")
    types, window = keys.words("layer_types", layers), keys.size("sliding_window")
    if types is None or not set(types) <= {"full_attention", "sliding_attention"}:
        raise keys.refuse("layer_types", "full or sliding attention is needed for each layer")
    experts, _ = routed(keys)
    experts = experts if keys.flag("enable_moe_block", default=False) else 0
    modules = ends(keys, local.hidden, tied=True)
    attention: list[tuple[Heads, int | None]] = []
    for index, kind in enumerate(types):
        path, heads = f"layers.{index}", wide if kind == "full_attention" else local
        heads = replace(heads, norms=2 * heads.dim)
        attention.append((heads, window if kind == "sliding_attention" else None))
        modules += heads.modules(f"{path}.self_attn")
        modules.append(norms(path, 4 * local.hidden))
        modules += mlp(f"{path}.mlp", local.hidden, keys.size("intermediate_size"))
        if experts:
            width = keys.size("moe_intermediate_size")
            modules += Experts(local.hidden, experts, width).modules(
                path, router="router"
            )  # no .mlp
    return modules, attention_caches(attention)
