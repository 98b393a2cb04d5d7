"""What an adaptive search may cost."""

from tokenwatt_site.documents.spec import SpecSweep
from tokenwatt_site.method.adaptive_confirm import FALLBACK_CONFIRMS, FALLBACK_S, FALLBACKS_MAX
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.adaptive_walk import (
    KNEES_MAX,
    RAMP_TAIL_S,
    RAMP_WARM_S,
    RUNGS_MAX,
)
from tokenwatt_site.method.ladder import MIN_CONFIRM_REQUESTS, Bounds
from tokenwatt_site.method.window import MIN_REQUESTS, window_length_s


def bounds(setting: Setting, tail_s: float = 0.0) -> Bounds:
    """Return the least and the most that a search may cost, invalid windows not counted.

    The least: the first rung is near the boundary, and its first candidate passes. The most: every
    rung and knee that there may be, every candidate and every restart fails with its last window,
    then the twin turns out to be of no use, and the rates that are tried by counts fail so too.
    Windows that are stretched for their requests are counted as at ``start_rps``, above which an
    answer is looked for. ``sweep.max_minutes`` bounds it all.

    Args:
        setting: what the search is given.
        tail_s: longest time after a confirm window until its requests are decided; only in the
            worst case.
    """
    knobs, rate = setting.knobs, float(setting.sweep.start_rps)
    rung_s = RAMP_WARM_S + knobs.ramp_s + RAMP_TAIL_S
    knee_s = knobs.warm_s + knobs.tail_s
    least_s = rung_s + knee_s + knobs.knee_s + knobs.confirms * (knobs.warm_s + knobs.confirm_s)
    full_s = knobs.warm_s + window_length_s(knobs.confirm_s, rate, MIN_CONFIRM_REQUESTS) + tail_s
    long_s = knobs.warm_s + window_length_s(FALLBACK_S, rate, MIN_CONFIRM_REQUESTS) + tail_s
    full = (knobs.candidates + knobs.restarts_max) * knobs.confirms_max + knobs.climbs_max
    long = FALLBACKS_MAX * max(FALLBACK_CONFIRMS, knobs.confirms)
    most_s = (
        RUNGS_MAX * rung_s
        + KNEES_MAX * (knee_s + window_length_s(knobs.knee_s, rate, MIN_REQUESTS))
        + full * full_s
        + long * max(long_s, full_s)
    )
    return Bounds(
        windows_min=2 + knobs.confirms,
        windows_max=RUNGS_MAX + KNEES_MAX + full + long,
        minutes_best=least_s / 60,
        minutes_worst=_capped(most_s / 60, setting.sweep),
    )


def _capped(minutes: float, sweep: SpecSweep) -> float:
    return minutes if sweep.max_minutes is None else min(minutes, sweep.max_minutes)
