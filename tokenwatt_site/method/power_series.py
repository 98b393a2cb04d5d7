"""The power of all devices over a window, for a chart."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.span import Span
from tokenwatt_site.method.track import Track, usable


def power_series(
    samples: Iterable[PowerSample], devices: Sequence[str], span: Span, step_s: float
) -> tuple[list[float], list[float | None]]:
    """Return times from the window's start, s, and the mean power around each, W.

    The window is cut into equal steps of about ``step_s``; a step's power is its energy by the
    trapezoid rule over its length, summed over ``devices``, and stands at its middle. It is None
    where a device wasn't read or its readings are too far apart.
    """
    near = span.near(samples)
    tracks = [
        Track.of(
            (sample.t_s, sample.power_w)
            for sample in near
            if sample.device == device and sample.power_w and usable(sample.power_w)
        )
        for device in devices
    ]
    steps = max(round(span.seconds / step_s), 1)
    edges_s = [span.w0_s + span.seconds * k / steps for k in range(steps)]
    bins = list(pairwise([*edges_s, span.w1_s]))
    times_s = [(start_s + end_s) / 2 - span.w0_s for start_s, end_s in bins]
    return times_s, [_mean_w(tracks, start_s, end_s, span.gap_s) for start_s, end_s in bins]


def _mean_w(tracks: Sequence[Track], start_s: float, end_s: float, gap_s: float) -> float | None:
    for track in tracks:
        if not track.brackets(start_s, end_s) or track.longest_step_s(start_s, end_s) > gap_s:
            return None
    return sum(track.area(start_s, end_s) for track in tracks) / (end_s - start_s)
