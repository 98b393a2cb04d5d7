"""The spec: what is asked of a measurement. docs/spec.md is made from these docstrings."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tokenwatt_site.documents.base import (
    Count,
    Int,
    NonNegative,
    Number,
    Positive,
    PositiveInt,
    Strict,
    key,
    whole,
)
from tokenwatt_site.documents.spec_workload import SpecWorkload

# Bounds far above any use: what lies beyond is a slip, and would cost hours or all the memory.
_MOST_STEPS = 100

Steps = Annotated[int, Field(ge=0, le=_MOST_STEPS), BeforeValidator(whole)]
Repeats = Annotated[int, Field(gt=0, le=_MOST_STEPS), BeforeValidator(whole)]
Growth = Annotated[float, Field(ge=1.01, le=1000)] | Annotated[int, Field(gt=1, le=1000)]
Hertz = Annotated[int, Field(ge=1, le=100)] | Annotated[float, Field(ge=0.01, le=100)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable: a key put here by mistake is refused, and not repeated."""


class SpecHardware(Strict):
    """The accelerators under test."""

    adapter: Literal["nvidia", "amd", "none", "simulated"] = key("none", phase="preflight")
    """Which driver identifies the accelerators: nvidia, amd, none or simulated."""
    rated_bw_tbs_per_gpu: Positive | None = key(None, phase="preflight")
    """Rated memory bandwidth of one accelerator in TB/s; null takes it from content/hardware."""
    gpus: Annotated[list[Int | str], Field(min_length=1)] | None = key(None, phase="preflight")
    """Indices or UUIDs of the accelerators that the engine uses; null means the first replicas x TP
    x PP."""
    host: str = key("", phase="report")
    """A description of the host for readers. Never an address."""


class SimulatorOptions(Strict):
    """How the embedded engine is set up when the endpoint is ``simulator:``."""

    profile: str = key("demo", phase="preflight")
    """A named shape of the step model; `tokenwatt-site simulate --list` names them."""
    overrides: dict[str, Number | bool] = key({}, phase="preflight")
    """Values of the shape to change, by parameter name."""
    seed: Count = key(0, phase="preflight")
    """Seed of the server's own noise."""


class SpecEngine(Strict):
    """The server under test and how it is spoken to."""

    endpoint: str = key(phase="preflight")
    """Base URL of the OpenAI-compatible API, with /v1; `simulator:` starts the embedded engine."""
    name: str = key("", phase="report")
    """The engine's name for readers."""
    version: str = key("", phase="report")
    """The engine's version; empty takes what the server says."""
    kernels: str = key("", phase="report")
    """Image and arguments that the engine was started with, for readers."""
    api: Literal["completions", "chat", "responses"] = key("completions", phase="load")
    """The API dialect: completions takes token ids or text, chat and responses take text."""
    model: str = key("", phase="load")
    """The model's name in the API; empty takes the only model that the server lists."""
    ignore_eos: bool = key(default=True, phase="load")
    """Ask the server to go on to max_tokens, so that output lengths are those of the workload."""
    api_key_env: Variable | None = key(None, phase="load")
    """Name of the environment variable that holds the API key. The key itself never stands in a
    spec."""
    ca_file: str | None = key(None, phase="load")
    """Path of a PEM file with the authorities that may have signed the server's certificate; null
    means the system's. A relative path starts in the folder that the program runs in."""
    extra_body: dict[str, Any] = key({}, phase="load")
    """Merged into each request's JSON last; can't replace model, stream, stream_options, prompt,
    messages or max_tokens."""
    simulator: SimulatorOptions | None = key(None, phase="preflight")
    """Set-up of the embedded engine; only with the endpoint `simulator:`."""
    max_batched_tokens: PositiveInt | None = key(None, phase="search")
    """Token budget of one engine step, for the twin of the adaptive search; null means 8,192."""


