"""What an adaptive search publishes of itself beside its answer."""

from dataclasses import dataclass, field

from tokenwatt_site.method.balance import Balanced


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The fitted twin. Times in s, at the server's speed; see ``TwinParams`` for the formula."""

    fixed_s: float
    sequence_s: float
    root_s: float
    prefill_s: float
    token_s: float
    square_s: float
    budget_tokens: int
    max_sequences: int | None
    """None: no limit was seen."""


@dataclass(slots=True)
class SearchFacts:
    """What is known of the boundary, and how it came to be known; None: not known (yet)."""

    est_rps: float | None = None
    """The boundary by the twin."""
    error: float | None = None
    """Its standard error over it."""
    interval_rps: tuple[float, float] | None = None
    """Its 95 % interval."""
    bound_by: str | None = None
    """ttft or tpot."""
    candidates: int = 0
    """Rates that were taken to confirm windows."""
    climbs: int = 0
    """How many of them were given up for a higher rate."""
    restarts: int = 0
    """How many of them were given up because the server's speed had changed."""
    drift: bool = False
    """The server's speed changed while it was measured."""
    kappa: float | None = None
    corr: float | None = None
    """Of block means of ln(score), server and twin on the same schedule."""
    resid_se: float | None = None
    """Standard error of ln(score) between server and twin."""
    twin: str = "unused"
    """used or unused: what the confirmed rate rests on."""
    model: ModelFacts | None = None
    balanced: list[Balanced] = field(default_factory=list)
    """One for each window with a balanced schedule."""
    stopped: str | None = None
    """Why the twin is not used, if it isn't."""
