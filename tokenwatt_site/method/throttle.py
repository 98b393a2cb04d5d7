"""How often and for how long the accelerators were held back, by reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.span import Span
from tokenwatt_site.method.track import Track

_NS_PER_S = 1e9
_MOST_PCT = 105.0
"""A share above this isn't one: the driver counts in another unit than nanoseconds."""

ByDevice = Mapping[str, Sequence[PowerSample]]


@dataclass(frozen=True, slots=True)
class Throttle:
    """Throttling in a window, over all devices."""

    counts: dict[str, int]
    """Device-samples at which a reason was active, by reason; those never seen are left out."""
    samples: int
    """Device-samples whose reasons could be read: the denominator; 0 means unknown."""
    share_pct: dict[str, float]
    """Share of the devices' time, by reason: the driver's counters, else counts over samples."""
    any_pct: float | None
    """Share of time under any reason, at least; None where nothing is known."""


def throttle(near: ByDevice, span: Span) -> Throttle:
    """Return the throttling of a window.

    Args:
        near: each device's samples in the window and around it.
        span: the window.
    """
    inside = (sample for sample in chain(*near.values()) if span.holds(sample.t_s))
    known = [set(sample.throttle) for sample in inside if sample.throttle is not None]
    counts = Counter(chain.from_iterable(known))
    timed_pct = _timed_pct(near, span)
    if not known and not timed_pct:
        return Throttle({}, 0, {}, None)
    seen_pct = {reason: 100.0 * count / len(known) for reason, count in counts.items()}
    share_pct = {
        reason: pct
        for reason, pct in sorted((seen_pct | timed_pct).items())
        if pct > 0 or reason in counts
    }
    any_pct = 100.0 * sum(map(bool, known)) / len(known) if known else 0.0
    return Throttle(
        counts=dict(sorted(counts.items())),
        samples=len(known),
        share_pct=share_pct,
        any_pct=max(any_pct, *share_pct.values(), 0.0),
    )


def _timed_pct(near: ByDevice, span: Span) -> dict[str, float]:
    """Return the share of the devices' time by the running counters that can be used."""
    reasons = {reason for sample in chain(*near.values()) for reason in sample.throttle_ns}
    shares = {reason: _share_pct(near, span, reason) for reason in reasons}
    return {reason: pct for reason, pct in shares.items() if pct is not None}


def _share_pct(near: ByDevice, span: Span, reason: str) -> float | None:
    total_ns = 0.0
    for samples in near.values():
        track = Track.of(
            (sample.t_s, float(sample.throttle_ns[reason]))
            for sample in samples
            if reason in sample.throttle_ns
        )
        if not track.brackets(span.w0_s, span.w1_s) or track.falls(span.w0_s, span.w1_s):
            return None
        total_ns += track.at(span.w1_s) - track.at(span.w0_s)
    pct = 100.0 * total_ns / (len(near) * span.seconds * _NS_PER_S)
    return min(pct, 100.0) if pct <= _MOST_PCT else None