class SpecModel(Strict):
    """The model that is served."""

    name: str = key(phase="report")
    """The model's name for readers."""
    config: str | None = key(None, phase="preflight")
    """Path of the model's HuggingFace config.json, or of its folder, from the spec's folder and in
    it; null computes no memory bandwidth utilisation (docs/mbu.md)."""
    weight_dtype: str = key("", phase="report")
    """Data type of the weights, such as fp8; empty reads it from the config."""
    kv_dtype: str = key("", phase="report")
    """Data type of the KV cache; empty reads it from the config."""
    quantization: str = key("", phase="report")
    """The precision in words for readers; empty makes it from the data types."""
    replicas: PositiveInt = key(1, phase="preflight")
    """Number of model replicas behind the endpoint."""
    tensor_parallel: PositiveInt = key(1, phase="preflight")
    """Accelerators that one layer is split over."""
    pipeline_parallel: PositiveInt = key(1, phase="preflight")
    """Pipeline stages of one replica."""
    vocab_size: PositiveInt | None = key(None, phase="load")
    """Prompts are random token ids below this; null sends text."""
    geometry: dict[str, Any] = key({}, phase="preflight")
    """Replaces keys of the model's config (null leaves one out), and three of its own:
    attention_tensor_parallel, tokens_verified, tokens_accepted (docs/mbu.md)."""

    @property
    def ranks(self) -> int:
        """Accelerators that it is served on."""
        return self.replicas * self.tensor_parallel * self.pipeline_parallel


class SpecSlo(Strict):
    """The latency promise: both hold for 99 % of the requests of a window."""

    ttft_p99_ms: Positive = key(2000.0, phase="verdict")
    """Limit of the 99th percentile of the time to first token, from the arrival, in ms."""
    tpot_p99_ms: Positive = key(50.0, phase="verdict")
    """Limit of the 99th percentile of the mean time per output token, in ms."""


class SpecMeasurement(Strict):
    """How long a window lasts and what bounds it."""

    warmup_s: NonNegative = key(45, phase="load")
    """Seconds of load before a window counts. In an adaptive search, where given: those of knee and
    confirm windows."""
    window_s: Positive = key(300, phase="load")
    """Seconds of a confirm window; longer where fewer than 300 requests would arrive, at most ten
    times. An adaptive search takes its mode's, unless this is given."""
    search_window_s: Positive = key(60, phase="load")
    """Seconds of a ladder's search window; longer where fewer than 100 requests would arrive, at
    most ten times."""
    idle_s: Annotated[float, Field(ge=0, le=3600)] | None = key(None, phase="power")
    """Seconds without load, before the first window and again after the last, in which the meters
    read what the machine draws anyway; null means 60 where a meter is named, 0 leaves it out."""
    repeats: Repeats = key(3, phase="search")
    """Confirm windows at the reported rate; all must keep the limits. An adaptive search takes its
    mode's number, unless this is given, and counts them together."""
    request_timeout_s: Positive = key(300, phase="load")
    """Seconds from sending after which a request has failed."""
    max_concurrency: PositiveInt = key(8192, phase="load")
    """Requests in flight above which the client gives up: the request fails and the window is
    invalid."""


