"""Power and requests in flight over one window, on an even grid."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.track import Track
from tokenwatt_site.method.window import Window

POINTS = 120


def series(
    window: Window,
    traces: Sequence[RequestTrace],
    samples: Sequence[PowerSample],
    devices: Sequence[str],
    end_s: float,
) -> dict[str, Any]:
    """Return ``documents.run.Series`` of a window, its warm-up and what followed until ``end_s``.

    Power is the sum over the devices at each grid time, None where one has no reading on both
    sides; in flight is what was sent and hasn't ended.
    """
    start_s = window.w0_s - window.warmup_s
    step_s = max(0.1, (end_s - start_s) / POINTS)
    grid = [start_s + i * step_s for i in range(int((end_s - start_s) / step_s) + 1)]
    begun = sorted(t.t_send_s for t in traces if t.t_send_s is not None)
    ended = sorted(t.t_end_s for t in traces if t.t_send_s is not None and t.t_end_s is not None)
    result: dict[str, Any] = {
        "t_s": [round(t - window.w0_s, 3) for t in grid],
        "in_flight": [bisect_right(begun, t) - bisect_right(ended, t) for t in grid],
        "window_s": window.length_s,
        "index": window.index,
    }
    if devices:
        tracks = [
            Track.of(
                (s.t_s, s.power_w) for s in samples if s.device == device and s.power_w is not None
            )
            for device in devices
        ]
        result["power_w"] = [_sum_at(tracks, t) for t in grid]
    return result


def _sum_at(tracks: Sequence[Track], t_s: float) -> float | None:
    if not all(track.brackets(t_s, t_s) for track in tracks):
        return None
    return round(sum(track.at(t_s) for track in tracks), 2)
