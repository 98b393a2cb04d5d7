"""What follows from a configuration's stored figures: energy per token, efficiency, shares.

Energy over tokens uses ``output_tok_s``, every token inside the windows; a document that publishes
only goodput, as the seed does, is divided by that, and `Derived.tokens` says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tokenwatt_site.documents.run import Config, Hardware, Power, Run, Software
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.window import WindowRecord
from tokenwatt_site.method.statistics import mean_interval

J_PER_KWH_MTOK = 3.6
"""1 kWh/Mtok = 3.6 J/token."""
MIN_REPEATS = 3
"""Under three repeats an interval says less than the smallest and the largest value."""

_SCOPES = {"board": "board", "node": "node", "rack": "rack", "none": None}


@dataclass(frozen=True, slots=True)
class Derived:
    """Figures that a document implies; None where it lacks what they need."""

    scope: str | None
    """What the meter includes; ``node`` and ``rack`` where a document doesn't say AC or DC."""
    tokens: Literal["output", "goodput"]
    """Which tokens the energy is divided by."""
    power_w: float | None
    w_per_gpu: float | None
    j_per_token: float | None
    j_per_total_token: float | None
    j_per_request: float | None
    tok_s_kw: float | None
    kwh_mtok: float | None
    tok_s_per_gpu: float | None
    throttle_share_pct: float | None
    throttle_samples: tuple[int, int] | None
    """Throttled and all device-samples, where the share is made from them."""


def derived(run: Run, config: Config) -> Derived:
    """Return what ``config`` of ``run`` implies."""
    power_w = config.node_power_kw * 1000 if config.node_power_kw is not None else None
    count = hardware_of(run, config).count or None
    out = config.output_tok_s
    tok_s = config.goodput_tok_s if out is None else out
    stated = config.energy.j_per_output_token if config.energy else None
    j_token = stated if stated is not None else _ratio(power_w, tok_s)
    total = out + config.input_tok_s if out is not None and config.input_tok_s is not None else None
    samples = throttle_samples(run, config)
    share = config.throttle_share_pct
    if share is None and samples is not None:
        share = 100 * samples[0] / samples[1]
    return Derived(
        scope=scope_of(run, config),
        tokens="goodput" if out is None else "output",
        power_w=power_w,
        w_per_gpu=_ratio(power_w, count),
        j_per_token=j_token,
        j_per_total_token=_ratio(power_w, total),
        j_per_request=_ratio(power_w, config.rate_rps),
        tok_s_kw=_ratio(1000, j_token),
        kwh_mtok=j_token / J_PER_KWH_MTOK if j_token is not None else None,
        tok_s_per_gpu=_ratio(config.goodput_tok_s, count),
        throttle_share_pct=share,
        throttle_samples=samples,
    )


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def scope_of(run: Run, config: Config) -> str | None:
    """Return what the primary meter includes."""
    return config.energy.scope if config.energy else _SCOPES[power_of(run, config).kind]


def hardware_of(run: Run, config: Config) -> Hardware:
    """Return the configuration's accelerators: its own where they differ, else the document's."""
    return config.hardware or run.hardware


def software_of(run: Run, config: Config) -> Software:
    """Return the configuration's engine."""
    return config.software or run.software


def power_of(run: Run, config: Config) -> Power:
    """Return the configuration's meter."""
    return config.power or run.power


def spec_of(run: Run, config: Config) -> Spec:
    """Return the configuration's spec."""
    return config.spec or run.spec


def throttle_samples(run: Run, config: Config) -> tuple[int, int] | None:
    """Return the throttled and all device-samples of the confirm windows.

    None where the sampling rate isn't known, where nothing was counted (a meter that can't read
    throttling counts nothing either), and where several reasons were: they overlap, so that their
    sum isn't a number of samples.
    """
    hz, spec = power_of(run, config).sampling_hz, spec_of(run, config)
    if hz is None or len(config.throttle_counts) != 1 or config.throttle_share_pct is not None:
        return None
    count = hardware_of(run, config).count
    total = round(count * spec.measurement.window_s * hz * config.repeats)
    return (sum(config.throttle_counts.values()), total) if total else None


@dataclass(frozen=True, slots=True)
class Repeats:
    """One figure over the confirm windows."""

    n: int
    mean: float
    half: float | None
    """Half-width of the 95 % t interval; None under three repeats."""
    low: float
    high: float


def repeats(
    windows: Sequence[WindowRecord] | None, value: Callable[[WindowRecord], float | None]
) -> Repeats | None:
    """Return mean, interval and range of ``value`` over ``windows``; None if one lacks it."""
    values = [value(window) for window in windows or ()]
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return None
    mean, half = mean_interval(known)
    return Repeats(
        len(known), mean, half if len(known) >= MIN_REPEATS else None, min(known), max(known)
    )


def window_within(window: WindowRecord) -> bool:
    """Tell whether a window kept the limits; a short rung needs no hundred requests for that."""
    if window.passed or window.tail_s is None or window.aborted:
        return window.passed
    counts = window.counts
    missed = max(counts.miss_ttft or 0, counts.miss_tpot or 0)
    return 100 * missed <= counts.sent > 0


def window_power_w(window: WindowRecord) -> float | None:
    """Return a window's mean power; None without a valid reading."""
    energy = window.energy
    if energy is None or energy.joules is None or not energy.valid:
        return None
    return _ratio(energy.joules, energy.seconds)


def window_j_per_token(window: WindowRecord) -> float | None:
    """Return a window's energy per output token."""
    return _ratio(window_power_w(window), window.output_tok_s)


def window_tok_s_kw(window: WindowRecord) -> float | None:
    """Return a window's output tokens per second and kilowatt."""
    return _ratio(1000, window_j_per_token(window))