class SpecSweep(Strict):
    """How the SLO boundary is looked for."""

    strategy: Literal["ladder", "adaptive"] | None = key(None, phase="search")
    """adaptive, or ladder; null runs the ladder and the document says so. docs/search.md explains
    both."""
    mode: Literal["quick", "standard", "strict"] | None = key(None, phase="search")
    """How thorough the adaptive search is; null means standard. The ladder has no modes."""
    max_minutes: Positive | None = key(None, phase="search")
    """The adaptive search starts no window that would take its server time above this, in minutes;
    null sets no bound. The ladder takes none."""
    rates: list[Positive] | None = key(None, phase="search")
    """Measure just these rates, in requests/s, instead of searching. Ladder, as all that follow but
    start_rps and max_rps."""
    start_rps: Positive = key(2.0, phase="search")
    """First rate, in requests/s."""
    growth: Growth = key(2.0, phase="search")
    """The rate is multiplied by this until one fails."""
    max_rps: Positive = key(2000, phase="search")
    """The search never goes above, in requests/s."""
    bisect_steps: Steps = key(3, phase="search")
    """Bisections on the logarithm of the rate between the last pass and the first fail."""
    backoff: Annotated[float, Field(gt=0, lt=1)] = key(0.9, phase="search")
    """Factor on a rate that failed at the start or in confirm."""
    max_backoffs: Steps = key(4, phase="search")
    """How many times backoff is applied before the answer is none."""
    confirm: Literal["backoff", "bisect"] = key("backoff", phase="search")
    """After a failed confirm: multiply by backoff, or bisect between floor_rps and that rate."""
    floor_rps: Positive | None = key(None, phase="search")
    """Lower end of `confirm: bisect`; null means the highest rate that passed in search, else
    start_rps."""
    confirm_steps: Steps = key(5, phase="search")
    """Confirm attempts that `confirm: bisect` may take."""


class SpecAccuracy(Strict):
    """The accuracy check that a run carries."""

    suite: str = key(phase="report")
    """Path of a JSONL file of questions and answers."""
    name: str = key("", phase="report")
    """The suite's name for readers; empty takes the file's name."""
    scorer: str = key("numeric", phase="accuracy", since="accuracy")
    """How an answer is judged."""
    max_drop_pts: Positive = key(1.0, phase="report")
    """Largest accepted drop against the baseline, in percentage points."""
    seeds: PositiveInt = key(1, phase="accuracy", since="accuracy")
    """How many times the suite is run."""
    max_tokens: PositiveInt = key(384, phase="accuracy", since="accuracy")
    """Longest answer, in tokens."""
    stop: list[str] = key([], phase="accuracy", since="accuracy")
    """Texts that end an answer."""
    concurrency: PositiveInt = key(32, phase="accuracy", since="accuracy")
    """Questions in flight at once."""
    limit: PositiveInt | None = key(None, phase="accuracy", since="accuracy")
    """Only the first questions of the suite; null means all."""


PowerSource = Literal[
    "board",
    "redfish",
    "ipmi",
    "command",
    "prometheus",
    "rapl",
    "hwmon",
    "amd",
    "replay",
    "simulated",
    "none",
]
Scope = Literal["board", "module", "package", "node_dc", "node_ac", "rack_ac", "shared_board"]


class SpecPower(Strict):
    """One power meter. The first of a list is the primary one."""

    source: PowerSource = key("none", phase="power")
    """The meter, as docs/power.md has them: board is what the accelerators tell of themselves. One
    that this version doesn't read is refused by name."""
    sampling_hz: Hertz | None = key(None, phase="power")
    """Samples a second; null means what suits the meter: 10 for boards, 1 for most others."""
    url: str | None = key(None, phase="power")
    """Address of a remote meter, without user name or password in it."""
    username: str | None = key(None, phase="power")
    """User name at a remote meter; without one, Prometheus is given the password as a token."""
    password_env: Variable | None = key(None, phase="power")
    """Name of the environment variable that holds the password."""
    verify_tls: bool = key(default=True, phase="power")
    """Verify the meter's certificate."""
    chassis: str | None = key(None, phase="power")
    """Redfish chassis to read where there are several."""
    host: str | None = key(None, phase="power")
    """Host of an IPMI meter, with a port if it isn't 623; null is this machine's controller."""
    command: list[str] | None = key(None, phase="power")
    """Program and arguments that print a reading; run without a shell."""
    field: str | None = key(None, phase="power")
    """Which of a meter's readings: a field of a command's JSON, a hwmon sensor (`chip/label`),
    RAPL's `package` or `psys`."""
    scope: Scope | None = key(None, phase="power")
    """What the meter includes, where it can't say so itself."""
    unit: str | None = key(None, phase="power")
    """Unit of the reading: W, kW, mW; J, kJ, mJ, Wh, kWh."""
    quantity: Literal["power", "energy"] | None = key(None, phase="power")
    """Whether the reading is power or a running total of energy."""
    gain_pct: NonNegative | None = key(None, phase="power")
    """Bound of the meter's systematic error in percent of the reading, by its data sheet or its
    calibration; null takes what is known of its kind."""
    query: str | None = key(None, phase="power")
    """PromQL query of a Prometheus meter, one scalar or one vector; null reads DCGM's GPUs."""
    path: str | None = key(None, phase="power")
    """File or folder that a replay, rapl or hwmon meter reads; null is the machine's own."""


