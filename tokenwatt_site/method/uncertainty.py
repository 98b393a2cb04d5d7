"""How far a window's energy may be off by the way it was read: 95 % half-widths in joules.

Two parts, both found in the readings themselves. *Sampling*: what the power did between readings.
*Edges*: where exactly the window begins and ends in the readings. A counter misses nothing between
its readings, so that it has edges only. The meter's gain is no matter of readings, and repeats are
no matter of one window: ``energy_report`` adds both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokenwatt_site.method.span import Span
from tokenwatt_site.method.statistics import t95
from tokenwatt_site.method.track import Track

_Z95 = 1.96
_MIN_UPDATES = 3
"""Fewer say nothing of what lies between them."""
_UNIFORM_SD = 1 / math.sqrt(12)
_REPEATED = 0.1
"""A meter repeats itself when more than this share of its readings equal the one before."""
SCRAPED_S = 5.0
"""A counter that steps no oftener is scraped, perhaps twice: by its exporter and by a server."""
_LOCAL_STEPS = 2
"""Power at an edge is the mean over so many steps."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Half-widths of a window's energy, J; None where the readings don't tell or it has no such."""

    sampling_j: float | None = None
    edges_j: float | None = None


def updates(track: Track, span: Span) -> Track:
    """Return the readings around a window that differ from the one before: those that are new."""
    times_s, values = track.around(span.w0_s, span.w1_s)
    kept = [i for i in range(len(values)) if i == 0 or values[i] != values[i - 1]]
    return Track.of((times_s[i], values[i]) for i in kept)


def step_s(track: Track, span: Span) -> float:
    """Return how far apart a meter's new values come, s; 0 where nearly each reading is one."""
    _, values = track.around(span.w0_s, span.w1_s)
    new = updates(track, span).times_s
    if len(new) < _MIN_UPDATES or len(values) - len(new) <= _REPEATED * len(values):
        return 0.0
    return (new[-1] - new[1]) / (len(new) - 2)  # the first one may have stood for a while


def sampled_doubt(tracks: Sequence[Track], span: Span, average_s: float = 0.0) -> Doubt:
    """Return the doubt about an integral of power readings, all devices together.

    With neighbouring new values x and y that are h apart, the sampling's variance is::

        g Σ h² (y − x)² / 2,   g(a) = (coth(a/2) − 2/a) / (1 − exp(−a)),   a = h/τ

    a sum over blocks of two readings. Values without any memory give g = 1: the variance of a mean
    by successive differences (von Neumann 1941; Wolter, Introduction to Variance Estimation, 8.2).
    With a memory of τ the trapezoid does better: the error that is left is what a spectrum
    2 σ² τ / (1 + (2π f τ)²) holds at the multiples of the sampling rate, and g falls to 1/6, which
    is also right for a power that jumps between readings. The memory comes from blocks of three:
    exp(−a) = Σ (z − x)² / Σ (y − x)² − 1, less twice its standard error 1/√n.

    A load that beats in time with the readings is seen by no formula: see ``slow_sampling``.

    Args:
        tracks: each device's power, W.
        span: the window.
        average_s: over how long the meter takes the mean before it shows it.
    """
    whole = _summed(tracks, span)
    new = [updates(track, span) for track in whole]
    if any(len(track.values) < _MIN_UPDATES for track in new):
        return Doubt()
    return Doubt(
        sum(map(_sampling_j, new)),
        sum(_power_edges_j(track, span, average_s) for track in whole),
    )


def _summed(tracks: Sequence[Track], span: Span) -> list[Track]:
    """Return the sum over the devices where they were read at the same times, else each of them.

    Devices that work together change together: what is missed of one is missed of all, and the sum
    knows it.
    """
    near = [track.around(span.w0_s, span.w1_s) for track in tracks]
    first_s = near[0][0]
    together = all(
        len(times_s) == len(first_s)
        and all(abs(t - u) < 0.5 / span.hz for t, u in zip(times_s, first_s, strict=True))
        for times_s, _ in near
    )
    if not together:
        return list(tracks)
    sums = map(math.fsum, zip(*(values for _, values in near), strict=True))
    return [Track.of(zip(first_s, sums, strict=True))]


