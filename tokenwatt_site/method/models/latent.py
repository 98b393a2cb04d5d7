"""Models whose keys and values are one latent vector: DeepSeek V2 to V4, Kimi K2, GLM 5.

Sources of the shapes: DeepSeek's papers and the model files of huggingface/transformers
(deepseek_v3, deepseek_v32, glm_moe_dsa, deepseek_v4).
"""

from dataclasses import dataclass

from tokenwatt_site.method.models.geometry import Cache, Module
from tokenwatt_site.method.models.keys import Keys
from tokenwatt_site.method.models.parts import (
    Experts,
    ends,
    layer_count,
    mlp,
    norms,
    routed,
    sparse_layers,
)

INDEX_DTYPE = "fp8_index"
"""vLLM keeps an indexer's keys in FP8 with a 4-byte scale for 128 of them, whatever the KV cache
has: that of DeepSeek V3.2 and, unless FP4 is asked for, of V4."""

MLA = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa")
V4 = ("deepseek_v4", "deepseek_ref")
_CSA_MOST = 16
"""Layers that compress more than that read all of their entries: no indexer."""


@dataclass(frozen=True, slots=True)
class _Latent:
    """The sizes of multi-head latent attention."""

    hidden: int
    heads: int
    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int

    def modules(self, path: str) -> list[Module]:
        wide = self.heads * (self.nope + self.rope)
        query = (
            [
                Module(f"{path}.q_a_proj", "attention", self.hidden * self.q_rank),
                Module(f"{path}.q_b_proj", "attention", self.q_rank * wide),
            ]
            if self.q_rank
            else [Module(f"{path}.q_proj", "attention", self.hidden * wide)]
        )
        down = self.hidden * (self.kv_rank + self.rope)
        up = self.kv_rank * self.heads * (self.nope + self.value)
        return [
            *query,
            Module(f"{path}.kv_a_proj_with_mqa", "attention", down),
            Module(f"{path}.kv_b_proj", "attention", up),
            Module(f"{path}.o_proj", "attention", self.heads * self.value * self.hidden),
            norms(path, self.q_rank + self.kv_rank),
        ]


