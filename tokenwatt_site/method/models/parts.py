"""The parts that models share: attention, MLP, experts, embeddings."""

from dataclasses import dataclass

from tokenwatt_site.method.models.geometry import Cache, Group, Module
from tokenwatt_site.method.models.keys import MOST_LAYERS, Keys

MOST_EXPERTS = 65_536


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention with keys and values per group of queries."""

    hidden: int
    queries: int
    keys: int
    """Key and value heads."""
    dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    norms: int = 0
    """Parameters of the norms on queries and keys."""
    sinks: bool = False
    gate: bool = False
    """The query projection has as much again, a gate on the output."""
    shared_value: bool = False
    """Values are the keys' projection: no matrix of their own."""

    def modules(self, path: str) -> list[Module]:
        """Return the matrices under ``path``."""
        wide, narrow = self.queries * self.dim * (1 + self.gate), self.keys * self.dim
        bias = int(self.qkv_bias)
        found = [
            Module(f"{path}.q_proj", "attention", wide * (self.hidden + bias)),
            Module(f"{path}.k_proj", "attention", narrow * (self.hidden + bias)),
        ]
        if not self.shared_value:
            found.append(Module(f"{path}.v_proj", "attention", narrow * (self.hidden + bias)))
        out = self.queries * self.dim * self.hidden + self.hidden * self.out_bias
        found.append(Module(f"{path}.o_proj", "attention", out))
        if vectors := self.norms + self.queries * self.sinks:
            found.append(Module(f"{path}.norm", "norms", vectors, "vector"))
        return found

    @property
    def values(self) -> int:
        """Return the numbers that a token leaves in the cache of a layer."""
        return 2 * self.keys * self.dim


@dataclass(frozen=True, slots=True)
class Experts:
    """A layer of routed experts."""

    hidden: int
    """Width that the experts work at."""
    count: int
    width: int
    matrices: int = 3
    """Of an expert: gate, up and down; 2 without a gate."""
    bias: bool = False
    router_bias: bool = False

    def modules(self, path: str, *, router: str = "gate", router_hidden: int = 0) -> list[Module]:
        """Return the router and all experts together."""
        wide = router_hidden or self.hidden
        inner = (self.matrices - 1) * self.width + self.hidden
        each = self.matrices * self.hidden * self.width + inner * self.bias
        return [
            Module(f"{path}.{router}", "router", self.count * (wide + self.router_bias)),
            Module(f"{path}.experts", "experts", self.count * each),
        ]


def mlp(
    path: str, hidden: int, width: int, *, gated: bool = True, shared: bool = False
) -> list[Module]:
    """Return the two or three matrices of an MLP."""
    names = ("gate_proj", "up_proj", "down_proj") if gated else ("up_proj", "down_proj")
    group: Group = "shared experts" if shared else "MLP"
    return [Module(f"{path}.{name}", group, hidden * width) for name in names]


def norms(path: str, params: int) -> Module:
    """Return the norms of a layer."""
    return Module(f"{path}.norm", "norms", params, "vector")


def ends(keys: Keys, hidden: int, head: str = "lm_head", *, tied: bool = False) -> list[Module]:
    """Return the embedding, the last norm and the matrix that makes logits."""
    vocab = keys.size("vocab_size")
    tied = keys.flag("tie_word_embeddings", default=tied)
    return [
        Module("embed_tokens", "embedding", vocab * hidden, "vector", read=0),
        norms("", hidden),
        Module(head, "lm_head", 0 if tied else vocab * hidden, read=vocab * hidden),
    ]


def layer_count(keys: Keys) -> int:
    """Return the number of layers."""
    layers = keys.size("num_hidden_layers")
    if layers > MOST_LAYERS:
        raise keys.refuse("num_hidden_layers", f"more than {MOST_LAYERS:,} layers")
    return layers


def routed(keys: Keys) -> tuple[int, int]:
    """Return how many experts there are and how many a token takes; 0 and 0 without any.

    Raises:
        UsageError: experts and no number of them a token, or more than there are.
    """
    names = ("num_experts_per_tok", "experts_per_token", "top_k_experts")
    experts = keys.count("n_routed_experts", "num_local_experts", "num_experts", default=0)
    top_k = keys.count(*names, default=0)
    if experts > MOST_EXPERTS:
        raise keys.refuse("num_experts", f"more than {MOST_EXPERTS:,} experts")
    if bool(experts) != bool(top_k) or top_k > experts:
        named = next((name for name in names if keys.has(name)), names[0])
        raise keys.refuse(named, f"{top_k} of {experts} experts a token")
    return experts, top_k


def sparse_layers(keys: Keys, layers: int) -> list[bool]:
    """Return which layers have routed experts, by every key that says so."""
    first = keys.count("first_k_dense_replace", default=0)
    step = keys.size("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    dense = set(keys.counts("mlp_only_layers") or ())
    found = [
        index >= first and (index + 1) % step == 0 and index not in dense for index in range(layers)
    ]
    frequency = keys.raw("moe_layer_freq")
    if isinstance(frequency, list):
        listed = keys.counts("moe_layer_freq", layers) or []
        found = [sparse and listed[index] == 1 for index, sparse in enumerate(found)]
    else:
        keys.only("moe_layer_freq", 1)
    types = keys.words("mlp_layer_types", layers)
    if types is not None:
        if not set(types) <= {"dense", "sparse"}:
            raise keys.refuse("mlp_layer_types", "other kinds than dense and sparse")
        found = [kind == "sparse" for kind in types]
    return found


def attention_caches(layers: list[tuple[Heads, int | None]]) -> list[Cache]:
    """Return the KV caches of layers, those that are alike together.

    Args:
        layers: of each layer its heads and its window, None where it sees all.
    """
    found: list[Cache] = []
    for heads, window in dict.fromkeys(layers):
        name = "KV cache" if window is None else "KV cache in the window"
        found.append(
            Cache(name, layers.count((heads, window)), heads.values, heads.keys, limit=window)
        )
    return found