def _sampling_j(new: Track) -> float:
    steps = [
        (u - t, y - x) for (t, x), (u, y) in pairwise(zip(new.times_s, new.values, strict=True))
    ]
    variance = math.fsum((h * d) ** 2 / 2 for h, d in steps)
    return t95(len(steps)) * math.sqrt(_memory_gain(new.values) * variance)


def _memory_gain(values: Sequence[float]) -> float:
    """Return g of the values' correlation from one to the next, which is taken a little low."""
    near = math.fsum((y - x) ** 2 for x, y in pairwise(values)) / (len(values) - 1)
    far = math.fsum((z - x) ** 2 for x, z in zip(values, values[2:], strict=False))
    kept = far / (len(values) - 2) / near - 1 - 2 / math.sqrt(len(values))
    if kept <= 0:
        return 1.0
    a = -math.log(min(kept, 0.999))
    return (1 / math.tanh(a / 2) - 2 / a) / (1 - math.exp(-a))


def _power_edges_j(track: Track, span: Span, average_s: float) -> float:
    """Return the doubt at the edges: a jump somewhere between two readings, and a meter that lags.

    A jump is as likely anywhere between them. A meter that lags by up to L moves the whole window,
    which matters as far as the power at its end differs from that at its start.
    """
    jumps_j: list[float] = []
    for edge_s in (span.w0_s, span.w1_s):
        times_s, values = track.around(edge_s, edge_s)
        jump_w = max(values) - min(values)
        jumps_j.append(_Z95 * _UNIFORM_SD * jump_w * (times_s[-1] - times_s[0]))
    lag_s = max(average_s, step_s(track, span))
    local_s = min(max(_LOCAL_STEPS * lag_s, 2 / span.hz), span.seconds / 2)
    begin_w = track.area(span.w0_s, span.w0_s + local_s) / local_s
    end_w = track.area(span.w1_s - local_s, span.w1_s) / local_s
    return math.hypot(*jumps_j, lag_s * (end_w - begin_w))


def counted_doubt(tracks: Sequence[Track], span: Span) -> Doubt:
    """Return the doubt about what energy counters say: the edges, each device's added up.

    A counter that repeats itself steps every s: at an edge it lags by anything from 0 to s, so that
    with power P there the variance is P² s²/12 at each edge, and twice that for a scraped one. One
    that moves at each reading is held against its own neighbours: the variance at each edge is the
    mean square of E(t) − what the readings before and after give for t, which is twice of what
    lags that differ from reading to reading need, and enough where they stay the same. A lag that
    stays the same, unseen up to the time between readings, moves the whole window, which matters as
    far as the power at its end differs from that at its start.

    Args:
        tracks: each device's counter, J.
        span: the window.
    """
    return Doubt(edges_j=sum(_counter_edges_j(track, span) for track in tracks))


def _counter_edges_j(track: Track, span: Span) -> float:
    loose = 2 * _misfit_j2(track, span)
    rests_s = step_s(track, span)
    local_s = min(_LOCAL_STEPS * max(rests_s, 1 / span.hz), span.seconds)
    begin_w = (track.at(span.w0_s + local_s) - track.at(span.w0_s)) / local_s
    end_w = (track.at(span.w1_s) - track.at(span.w1_s - local_s)) / local_s
    lags = 2 if rests_s >= SCRAPED_S else 1
    rested = lags * (begin_w**2 + end_w**2) * (rests_s * _UNIFORM_SD) ** 2
    moved_j = lags * (rests_s or 1 / span.hz) * (end_w - begin_w)
    return math.hypot(_Z95 * math.sqrt(max(loose, rested)), moved_j)


def _misfit_j2(track: Track, span: Span) -> float:
    """Return the mean square of a counter's readings against the line through their neighbours."""
    times_s, values = track.around(span.w0_s, span.w1_s)
    points = list(zip(times_s, values, strict=True))
    squares = [
        (y - x - (z - x) * (u - t) / (v - t)) ** 2
        for (t, x), (u, y), (v, z) in zip(points, points[1:], points[2:], strict=False)
    ]
    return math.fsum(squares) / len(squares) if squares else 0.0
