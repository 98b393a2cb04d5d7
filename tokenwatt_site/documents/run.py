"""The run document: what measuring and publishing share. The published seed is its contract.

Every key that the seed has keeps its name, place and type; whatever is measured may be null, with
the reason in ``missing``. Keys that the seed lacks are optional.
"""

from typing import Annotated, Literal

from pydantic import Field

from tokenwatt_site.documents.base import (
    Count,
    Date,
    NonNegative,
    Number,
    Percent,
    Positive,
    PositiveInt,
    Sha256,
    Slug,
    Stamp,
    Strict,
)
from tokenwatt_site.documents.mbu import MbuReport
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.window import (
    Client,
    Counts,
    Dist,
    Energy,
    MeterReport,
    Series,
    WindowRecord,
)

SCHEMA_VERSION = "1"
METHOD_VERSION = "1"

Status = Literal["draft", "demo", "imported", "published", "superseded", "retracted"]
VerdictWord = Literal["proven", "met", "failed", "undecided", "no_rate"]


class Hardware(Strict):
    """The accelerators that were measured."""

    vendor: str
    accelerator: str
    count: Count
    rated_bw_tbs_per_gpu: Positive | None = None
    """TB/s of one accelerator."""
    driver: str = ""
    host: str = ""
    uuids: list[str] | None = None
    power_limit_w: Positive | None = None
    """Enforced power limit of one accelerator."""


class Software(Strict):
    """The engine that was measured."""

    engine: str
    engine_version: str = ""
    kernels: str = ""


class Model(Strict):
    """The model that was served, for readers."""

    name: str
    shape: str = ""
    quantization: str = ""
    parallelism: str = ""


class Slo(Strict):
    """The latency promise."""

    ttft_p99_ms: Positive
    tpot_p99_ms: Positive


class Lengths(Strict):
    """Tokens of a request."""

    input_tokens: NonNegative
    output_tokens: NonNegative


class Workload(Strict):
    """The workload, for readers."""

    trace: str | None
    input_tokens: str
    output_tokens: str
    arrival: str
    seed: int | None = None
    timestamps: Literal["poisson", "rescaled", "kept"] | None = None
    """How the arrivals of a recorded trace were used."""
    sha256: Sha256 | None = None
    """Of the recorded trace, as the file was."""
    nominal: Lengths | None = None
    """What the distributions say."""
    clamp: Lengths | None = None
    """The longest lengths; what is drawn longer is cut."""


class Power(Strict):
    """The primary meter, for readers."""

    source: str
    kind: Literal["board", "node", "rack", "none"]
    sampling_hz: Positive | None
    window: str


class AccuracyGate(Strict):
    """The accuracy check that was asked for."""

    suite: str
    threshold_pts: Positive


class Fleet(Strict):
    """Size of the fleet that the numbers are projected to."""

    cards: PositiveInt


class AccuracyResult(Strict):
    """What the accuracy check found."""

    score: Percent
    delta_pts: Number | None = None
    spread_pts: NonNegative | None = None


class Evidence(Strict):
    """A file of raw observations: its first ``bytes`` bytes have this hash."""

    path: str
    sha256: Sha256
    bytes: Count


class Missing(Strict):
    """Why a measured key is null."""

    code: str
    text: str


class Verdict(Strict):
    """The outcome in one word of the closed list, and a sentence."""

    word: VerdictWord
    text: str = ""
    code: str | None = None
    """Why there is no answer: UNFINISHED, INTERRUPTED, SERVER_GONE or WINDOW_INVALID."""


class TwinModel(Strict):
    """The model of the server that was fitted to the records of its requests.

    With B sequences that decode, x prompt tokens, and a = the sum over their chunks x_c of
    x_c (tokens of that prompt before + x_c/2), a step takes fixed_s + sequence_s B + root_s sqrt(B)
    + token_s x + square_s a, and prefill_s more where x > 0.
    """

    fixed_s: NonNegative
    sequence_s: NonNegative
    root_s: NonNegative
    prefill_s: NonNegative
    token_s: NonNegative
    square_s: NonNegative
    budget_tokens: PositiveInt
    """Tokens of one step."""
    max_sequences: PositiveInt | None = None
    """Sequences at once; null: no limit was seen."""


class BalancedSchedule(Strict):
    """Which of several random schedules a window was given, and why."""

    index: Count
    """The window's."""
    drawn: PositiveInt
    taken: Count
    """Its number: the schedule's seed is that of the purpose balance/<taken>."""
    shares: Annotated[list[NonNegative], Field(min_length=1)]
    """Shares of its requests over 85, 90, 95 and 100 % of the limit, on the twin."""
    long_run: Annotated[list[NonNegative], Field(min_length=1)]
    """The same of the twin's long run."""


