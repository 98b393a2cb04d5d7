"""The energy of a window from a meter's counter and samples, and whether it can be believed.

Per device first, then the sum over devices: never a mean times their number. The energy counter
goes first, the integral of the power samples is its cross-check; a meter without a counter is
integrated. The rules are those of measurement.md, section 4.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.span import MIN_COVERAGE, Span
from tokenwatt_site.method.throttle import throttle
from tokenwatt_site.method.track import Track, usable
from tokenwatt_site.method.uncertainty import Doubt, counted_doubt, sampled_doubt, updates

AGREE_PCT = 2.0
WARN_PCT = 5.0
OVER_LIMIT = 2.0
COUNTER_STEP_S = 1.0
"""No energy counter rests for longer than this: drivers step it every 10 to 100 ms."""

MIN_VALUES = 10
"""New power values that a window needs of a meter."""
EDGES_MAX_PCT = 10.0

Method = Literal["counter", "sampled"]
CheckVerdict = Literal["agree", "warn", "disagree"]

REASONS: dict[str, str] = {
    "samples_only": "The meter has no energy counter: its power samples stand alone.",
    "counter_only": "The meter has no power samples: its energy counter stands alone.",
    "counter_incomplete": "A device's energy counter wasn't read close to both edges.",
    "counter_reset": "An energy counter went down in the window, as after a driver reload.",
    "counter_frozen": "An energy counter stood still for the whole window.",
    "window_shorter_than_counter_step": "The window is too short for the energy counter to move.",
    "device_missing": "A device gave no reading of its power in the window.",
    "not_bracketed": "A device's power wasn't read on both sides of the window.",
    "gap": "Power readings are further apart than max(3/hz, 1 s).",
    "coverage": "Less than 95 % of the expected power readings came, each on time.",
    "few_values": "A device's power took fewer than ten new values: its meter is too slow.",
    "constant_power": "Power readings never changed: a meter that stands still looks the same.",
    "slow_sampling": "Power was read less than twice a second: what beats in time isn't seen.",
    "averaged_too_early": "The window began before the meter's average held the load alone.",
    "edges_wide": "The window's edges are unsure by more than 10 % of its energy: it is too short.",
    "gain_unknown": "Nobody says how far the meter may be off: the uncertainty isn't whole.",
    "zero_power": "A device read 0 W, which is no reading.",
    "over_limit": "A reading is above twice the power limit: a wrong unit or a broken meter.",
    "meters_differ": "Counter and samples differ by more than 2 %.",
    "meters_disagree": "Counter and samples differ by more than 5 %.",
}
"""Codes of ``EnergyWindow.reasons``; a reading's own error code may stand beside them."""

_REFUSED = frozenset({"zero_power", "over_limit", "window_shorter_than_counter_step"})
"""Faults that leave no figure to defend, whatever else was read."""


@dataclass(frozen=True, slots=True)
class EnergyWindow:
    """Energy of all devices over a window. Only a ``valid`` figure is fit to be published."""

    joules: float | None
    """None where no figure can be defended; an invalid one may be given to look at."""
    seconds: float
    mean_w: float | None
    method: Method
    valid: bool
    reasons: tuple[str, ...]
    """Codes of what makes the figure invalid or doubtful."""
    samples: int
    """Usable device-readings in the window."""
    gaps: int
    """Expected device-readings that failed, came late or never."""
    check_joules: float | None
    """What the samples say beside a counter."""
    check_method: Method | None
    difference_pct: float | None
    """Check against figure, percent of the figure."""
    check_verdict: CheckVerdict | None
    throttle_counts: dict[str, int]
    throttle_samples: int
    """Device-samples whose throttle reasons could be read; 0 means that throttling is unknown."""
    throttle_share_pct: dict[str, float]
    throttled_pct: float | None
    """Share of the devices' time under any reason."""
    power_limit_w: float | None
    """The highest limit of a device that was read."""
    per_device_j: dict[str, float]
    sampling_j: float | None
    """95 % half-width of what happened between power readings; None for a counter or unknown."""
    edges_j: float | None
    """95 % half-width of what the window's edges leave open."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """Joules of each device by one method, or None, and the faults found."""

    joules: dict[str, float] | None
    faults: tuple[str, ...] = ()

    @property
    def total_j(self) -> float | None:
        return None if self.joules is None else math.fsum(self.joules.values())


@dataclass(frozen=True, slots=True)
class _Device:
    """One device's readings around the window."""

    power: Track
    energy: Track
    limit_w: float | None
    over_limit: bool
    """A power reading was above twice the limit; it is not in ``power``."""
    zeros: bool
    """A power reading was 0 W; it is not in ``power``."""

    @property
    def times_s(self) -> list[float]:
        """Return when the device was read: its power, or its counter where that is all it has."""
        return self.power.times_s or self.energy.times_s


