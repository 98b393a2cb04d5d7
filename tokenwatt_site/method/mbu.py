"""Model bandwidth utilisation: the bytes that a decode step must read, over what could be read.

    MBU = replicas x bytes per step / (TPOT x tokens accepted per step) / (bandwidth x accelerators)

Bytes per step are the weights outside the experts, those of the experts that a step's tokens touch,
and the caches of the sequences in the batch. A draft model's own bytes aren't counted, nor small
matrices that tensor parallelism copies to each accelerator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenwatt_site.method.models.geometry import Cache, Group
from tokenwatt_site.method.models.model import Model

if TYPE_CHECKING:
    from tokenwatt_site.method.models.precision import Precision

FORMULA_VERSION = "1"
MOST_PCT = 100.0
"""More can't be read: an input is wrong."""
_ATTENTION: tuple[Group, ...] = ("attention", "linear attention", "indexer", "compressor")
"""Weights that each of several data-parallel copies of attention reads for itself."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the model is served by."""

    peak_tbs: float
    """Rated memory bandwidth of one accelerator, TB/s."""
    replicas: int = 1
    tensor_parallel: int = 1
    pipeline_parallel: int = 1

    @property
    def accelerators(self) -> int:
        """Return how many accelerators all replicas have."""
        return self.replicas * self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, slots=True)
class Step:
    """A decode step of one replica, on average."""

    batch: float
    """Sequences that decode."""
    ctx_tokens: float
    """Tokens of context of each."""
    tpot_ms: float
    """Time per output token of a sequence, token-weighted."""
    verified: float = 1.0
    """Tokens of a sequence in one step: 1, more with a draft."""
    accepted: float = 1.0
    """Tokens that a sequence gets of one step."""
    prefill_tokens: float = 0.0
    """Prompt tokens in those steps that have any."""
    prefill_share: float = 1.0
    """Share of the steps that have prompt tokens."""


@dataclass(frozen=True, slots=True)
class Term:
    """One addend of the bytes per step."""

    name: str
    formula: str
    bytes: float
    precision: str
    source: str
    """Where the precision was read."""
    cache: bool = False


@dataclass(frozen=True, slots=True)
class Mbu:
    """The utilisation and what it was made of."""

    pct: float
    step: Step
    machine: Machine
    terms: tuple[Term, ...]
    distinct_experts: float | None
    """Experts of a layer that a step reads, expected; None without experts."""

    @property
    def weight_bytes(self) -> float:
        """Return the weights that a step reads."""
        return sum(term.bytes for term in self.terms if not term.cache)

    @property
    def kv_bytes(self) -> float:
        """Return the caches that a step reads."""
        return sum(term.bytes for term in self.terms if term.cache)

    @property
    def possible(self) -> bool:
        """Tell whether so much can be read at all."""
        return self.pct <= MOST_PCT


def distinct_experts(experts: int, top_k: int, tokens: float) -> float:
    """Return how many of a layer's experts ``tokens`` tokens are expected to touch.

    E (1 - (1 - k/E)^T), each token choosing k of E independently and evenly: an upper bound, as
    uneven routers touch up to a fifth fewer.
    """
    missed: float = (1 - top_k / experts) ** tokens
    return experts * (1 - missed)


def mbu(model: Model, step: Step, machine: Machine) -> Mbu:
    """Return the utilisation of a step's bandwidth.

    Args:
        model: whose bytes are read.
        step: what one replica does in a step.
        machine: the accelerators of all replicas.
    """
    shape = model.geometry
    distinct = _distinct(shape.experts, shape.top_k, step) if shape.moe_layers else None
    terms = (*_weights(model, machine, distinct), *_caches(model, step, machine))
    seconds = step.tpot_ms / 1000 * step.accepted
    rate = machine.replicas * sum(term.bytes for term in terms) / seconds
    pct = 100 * rate / (machine.peak_tbs * 1e12 * machine.accelerators)
    return Mbu(pct, step, machine, terms, distinct)


def _distinct(experts: int, top_k: int, step: Step) -> float:
    """Return the mean over steps with and without prompt tokens."""
    decode = step.batch * step.verified
    without = distinct_experts(experts, top_k, decode)
    if not step.prefill_tokens:
        return without
    mixed = distinct_experts(experts, top_k, decode + step.prefill_tokens)
    return (1 - step.prefill_share) * without + step.prefill_share * mixed


def _weights(model: Model, machine: Machine, distinct: float | None) -> list[Term]:
    """Return a term for each group and precision."""
    shape = model.geometry
    copies = machine.tensor_parallel / (model.attention_tp or machine.tensor_parallel)
    params: dict[tuple[Group, Precision, str], int] = {}
    for module in shape.modules:
        if module.read_params:
            key = (module.group, *model.precision(module))
            params[key] = params.get(key, 0) + module.read_params
    found: list[Term] = []
    for (group, precision, source), count in params.items():
        formula, times = f"{count:,} × {precision.bytes:.6g} B", 1.0
        if group == "experts" and distinct is not None:
            times = distinct / shape.experts
            formula = f"{distinct:.1f} of {shape.experts} experts × {formula}"
        elif group in _ATTENTION and copies > 1:
            times = copies
            formula = f"{copies:g} copies × {formula}"
        total = count * precision.bytes * times
        found.append(Term(group, formula, total, precision.name, source))
    return found


def _caches(model: Model, step: Step, machine: Machine) -> list[Term]:
    split = model.attention_tp or machine.tensor_parallel
    return [_cache(model, cache, step, split) for cache in model.geometry.caches]


def _cache(model: Model, cache: Cache, step: Step, split: int) -> Term:
    """Return what a batch reads of one kind of cache."""
    precision, source = model.cached(cache)
    copies = max(1.0, split / cache.heads)
    entries = cache.entries(step.ctx_tokens)
    total = step.batch * cache.layers * entries * cache.values * precision.bytes * copies
    parts = [
        f"{step.batch:.4g} sequences",
        f"{cache.layers} layers",
        cache.formula,
        f"{cache.values:,} × {precision.bytes:.6g} B",
    ]
    if copies > 1:
        parts.append(f"{copies:g} copies")
    return Term(cache.name, " × ".join(parts), total, precision.name, source, cache=True)


def dtypes(terms: Sequence[Term]) -> dict[str, str]:
    """Return the precision of each group; several of one group joined by commas."""
    found: dict[str, list[str]] = {}
    for term in terms:
        found.setdefault(term.name, []).append(term.precision)
    return {name: ", ".join(dict.fromkeys(names)) for name, names in found.items()}


def block(result: Mbu, sha256: str) -> dict[str, Any]:
    """Return the keys of ``documents.run.MbuReport``.

    Args:
        result: the utilisation.
        sha256: of the model's config.json.
    """
    return {
        "tpot_ms": result.step.tpot_ms,
        "batch": result.step.batch,
        "ctx_tokens": result.step.ctx_tokens,
        "distinct_experts": result.distinct_experts,
        "weight_bytes": result.weight_bytes,
        "kv_bytes": result.kv_bytes,
        "dtypes": dtypes(result.terms),
        "peak_tbs": result.machine.peak_tbs,
        "accelerators": result.machine.accelerators,
        "formula": FORMULA_VERSION,
        "config_sha256": sha256,
        "terms": [
            {
                "name": term.name,
                "dtype": term.precision,
                "formula": term.formula,
                "bytes": term.bytes,
            }
            for term in result.terms
        ],
    }