class Search(Strict):
    """How the boundary was found."""

    strategy: Literal["ladder", "adaptive"]
    mode: str | None = None
    probes: Count = 0
    lo_rps: Positive | None = None
    """Highest rate that passed."""
    hi_rps: Positive | None = None
    """Lowest rate that failed."""
    overrides: list[str] | None = None
    """Keys of the spec's measurement that replaced those of the mode."""
    est_rps: Positive | None = None
    """The boundary by the twin."""
    interval_rps: Annotated[list[NonNegative], Field(min_length=2, max_length=2)] | None = None
    """Its 95 % interval: two rates."""
    error_pct: NonNegative | None = None
    """Its standard error."""
    bound_by: Literal["ttft", "tpot"] | None = None
    """The limit that sets the boundary."""
    candidates: Count | None = None
    """Rates that were taken to confirm windows."""
    climbs: Count | None = None
    """How many of them were given up for a higher one."""
    restarts: Count | None = None
    """How many of them were given up because the server's speed had changed."""
    drift: bool | None = None
    """The server's speed changed while it was measured."""
    kappa: NonNegative | None = None
    """Factor on the fitted model's times that makes its latencies those of the server."""
    corr: Number | None = None
    """Correlation of server and twin on the same schedules, over blocks of 30 s."""
    resid_se_pct: NonNegative | None = None
    """Standard error of what the twin leaves unexplained, in percent of the latency."""
    twin: Literal["used", "unused"] | None = None
    """Whether the answer rests on the twin too, or on counts alone."""
    twin_reason: str | None = None
    """Why it is unused."""
    model: TwinModel | None = None
    balanced: list[BalancedSchedule] | None = None


class Tool(Strict):
    """The program that wrote the document."""

    name: str
    version: str


class Realised(Strict):
    """Mean lengths of the requests that were scheduled, whatever became of them."""

    input_tokens: NonNegative | None
    output_tokens: NonNegative | None
    n: Count
    planned_cached_pct: Percent | None = None
    """Prompt tokens that earlier prompts of the load begin with too, by the workload's plan."""


class TokenMeans(Strict):
    """Realised mean tokens of a request."""

    input: NonNegative | None
    output: NonNegative | None
    source: str = ""
    """Where the output counts come from: usage, ids, tokenizer or chunks."""
    mismatch_pct: Percent | None = None
    """Share of requests whose count differs from the number of token events."""


class Config(Strict):
    """One measured configuration: the baseline or a candidate."""

    key: str = Field(pattern=r"^(baseline|candidate(-\d+)?)$")
    label: str
    engine: str
    mbu_pct: NonNegative | None
    node_power_kw: NonNegative | None
    """Mean power of the primary meter, whatever its scope: see energy.scope."""
    goodput_tok_s: NonNegative | None
    ttft_p99_ms: NonNegative | None
    tpot_p99_ms: NonNegative | None
    slo_pass_count: Count
    repeats: Count
    throttle_counts: dict[str, Count]
    accuracy: AccuracyResult | None
    rate_rps: Positive | None = None
    output_tok_s: NonNegative | None = None
    input_tok_s: NonNegative | None = None
    goodput_rps: NonNegative | None = None
    slo_attainment_pct: Percent | None = None
    counts: Counts | None = None
    ttft_ms: Dist | None = None
    tpot_ms: Dist | None = None
    itl_ms: Dist | None = None
    e2e_ms: Dist | None = None
    mean_concurrency: NonNegative | None = None
    tokens: TokenMeans | None = None
    realised: Realised | None = None
    energy: Energy | None = None
    meters: list[MeterReport] | None = None
    """The meters after the primary one, in the spec's order."""
    client: Client | None = None
    throttle_share_pct: Percent | None = None
    power_limit_w: Positive | None = None
    mbu: MbuReport | None = None
    """What mbu_pct was computed from; also of a figure that was refused as impossible."""
    windows: list[WindowRecord] | None = None
    """Confirm windows at the reported rate."""
    sweep: list[WindowRecord] | None = None
    """Every other window, in the order they were measured."""
    series: Series | None = None
    # where a joined document's configurations differ from its top level
    run_id: str | None = None
    source_sha256: Sha256 | None = None
    spec: Spec | None = None
    hardware: Hardware | None = None
    software: Software | None = None
    model: Model | None = None
    power: Power | None = None
    evidence: list[Evidence] | None = None
    variance_band_pct: NonNegative | None = None


class Run(Strict):
    """A run document."""

    id: Slug
    status: Status
    title: str
    published: Date | None
    summary: str
    hardware: Hardware
    software: Software
    model: Model
    slo: Slo
    workload: Workload
    power: Power
    accuracy: AccuracyGate | None
    runs: Count
    """Confirm windows of a configuration."""
    variance_band_pct: NonNegative | None
    fleet: Fleet | None
    configs: list[Config] = Field(min_length=1)
    not_covered: list[str]
    reproduce: str
    spec: Spec
    schema_version: str | None = None
    method_version: str | None = None
    version: PositiveInt | None = None
    tool: Tool | None = None
    run_id: str | None = None
    started: Stamp | None = None
    finished: Stamp | None = None
    resumed: list[Stamp] | None = None
    """When a measurement that had been cut off was gone on with; null means never."""
    quick: bool | None = None
    simulated: bool | None = None
    labels: dict[str, str] | None = None
    missing: dict[str, Missing] | None = None
    verdict: Verdict | None = None
    search: Search | None = None
    evidence: list[Evidence] | None = None