def latent(keys: Keys) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a model of ``MLA``."""
    layers = layer_count(keys)
    sizes = _Latent(
        keys.size("hidden_size"),
        keys.size("num_attention_heads"),
        keys.count("q_lora_rank", default=0),
        keys.size("kv_lora_rank"),
        keys.size("qk_nope_head_dim"),
        keys.size("qk_rope_head_dim"),
        keys.size("v_head_dim"),
    )
    keys.off("attention_bias")
    keys.spare("num_key_value_heads", "head_dim")  # of the form that isn't compressed
    modules = ends(keys, sizes.hidden)
    sparse, topk = sparse_layers(keys, layers), keys.count("index_topk", default=0)
    experts, _ = routed(keys)
    for index in range(layers):
        path = f"layers.{index}"
        modules += sizes.modules(f"{path}.self_attn")
        modules.append(norms(path, 2 * sizes.hidden))
        if topk:
            modules += _indexer(keys, f"{path}.self_attn.indexer", sizes)
        if experts and sparse[index]:
            modules += _moe(keys, f"{path}.mlp", experts)
        else:
            modules += mlp(f"{path}.mlp", sizes.hidden, keys.size("intermediate_size"))
    values = sizes.kv_rank + sizes.rope
    if not topk:
        return modules, [Cache("latent KV cache", layers, values, 1)]
    if set(keys.words("indexer_types", layers) or ["full"]) != {"full"}:
        raise keys.refuse("indexer_types", "other kinds than full")
    index_dim = keys.size("index_head_dim")
    return modules, [
        Cache("latent KV cache of the best tokens", layers, values, 1, limit=topk),
        Cache("indexer keys", layers, index_dim, 1, dtype=INDEX_DTYPE),
    ]


def _indexer(keys: Keys, path: str, sizes: _Latent) -> list[Module]:
    heads, dim = keys.size("index_n_heads"), keys.size("index_head_dim")
    return [
        Module(f"{path}.wq_b", "indexer", sizes.q_rank * heads * dim),
        Module(f"{path}.wk", "indexer", sizes.hidden * dim),
        Module(f"{path}.weights_proj", "indexer", sizes.hidden * heads, "vector"),
        norms(path, 2 * dim),
    ]


def _moe(keys: Keys, path: str, count: int) -> list[Module]:
    hidden, width = keys.size("hidden_size"), keys.size("moe_intermediate_size")
    modules = Experts(hidden, count, width, router_bias=True).modules(path)
    shared = keys.count("n_shared_experts", default=0)
    if shared:
        modules += mlp(f"{path}.shared_experts", hidden, shared * width, shared=True)
    return modules


def compressed(keys: Keys) -> tuple[list[Module], list[Cache]]:
    """Return the matrices and caches of a DeepSeek V4.

    One KV head of ``head_dim`` is key and value. Each layer sees a window; with a compress ratio m
    it also has an entry for every m tokens: the best ``index_topk`` of them where an indexer scores
    them (small m), all of them where m is large.
    """
    layers, hidden = layer_count(keys), keys.size("hidden_size")
    dim = keys.size("head_dim")
    keys.only("num_key_value_heads", 1)
    keys.off("attention_bias")
    ratios = keys.counts("compress_ratios", layers)
    if ratios is None:
        raise keys.refuse("compress_ratios", "a whole number for each layer is needed")
    modules = ends(keys, hidden, "head")
    streams = keys.size("hc_mult", default=1)
    experts, _ = routed(keys)
    for index, ratio in enumerate(ratios):
        path = f"layers.{index}"
        modules += _v4_attention(keys, f"{path}.attn", hidden, dim)
        modules += _v4_compressor(keys, f"{path}.attn", hidden, ratio)
        modules += _moe(keys, f"{path}.ffn", experts)
        modules.append(norms(path, 2 * hidden))
        mixes = 2 * (2 + streams) * streams * streams * hidden
        modules.append(Module(f"{path}.hc", "hyper-connections", mixes, "vector", dtype="fp32"))
    return modules, _v4_caches(keys, dim, ratios)


def _v4_attention(keys: Keys, path: str, hidden: int, dim: int) -> list[Module]:
    heads, rank = keys.size("num_attention_heads"), keys.size("q_lora_rank")
    groups, out = keys.size("o_groups"), keys.size("o_lora_rank")
    keys.size("qk_rope_head_dim")
    return [
        Module(f"{path}.wq_a", "attention", hidden * rank),
        Module(f"{path}.wq_b", "attention", rank * heads * dim),
        Module(f"{path}.wkv", "attention", hidden * dim),
        Module(f"{path}.wo_a", "attention", heads * dim * out),
        Module(f"{path}.wo_b", "attention", groups * out * hidden),
        norms(path, rank + dim + heads),
    ]


def _v4_compressor(keys: Keys, path: str, hidden: int, ratio: int) -> list[Module]:
    """Return what makes a layer's compressed entries, and the indexer that picks of them."""
    if not ratio:
        return []
    dim = keys.size("head_dim")
    if ratio > _CSA_MOST:
        return [Module(f"{path}.compressor", "compressor", 2 * hidden * dim, "vector")]
    heads, small = keys.size("index_n_heads"), keys.size("index_head_dim")
    scorer = keys.size("q_lora_rank") * heads * small + hidden * heads
    return [
        Module(f"{path}.compressor", "compressor", 4 * hidden * dim, "vector"),
        Module(f"{path}.indexer.compressor", "indexer", 4 * hidden * small, "vector"),
        Module(f"{path}.indexer.wq_b", "indexer", scorer),
    ]


def _v4_caches(keys: Keys, dim: int, ratios: list[int]) -> list[Cache]:
    window, topk = keys.size("sliding_window"), keys.size("index_topk")
    small = keys.size("index_head_dim")
    caches = [Cache("KV cache in the window", len(ratios), dim, 1, limit=window)]
    for ratio in sorted(set(ratios) - {0}):
        layers = ratios.count(ratio)
        if ratio > _CSA_MOST:
            caches.append(Cache("compressed KV cache", layers, dim, 1, stride=ratio))
            continue
        best = "best compressed KV entries"
        caches.append(Cache(best, layers, dim, 1, stride=ratio, limit=topk))
        keys_of = Cache("indexer keys", layers, small, 1, stride=ratio, dtype=INDEX_DTYPE)
        caches.append(keys_of)
    return caches
