"""What a document says of memory bandwidth utilisation: every term that it was made of."""

from tokenwatt_site.documents.base import NonNegative, Positive, PositiveInt, Sha256, Strict


class MbuTerm(Strict):
    """One addend of the bytes that a step reads."""

    name: str
    """What is read: a group of weights, or a cache."""
    dtype: str
    formula: str
    bytes: NonNegative


class MbuReport(Strict):
    """What ``mbu_pct`` was computed from; docs/mbu.md has the formula."""

    tpot_ms: Positive
    """Time per output token, token-weighted."""
    batch: NonNegative
    """Sequences that one replica decodes at once, by Little's law."""
    ctx_tokens: NonNegative
    """Context of each."""
    distinct_experts: NonNegative | None = None
    """Experts of a layer that a step reads, expected; null without experts."""
    weight_bytes: NonNegative
    """Weights that a step of one replica reads."""
    kv_bytes: NonNegative
    """Caches that it reads."""
    dtypes: dict[str, str]
    """Data type of each group."""
    peak_tbs: Positive
    """Rated bandwidth of one accelerator, TB/s."""
    accelerators: PositiveInt
    """Of all replicas."""
    formula: str
    """Version of the formula."""
    config_sha256: Sha256
    """Of the model's config.json."""
    terms: list[MbuTerm]