class SpecHost(Strict):
    """One of several hosts with meters of its own."""

    name: str = key(phase="power")
    """The host's name for readers."""
    power: list[SpecPower] = key(phase="power")
    """The host's meters, of the same kinds and in the same order as every other's."""
    role: str = key("", phase="power")
    """What it serves, such as prefill or decode: energy is summed by it."""
    agent: str | None = key(None, phase="power")
    """Address of its agent, such as http://node1:8470 (`power agent`); null is this machine."""
    token_env: Variable | None = key(None, phase="power")
    """Name of the environment variable that holds the token shared with its agent."""
    gpus: Annotated[list[Int | str], Field(min_length=1)] | None = key(None, phase="power")
    """Indices or UUIDs of its accelerators that the engine uses; null means all of them."""


class SpecText(Strict):
    """Human strings of the document; each is made from spec and measurement if not given."""

    title: str | None = key(None, phase="report")
    """Title of the document."""
    summary: str | None = key(None, phase="report")
    """Summary of the document."""
    label: str | None = key(None, phase="report")
    """Label of the configuration; `--label` goes first."""
    engine: str | None = key(None, phase="report")
    """The engine's line of the configuration."""
    input_tokens: str | None = key(None, phase="report")
    """Prompt lengths in words."""
    output_tokens: str | None = key(None, phase="report")
    """Answer lengths in words."""
    arrival: str | None = key(None, phase="report")
    """Arrival process in words."""
    quantization: str | None = key(None, phase="report")
    """Precision in words."""
    parallelism: str | None = key(None, phase="report")
    """Replicas and parallelism in words."""
    window: str | None = key(None, phase="report")
    """Measurement window in words."""
    source: str | None = key(None, phase="report")
    """Power source in words."""
    reproduce: str | None = key(None, phase="report")
    """Commands that repeat the run."""


class Spec(Strict):
    """A measurement that is asked for."""

    name: str = key(phase="report")
    """The spec's name; names the document where nothing else does."""
    hardware: SpecHardware = key(SpecHardware(), phase="preflight")
    """The accelerators under test."""
    engine: SpecEngine = key(phase="preflight")
    """The server under test."""
    model: SpecModel = key(phase="report")
    """The model that is served."""
    slo: SpecSlo = key(SpecSlo(), phase="verdict")
    """The latency promise."""
    workload: SpecWorkload = key(SpecWorkload(), phase="load")
    """What the requests look like."""
    measurement: SpecMeasurement = key(SpecMeasurement(), phase="load")
    """Windows, repeats and bounds."""
    sweep: SpecSweep = key(SpecSweep(), phase="search")
    """The search for the SLO boundary."""
    accuracy: SpecAccuracy | None = key(None, phase="accuracy")
    """The accuracy check; null leaves accuracy out, with the reason in the document."""
    power: SpecPower | list[SpecPower] | None = key(None, phase="power")
    """One meter, or a list whose first is the primary one; null measures no power."""
    hosts: Annotated[list[SpecHost], Field(min_length=1)] | None = key(None, phase="power")
    """Several hosts that serve together, each with its meters; `power` is left out then."""
    not_covered: list[str] = key([], phase="report")
    """What this measurement doesn't show, in the publisher's words."""
    text: SpecText = key(SpecText(), phase="report")
    """Overrides of the document's human strings."""
