"""The sizes of a model: its matrices and what one token of context leaves in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Group = Literal[
    "embedding",
    "attention",
    "linear attention",
    "indexer",
    "compressor",
    "hyper-connections",
    "MLP",
    "router",
    "experts",
    "shared experts",
    "norms",
    "lm_head",
]
Kind = Literal["linear", "vector"]


@dataclass(frozen=True, slots=True)
class Module:
    """One matrix, or several that lie under one name."""

    path: str
    """Its name in the checkpoint, without the prefix of the whole model."""
    group: Group
    params: int
    """Parameters of its own; all experts of a layer together."""
    kind: Kind = "linear"
    """Vectors, convolutions and embeddings are never quantised by name of a whole model."""
    read: int | None = None
    """Parameters that a step reads, where not all: none of an embedding, which is a gather, and
    the embedding's where the lm_head shares it."""
    dtype: str = ""
    """A data type that the architecture fixes."""

    @property
    def read_params(self) -> int:
        """Return the parameters that a step reads; of experts, if it reads all of them."""
        return self.params if self.read is None else self.read


@dataclass(frozen=True, slots=True)
class Cache:
    """What a sequence keeps in memory, in layers of one kind."""

    name: str
    layers: int
    values: int
    """Numbers of one entry in one layer."""
    heads: int
    """Heads that the entry can be split over; with more accelerators each holds a copy."""
    stride: int = 1
    """Tokens of an entry."""
    limit: int | None = None
    """Entries that are read at most: a window, the best of an indexer."""
    state: bool = False
    """One entry whatever the context, read and written back in each step."""
    dtype: str = ""
    """A data type that the architecture fixes; else that of the KV cache."""

    def entries(self, ctx_tokens: float) -> float:
        """Return how many entries a step touches at a context of ``ctx_tokens`` tokens."""
        if self.state:
            return 2.0
        whole = ctx_tokens / self.stride
        return whole if self.limit is None else min(whole, float(self.limit))

    @property
    def formula(self) -> str:
        """Return how the entries follow from the context, in words."""
        if self.state:
            return "read and written"
        whole = "ctx" if self.stride == 1 else f"ctx / {self.stride}"
        return whole if self.limit is None else f"min({whole}, {self.limit})"


@dataclass(frozen=True, slots=True)
class Geometry:
    """A model's language part; towers for images and layers of a draft model are left out."""

    model_type: str
    layers: int
    modules: tuple[Module, ...]
    caches: tuple[Cache, ...]
    experts: int
    """Routed experts of a layer; 0 without."""
    top_k: int
    """Experts a token."""
    dtype: str
    """Data type of what isn't quantised; empty where the config names none."""
    used: Mapping[str, Any]
    """Keys that were read, as they were."""
    ignored: tuple[str, ...]
    """Harmless keys."""

    @property
    def params(self) -> int:
        """Return all parameters."""
        return sum(module.params for module in self.modules)

    def params_of(self, *groups: Group) -> int:
        """Return the parameters of some groups."""
        return sum(module.params for module in self.modules if module.group in groups)

    @property
    def moe_layers(self) -> int:
        """Return the layers with routed experts."""
        return sum(module.group == "experts" for module in self.modules)
