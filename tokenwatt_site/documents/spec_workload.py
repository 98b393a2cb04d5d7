"""The spec's workload: lengths, arrivals and what the requests share."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tokenwatt_site.documents.base import Int, Positive, Strict, key, whole

# Bounds far above any use: what lies beyond is a slip, and would cost hours or all the memory.
LONGEST_TOKENS = 2**20
_MOST_LENGTHS = 10_000

Tokens = Annotated[int, Field(gt=0, le=LONGEST_TOKENS), BeforeValidator(whole)]
TokenQuantile = (
    Annotated[int, Field(gt=0, le=LONGEST_TOKENS)]
    | Annotated[float, Field(gt=0, le=LONGEST_TOKENS)]
)


class FixedLength(Strict):
    """Every request has the same number of tokens."""

    fixed: Tokens = key(phase="load")
    """Tokens of every request."""


class LognormalLength(Strict):
    """Lengths drawn from a lognormal distribution."""

    median: TokenQuantile = key(phase="load")
    """Median in tokens."""
    p90: TokenQuantile = key(phase="load")
    """90th percentile in tokens, above the median."""
    max: Tokens | None = key(None, phase="load")
    """Lengths above are cut to this; null means 8 x the median."""


class EmpiricalLength(Strict):
    """Lengths drawn from a list, such as those of a log."""

    values: Annotated[list[Tokens], Field(min_length=1, max_length=_MOST_LENGTHS)] = key(
        phase="load"
    )
    """Lengths in tokens, each drawn as often as it stands here."""
    weights: Annotated[list[Positive], Field(min_length=1, max_length=_MOST_LENGTHS)] | None = key(
        None, phase="load"
    )
    """How often each value is drawn, as a share of the sum; null means equally often."""


Length = FixedLength | LognormalLength | EmpiricalLength


class SharedTokens(Strict):
    """A common beginning of the same length in every prompt, such as a system prompt."""

    tokens: Tokens = key(phase="load")
    """Tokens that all prompts of a window begin with."""


class SharedShare(Strict):
    """A common beginning that is the same share of every prompt."""

    share: Annotated[float, Field(gt=0, lt=1)] = key(phase="load")
    """Share of each prompt that it has in common with the others of its window."""


class SpecWorkload(Strict):
    """What the requests look like."""

    trace: str | None = key("chat-mix-v1", phase="load")
    """A workload by name, or the path of a recorded trace from the spec's folder (Azure LLM CSV,
    Mooncake JSONL, JSONL of t_s, input_tokens, output_tokens); null uses input_tokens and
    output_tokens."""
    timestamps: Literal["poisson", "rescaled", "kept"] = key("poisson", phase="load")
    """Arrivals of a recorded trace. poisson: its lengths, in pairs drawn at random, at Poisson
    arrivals of each rate; rescaled: its order, bursts and shared blocks, the time stretched to each
    rate; kept: its own times, at the one rate that it has."""
    input_tokens: Length | None = key(None, phase="load")
    """Prompt lengths, with `trace: null`: {fixed: n}, {median: n, p90: n, max: n} or {values: [n,
    …], weights: [w, …]}."""
    output_tokens: Length | None = key(None, phase="load")
    """Answer lengths, with `trace: null`, in the same forms."""
    shared_prefix: SharedTokens | SharedShare | None = key(None, phase="load")
    """A beginning that all prompts of a window have in common: {tokens: n} or {share: x}; null
    shares nothing."""
    seed: Int = key(0, phase="load")
    """Seed of every random draw: arrivals, lengths, prompts. The same seed sends the same load."""
