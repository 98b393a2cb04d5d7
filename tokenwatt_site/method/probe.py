"""What a search asks for and what it is told: windows, their verdicts, its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tokenwatt_site.method.window import Phase

Word = Literal["proven", "met", "failed", "no_rate", "undecided"]


@dataclass(frozen=True, slots=True)
class Cut:
    """When a window is given up early: its misses can't come down to what was hoped for any more.

    ``misses`` is the larger of the two miss counts so far, of ``n`` requests with a verdict.
    """

    over: float
    """Misses above this number,"""
    share: float = 0.0
    """and above this share of the requests,"""
    few: int = 0
    """and, of no more requests than this,"""
    few_share: float = 0.0
    """above this share of them."""

    def hit(self, misses: int, n: int) -> bool:
        """Tell whether the window is to be given up."""
        if misses <= self.over or misses <= self.share * n:
            return False
        return n > self.few or misses > self.few_share * n


@dataclass(frozen=True, slots=True)
class Probe:
    """A window to measure."""

    rate_rps: float
    phase: Phase
    window_s: float
    """Its length, stretched already for at least ``min_requests`` requests."""
    warmup_s: float
    min_requests: int
    index: int
    """Its place in the history; names its random draws."""
    tail_s: float | None = None
    """Arrivals go on for this long after the window, then it ends; None: until each request of the
    cohort has its verdict."""
    inject: int = 0
    """Residual requests sent at once at the start of the load: the stationary start."""
    draw: str = "schedule"
    """Purpose of the schedule's seed; "balance/7" is the eighth of several to choose from."""
    cut: Cut | None = None
    """When to give the window up, asked every 10 s of it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One request as a model of the server may know it. Times are s from the start of the load."""

    arrival_s: float
    first_s: float | None
    """First token."""
    last_s: float | None
    """Last token so far."""
    input_tokens: int
    output_tokens: int
    """Asked for; of an injected request, the residual."""
    tokens: int
    """Output tokens so far, or in all."""
    finished: bool
    failed: bool
    injected: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """A window that was measured."""

    probe: Probe
    passed: bool
    valid: bool
    undecided: bool = False
    """It held too few requests for a verdict; it has not passed then."""
    aborted: bool = False
    """It was given up by its cut."""
    n: int = 0
    """Requests of the cohort."""
    miss_ttft: int = 0
    miss_tpot: int = 0
    w0_s: float = 0.0
    """Start of the cohort's arrivals, from the start of the load."""
    w1_s: float = 0.0
    look_s: float = 0.0
    """When the load ended; what was unfinished is judged at that time."""
    records: Sequence[Record] = ()
    """Every request of the load, in the order of its schedule; injected ones come first."""


@dataclass(frozen=True, slots=True)
class Done:
    """The answer of the search."""

    word: Word
    rate_rps: float | None
    """The highest rate at which every confirm window passed; None where there is none."""
    lo_rps: float | None
    """The highest rate at which a window passed and none failed, there or below."""
    hi_rps: float | None
    """The lowest rate at which a window failed."""
    text: str
    invalid: bool = False
    """The same window was invalid twice: the measurement says nothing."""
