"""The parts of a run document that say what windows came to: one, or several pooled."""

from typing import Literal

from tokenwatt_site.documents.base import (
    Count,
    NonNegative,
    Number,
    Percent,
    Positive,
    Stamp,
    Strict,
)
from tokenwatt_site.documents.spec import Scope


class Dist(Strict):
    """A latency distribution over the pooled cohorts, ms. Null means unknown or without bound."""

    p50: NonNegative | None = None
    p90: NonNegative | None = None
    p95: NonNegative | None = None
    p99: NonNegative | None = None
    mean: NonNegative | None = None
    n: Count
    censored_over: NonNegative | None = None
    """Where p99 has no bound: the time, in ms, that it is known to exceed."""
    interval: list[Number] | None = None
    """Interval of p99 over repeats, ms."""
    cdf: list[list[Number]] | None = None
    """Pairs of (ms, share in percent) of the distribution, for the chart."""


class Counts(Strict):
    """Requests of the cohort: sent = ok + failed + unfinished."""

    sent: Count
    ok: Count
    failed: Count
    unfinished: Count
    reasons: dict[str, Count] = {}
    """Failed requests by reason."""
    miss_ttft: Count | None = None
    miss_tpot: Count | None = None


class MeterCheck(Strict):
    """The second reading beside the published one: samples beside a counter, or a second meter."""

    method: str
    joules: NonNegative
    difference_pct: Number
    verdict: Literal["agree", "warn", "disagree"]


class HostEnergy(Strict):
    """The part of one of several hosts."""

    name: str
    role: str = ""
    joules: NonNegative | None
    clock_offset_ms: Number | None = None
    """Its wall clock less the measuring host's when the run began."""
    clock_error_ms: NonNegative | None = None
    """Bound of how far the times of its readings may be off."""


class Energy(Strict):
    """Energy of the windows at the reported rate, primary meter."""

    scope: Scope
    method: Literal["counter", "sampled"]
    joules: NonNegative | None
    seconds: NonNegative
    valid: bool
    reasons: list[str] = []
    """Codes of what makes the figure invalid or doubtful."""
    j_per_output_token: NonNegative | None = None
    net_j_per_output_token: NonNegative | None = None
    """What is left of it without the power that the machine draws anyway."""
    idle_w: NonNegative | None = None
    """Mean power with the server up and no load, before the first window and after the last."""
    idle_s: NonNegative | None = None
    """How long that was read."""
    idle_drift_w: Number | None = None
    """After less before."""
    samples: Count | None = None
    gaps: Count | None = None
    check: MeterCheck | None = None
    uncertainty: dict[str, Number] | None = None
    """Parts of the uncertainty of J/token, percent."""
    node_minus_boards_w: Number | None = None
    hosts: list[HostEnergy] | None = None
    """Where several hosts serve together."""
    roles: dict[str, NonNegative] | None = None
    """Joules by the hosts' roles."""


class MeterReport(Strict):
    """What a further meter says of the same windows."""

    name: str
    """The adapter."""
    source: str
    """The meter in words."""
    scope: Scope
    sampling_hz: Positive
    energy: Energy
    difference_pct: Number | None = None
    """Against the primary meter, percent of it; only where both include the same."""
    verdict: Literal["agree", "warn", "disagree"] | None = None


class Client(Strict):
    """What the load generator says of itself."""

    lag_p99_ms: NonNegative | None = None
    lag_max_ms: NonNegative | None = None
    gap_cv: NonNegative | None = None
    """Standard deviation of the gaps between sends over their mean; 1 for Poisson."""
    dispersion: NonNegative | None = None
    """Variance of the sends in equal bins over their mean; 1 for Poisson."""
    cached_pct: NonNegative | None = None
    """Prompt tokens that the server took from a cache, by its own count."""
    planned_cached_pct: NonNegative | None = None
    """Prompt tokens that earlier prompts of the load begin with too, by the workload's plan."""
    cpu_share: NonNegative | None = None
    """CPU time over wall time, of one core; of the busiest of several processes."""
    loop_stall_max_ms: NonNegative | None = None
    """The longest time for which it handled nothing else."""
    clock_drift_pct: Number | None = None
    """How far the wall clock went from the monotonic one."""
    workers: Count | None = None
    """Processes that played the load."""
    held_events_s: NonNegative | None = None
    """Token events a second that a self-test showed it to hold; null where the load was too light
    to need one."""


class ServerSaid(Strict):
    """What the server says of itself in a window, by its Prometheus page; null: it doesn't say."""

    readings: Count
    running_mean: NonNegative | None = None
    running_max: NonNegative | None = None
    """Requests in the batch."""
    waiting_mean: NonNegative | None = None
    waiting_max: NonNegative | None = None
    """Requests in the queue."""
    kv_max_pct: NonNegative | None = None
    """Share of the memory for context in use."""
    preemptions: Count | None = None
    """Sequences sent back to the queue."""
    prompt_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_pct: NonNegative | None = None
    """Prompt tokens that came from a cache."""
    ttft_p99_ms: list[NonNegative] | None = None
    """Bounds of its histogram between which p99 lies, counted from when it has the request."""
    tpot_p99_ms: list[NonNegative] | None = None


class WindowRecord(Strict):
    """One measured window."""

    index: Count
    phase: Literal["search", "confirm", "rate"]
    rate_rps: Positive
    passed: bool
    valid: bool
    reasons: list[str] = []
    """Codes of what makes the window invalid."""
    started: Stamp | None = None
    window_s: Positive
    warmup_s: NonNegative
    counts: Counts
    ttft_p99_ms: NonNegative | None = None
    tpot_p99_ms: NonNegative | None = None
    ttft_p50_ms: NonNegative | None = None
    tpot_p50_ms: NonNegative | None = None
    output_tok_s: NonNegative
    input_tok_s: NonNegative
    goodput_tok_s: NonNegative
    goodput_rps: NonNegative
    slo_attainment_pct: Percent | None
    mean_concurrency: NonNegative | None = None
    energy: Energy | None = None
    meters: list[MeterReport] | None = None
    client: Client | None = None
    throttle_counts: dict[str, Count] = {}
    tail_s: NonNegative | None = None
    """The load ended so long after the window: what was unfinished is judged by what it had so far,
    for the search alone. Null: it went on for the verdicts."""
    aborted: bool = False
    """Given up early: its misses were too many for a pass."""
    inject: Count = 0
    """Requests sent at the start to stand for what a steady server has in flight."""
    stationary: bool | None = None
    """Whether requests in flight showed no trend; null where the window was too short to tell."""
    server: ServerSaid | None = None


class Series(Strict):
    """Time series of one confirm window, seconds from its start."""

    t_s: list[Number]
    power_w: list[Number | None] | None = None
    in_flight: list[Number] | None = None
    window_s: Positive
    index: Count