def energy_window(
    samples: Iterable[PowerSample],
    devices: Sequence[str],
    w0_s: float,
    w1_s: float,
    hz: float,
    averaged_s: float = 0.0,
) -> EnergyWindow:
    """Return the energy of ``devices`` in the window [w0_s, w1_s].

    Args:
        samples: readings in any order, of any time; those far from the window aren't looked at.
        devices: every device that the meter must have read; one without readings is a fault.
        w0_s: the window's start on the samples' clock, s.
        w1_s: its end.
        hz: samples a second that were asked for.
        averaged_s: over how long the meter takes the mean of power before it shows it.

    Raises:
        ValueError: an empty window, no devices or no rate.
    """
    if not devices:
        raise ValueError("no devices")
    span = Span(w0_s, w1_s, hz)
    near = _near(samples, devices, span)
    read = {name: _device(mine) for name, mine in near.items()}
    counted, sampled = _counted(read, span), _sampled(read, span)
    method: Method = "sampled" if counted.joules is None else "counter"
    difference_pct = _difference_pct(counted, sampled)
    reasons = _reasons(counted, sampled, difference_pct)
    valid = _valid(counted, sampled, reasons)
    figure = sampled if counted.joules is None else counted
    joules = None if _REFUSED & set(reasons) else figure.total_j
    doubt = Doubt() if joules is None else _doubt(read, span, method, averaged_s)
    if joules is not None and (doubt.edges_j or 0.0) > EDGES_MAX_PCT / 100 * joules:
        reasons, valid = (*reasons, "edges_wide"), False
    held = throttle(near, span)
    limits_w = [device.limit_w for device in read.values() if device.limit_w is not None]
    return EnergyWindow(
        joules=joules,
        seconds=span.seconds,
        mean_w=None if joules is None else joules / span.seconds,
        method=method,
        valid=valid,
        reasons=reasons if valid else (*reasons, *_errors(near.values())),
        samples=sum(sum(map(span.holds, device.times_s)) for device in read.values()),
        gaps=_gaps(read.values(), span),
        check_joules=None if difference_pct is None else sampled.total_j,
        check_method=None if difference_pct is None else "sampled",
        difference_pct=difference_pct,
        check_verdict=None if difference_pct is None else _verdict(difference_pct),
        throttle_counts=held.counts,
        throttle_samples=held.samples,
        throttle_share_pct=held.share_pct,
        throttled_pct=held.any_pct,
        power_limit_w=max(limits_w, default=None),
        per_device_j={} if joules is None or figure.joules is None else figure.joules,
        sampling_j=doubt.sampling_j,
        edges_j=doubt.edges_j,
    )


def after_average(energy: EnergyWindow, averaged_s: float, warmup_s: float) -> EnergyWindow:
    """Return the energy, invalid where the load began less than an average before the window."""
    if energy.method == "counter" or warmup_s >= averaged_s:
        return energy
    return replace(energy, valid=False, reasons=(*energy.reasons, "averaged_too_early"))


def _gaps(read: Collection[_Device], span: Span) -> int:
    return len(read) * span.expected - sum(span.on_time(device.times_s) for device in read)


def _near(
    samples: Iterable[PowerSample], devices: Sequence[str], span: Span
) -> dict[str, list[PowerSample]]:
    near: dict[str, list[PowerSample]] = {name: [] for name in devices}
    for sample in span.near(samples):
        near.get(sample.device, []).append(sample)
    return near


def _doubt(read: dict[str, _Device], span: Span, method: Method, averaged_s: float) -> Doubt:
    if method == "counter":
        return counted_doubt([device.energy for device in read.values()], span)
    return sampled_doubt([device.power for device in read.values()], span, averaged_s)


def _device(samples: Sequence[PowerSample]) -> _Device:
    limits_w = [sample.limit_w for sample in samples if usable(sample.limit_w)]
    limit_w = max((limit for limit in limits_w if limit), default=None)
    most_w = math.inf if limit_w is None else OVER_LIMIT * limit_w
    power = _readings(samples, lambda sample: sample.power_w)
    return _Device(
        power=Track.of((time_s, watts) for time_s, watts in power if 0 < watts <= most_w),
        energy=Track.of(_readings(samples, lambda sample: sample.energy_j)),
        limit_w=limit_w,
        over_limit=any(watts > most_w for _, watts in power),
        zeros=any(watts == 0 for _, watts in power),
    )


def _readings(
    samples: Iterable[PowerSample], value_of: Callable[[PowerSample], float | None]
) -> list[tuple[float, float]]:
    pairs = ((sample.t_s, value_of(sample)) for sample in samples)
    return [(time_s, value) for time_s, value in pairs if value is not None and usable(value)]


