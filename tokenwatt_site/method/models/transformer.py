"""Models of attention with keys and values per head: dense and with experts.

Sources of the shapes: the model files of huggingface/transformers and vllm-project/vllm, by type.
"""

from dataclasses import dataclass, replace

from tokenwatt_site.method.models.geometry import Cache, Module
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
    sparse_layers,
)

_FULL_EVERY = 4
"""Llama 4: one layer in four sees the whole context, the others their chunk."""


@dataclass(frozen=True, slots=True)
class Style:
    """How one model type differs from the plain transformer."""

    qkv_bias: bool | None = None
    """Biases on queries, keys and values; None: as the key attention_bias says."""
    out_bias: bool | None = None
    """A bias on the attention's output; None: as that key says."""
    head_norms: bool = False
    """Norms over each head of queries and keys."""
    sinks: bool = False
    moe: str = "mlp"
    """Name of the experts' layer."""
    router: str = "gate"
    expert_bias: bool = False
    tied: bool = False
    """Embedding and lm_head are one where the config doesn't say."""


STYLES: dict[str, Style] = {
    "llama": Style(),
    "mistral": Style(qkv_bias=False, out_bias=False),
    "mixtral": Style(qkv_bias=False, out_bias=False, moe="block_sparse_moe"),
    "qwen2": Style(qkv_bias=True, out_bias=False),
    "qwen3": Style(head_norms=True),
    "qwen3_moe": Style(head_norms=True),
    "qwen3_vl_text": Style(head_norms=True),
    "qwen3_vl_moe_text": Style(head_norms=True),
    "mimo": Style(out_bias=False),
    "gpt_oss": Style(sinks=True, router="router", expert_bias=True),
    "minimax_m2": Style(moe="block_sparse_moe"),
    "minimax_m3": Style(head_norms=True, moe="block_sparse_moe"),
    "llama4_text": Style(moe="feed_forward", router="router"),
}
"""Model types that this file knows."""


def transformer(keys: Keys, model_type: str) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a model of ``STYLES``.

    Raises:
        UsageError: naming the key that isn't understood.
    """
    style, layers = STYLES[model_type], layer_count(keys)
    keys.spare("intermediate_size", "intermediate_size_mlp")  # where every layer has experts
    heads = _heads(keys, style)
    windows = _windows(keys, model_type, layers)
    modules = ends(keys, heads.hidden, tied=style.tied)
    sparse = sparse_layers(keys, layers)
    experts, _ = routed(keys)
    for index in range(layers):
        path = f"layers.{index}"
        modules += heads.modules(f"{path}.self_attn")
        modules.append(norms(path, 2 * heads.hidden))
        if experts and sparse[index]:
            modules += _experts(keys, style, f"{path}.{style.moe}", experts)
        else:
            modules += mlp(f"{path}.{_dense_name(style)}", heads.hidden, _dense_width(keys))
    caches = attention_caches([(heads, window) for window in windows])
    if keys.has("sparse_attention_config"):
        return _block_sparse(keys, heads, modules, layers)
    return modules, caches


def _heads(keys: Keys, style: Style) -> Heads:
    hidden, queries = keys.size("hidden_size"), keys.size("num_attention_heads")
    dim = keys.size("head_dim", "attention_head_dim", default=hidden // queries or 1)
    bias = keys.flag("attention_bias", default=False)
    narrow = keys.size("num_key_value_heads", default=queries)
    normed = 2 * dim if style.head_norms else 0
    whole = keys.text("qk_norm_type") == "per_layer"
    if keys.flag("use_qk_norm", default=False) and whole:
        normed = (queries + narrow) * dim
    keys.off("qkv_bias", "mlp_bias", "attention_output_gate")
    return Heads(
        hidden,
        queries,
        narrow,
        dim,
        qkv_bias=bias if style.qkv_bias is None else style.qkv_bias,
        out_bias=bias if style.out_bias is None else style.out_bias,
        norms=normed,
        sinks=style.sinks,
    )


def _dense_name(style: Style) -> str:
    return "feed_forward" if style.moe == "feed_forward" else "mlp"


def _dense_width(keys: Keys) -> int:
    """Return the width of the MLP of a layer without experts."""
    return keys.size(
        next(
            (
                name
                for name in ("dense_intermediate_size", "intermediate_size_mlp")
                if keys.has(name)
            ),
            "intermediate_size",
        )
    )


def _experts(keys: Keys, style: Style, path: str, count: int) -> list[Module]:
    """Return a layer's experts, routed and shared."""
    hidden = keys.size("hidden_size")
    name = "moe_intermediate_size" if keys.has("moe_intermediate_size") else "intermediate_size"
    width = keys.size(name)
    experts = Experts(hidden, count, width, bias=style.expert_bias, router_bias=style.expert_bias)
    modules = experts.modules(path, router=style.router)
    shared = keys.count("shared_intermediate_size", "shared_expert_intermediate_size", default=0)
    many = keys.count("n_shared_experts", default=1 if shared else 0)
    if style.moe == "feed_forward":
        many, shared = 1, width  # Llama 4 has one of the routed ones' size, and no key for it
    if many and (shared or width):
        modules += mlp(f"{path}.shared_experts", hidden, many * (shared or width), shared=True)
    return modules