def _counted(read: dict[str, _Device], span: Span) -> _Figure:
    """Return joules by the energy counters, interpolated at both edges."""
    tracks = [device.energy for device in read.values()]
    if not any(track.times_s for track in tracks):
        return _Figure(None, ("samples_only",))
    if not all(_edges_read(track, span) for track in tracks):
        return _Figure(None, ("counter_incomplete",))
    if any(track.falls(span.w0_s, span.w1_s) for track in tracks):
        return _Figure(None, ("counter_reset",))
    joules = {
        name: device.energy.at(span.w1_s) - device.energy.at(span.w0_s)
        for name, device in read.items()
    }
    if min(joules.values()) <= 0:
        short = span.seconds < COUNTER_STEP_S
        return _Figure(None, ("window_shorter_than_counter_step" if short else "counter_frozen",))
    if any(_beyond(joules[name] / span.seconds, device.limit_w) for name, device in read.items()):
        return _Figure(None, ("over_limit",))
    return _Figure(joules)


def _edges_read(track: Track, span: Span) -> bool:
    """Return whether each edge lies between two readings that are close enough together."""
    return track.brackets(span.w0_s, span.w1_s) and all(
        track.longest_step_s(edge_s, edge_s) <= span.gap_s for edge_s in (span.w0_s, span.w1_s)
    )


def _beyond(watts: float, limit_w: float | None) -> bool:
    return limit_w is not None and watts > OVER_LIMIT * limit_w


def _sampled(read: dict[str, _Device], span: Span) -> _Figure:
    """Return joules by the trapezoid rule over the power samples, interpolated at both edges."""
    over = ("over_limit",) if any(device.over_limit for device in read.values()) else ()
    zero = ("zero_power",) if any(device.zeros for device in read.values()) else ()
    tracks = [device.power for device in read.values()]
    if not any(track.times_s for track in tracks) and not over + zero:
        return _Figure(None, ("counter_only",))
    if not all(track.times_s for track in tracks):
        return _Figure(None, over + zero or ("device_missing",))
    if not all(track.brackets(span.w0_s, span.w1_s) for track in tracks):
        return _Figure(None, (*over, *zero, "not_bracketed"))
    sparse = _sparse(tracks, span)
    joules = {name: device.power.area(span.w0_s, span.w1_s) for name, device in read.items()}
    few = ("few_values",) if any(_few(track, span) for track in tracks) else ()
    return _Figure(joules, (*over, *(zero if sparse else ()), *sparse, *few))


def _few(track: Track, span: Span) -> bool:
    """Return whether a meter repeats a few values; one that never changes may be right."""
    inside = [time_s for time_s in track.times_s if span.holds(time_s)]
    return len(inside) >= MIN_VALUES and 1 < len(updates(track, span).values) < MIN_VALUES


def _sparse(tracks: Sequence[Track], span: Span) -> tuple[str, ...]:
    """Return the codes of readings that are too few or too far apart."""
    steps_s = [track.longest_step_s(span.w0_s, span.w1_s) for track in tracks]
    counts = [span.on_time(track.times_s) for track in tracks]
    gap = ("gap",) if max(steps_s) > span.gap_s else ()
    return (*gap, "coverage") if min(counts) < MIN_COVERAGE * span.expected else gap


def _difference_pct(counted: _Figure, sampled: _Figure) -> float | None:
    """Return samples against counter in percent of the counter, where both can be believed."""
    if counted.total_j is None or sampled.total_j is None or sampled.faults:
        return None
    return 100.0 * (sampled.total_j - counted.total_j) / counted.total_j


def _verdict(difference_pct: float) -> CheckVerdict:
    if abs(difference_pct) <= AGREE_PCT:
        return "agree"
    return "warn" if abs(difference_pct) <= WARN_PCT else "disagree"


def _reasons(counted: _Figure, sampled: _Figure, difference_pct: float | None) -> tuple[str, ...]:
    codes = [*counted.faults, *sampled.faults]
    if difference_pct is not None and abs(difference_pct) > AGREE_PCT:
        codes.append("meters_disagree" if abs(difference_pct) > WARN_PCT else "meters_differ")
    if codes == ["samples_only", "counter_only"]:
        codes = ["device_missing"]
    return tuple(dict.fromkeys(codes))


def _valid(counted: _Figure, sampled: _Figure, reasons: Sequence[str]) -> bool:
    """Return whether the figure stands: gaps between samples don't touch what a counter says."""
    if {"meters_disagree", *_REFUSED} & set(reasons):
        return False
    return counted.joules is not None or (sampled.joules is not None and not sampled.faults)


def _errors(near: Iterable[Sequence[PowerSample]]) -> list[str]:
    """Return the error codes of the readings, for a window that they spoiled."""
    return sorted({sample.error for samples in near for sample in samples if sample.error})