def _windows(keys: Keys, model_type: str, layers: int) -> list[int | None]:
    """Return the window of each layer, None where it sees the whole context."""
    window = keys.count("sliding_window", default=0) or None
    types = keys.words("layer_types", layers)
    if keys.has("attention_chunk_size"):
        return _chunks(keys, model_type, layers)
    if types is not None:
        kinds = {"full_attention": None, "sliding_attention": window}
        if not set(types) <= set(kinds):
            raise keys.refuse("layer_types", "other kinds than full and sliding attention")
        if "sliding_attention" in types and window is None:
            raise keys.refuse("sliding_window", "the key is missing, and layers have a window")
        return [kinds[kind] for kind in types]
    if keys.flag("use_sliding_window", default=window is not None):
        if model_type not in ("mistral", "mixtral"):
            raise keys.refuse("use_sliding_window", "which layers have the window isn't known")
        return [window] * layers
    return [None] * layers


def _chunks(keys: Keys, model_type: str, layers: int) -> list[int | None]:
    """Return the chunk of each layer of a Llama 4."""
    if model_type != "llama4_text":
        raise keys.refuse("attention_chunk_size", "which layers have chunks isn't known")
    chunk = keys.size("attention_chunk_size")
    return [None if (index + 1) % _FULL_EVERY == 0 else chunk for index in range(layers)]


def _block_sparse(
    keys: Keys, heads: Heads, modules: list[Module], layers: int
) -> tuple[list[Module], list[Cache]]:
    """Add the indexer of MiniMax M3: each KV head reads its best blocks, scored on one index key.

    The shapes are those of vLLM's MiniMax M3: index queries for each head, one index key, their
    norms, and no index values where ``sparse_disable_index_value`` says so.
    """
    sparse = keys.nested("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention", default=False):
        return modules, attention_caches([(heads, None)] * layers)
    on = [flag != 0 for flag in sparse.counts("sparse_attention_freq", layers) or [0] * layers]
    silent = sparse.counts("sparse_disable_index_value", layers) or [0] * layers
    if any(has and not off for has, off in zip(on, silent, strict=True)):
        raise sparse.refuse("sparse_disable_index_value", "index values aren't known")
    dim, queries = sparse.size("sparse_index_dim"), sparse.size("sparse_num_index_heads")
    limit = sparse.size("sparse_topk_blocks") * sparse.size("sparse_block_size")
    sparse.finish(("sparse_init_block", "sparse_local_block", "sparse_score_type"))
    added = list(modules)
    for index in (index for index, has in enumerate(on) if has):
        path = f"layers.{index}.self_attn"
        added += [
            Module(f"{path}.index_q_proj", "indexer", heads.hidden * queries * dim),
            Module(f"{path}.index_k_proj", "indexer", heads.hidden * dim),
            norms(f"{path}.index", 2 * dim),
        ]
    caches = attention_caches([(heads, limit if has else None) for has in on])
    named = [
        replace(cache, name="KV cache of the best blocks") if cache.limit else cache
        for cache in caches
    ]
    if any(on):
        named.append(Cache("indexer keys", sum(on), dim, 1))
    return added, named
