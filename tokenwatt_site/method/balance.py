"""The balanced schedule: of several random ones, the one whose luck is nearest to the long run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site.method.probe import Probe
from tokenwatt_site.method.rng import derive_seed, rng
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.stationary import injected, residuals
from tokenwatt_site.method.twin import Mirror
from tokenwatt_site.method.twin_player import TwinParams
from tokenwatt_site.method.twin_scores import share_over
from tokenwatt_site.method.twin_stream import Steady
from tokenwatt_site.method.workloads import Workload

DRAWN = 16
LEVELS = (0.85, 0.9, 0.95, 1.0)
"""Scores over which the shares of requests are compared."""
_TAIL_S = 10.0
"""Arrivals after the window that the twin is given."""


@dataclass(frozen=True, slots=True)
class Balanced:
    """Which schedule was taken, and why."""

    index: int
    """The window's."""
    drawn: int
    taken: int
    shares: tuple[float, ...]
    """On the twin, over :data:`LEVELS`."""
    long_run: tuple[float, ...]


def balance(
    probe: Probe,
    workload: Workload,
    seed: int,
    mirror: Mirror,
    params: TwinParams,
    steady: Steady,
) -> Balanced:
    """Choose the schedule of a window, to be drawn with the purpose ``balance/<taken>``.

    Args:
        probe: the window.
        workload: lengths of the requests.
        seed: the spec's.
        mirror: who plays the twin.
        params: the twin.
        steady: the twin's long run at the window's rate.
    """
    kind = steady.binding
    long_run = tuple(steady.share_over(kind, level) for level in LEVELS)
    flying = residuals(workload, probe.inject, rng(seed, "residuals", probe.index))
    shares: list[tuple[float, ...]] = []
    for number in range(DRAWN):
        schedule = injected(_candidate(probe, workload, seed, number), flying)
        shares.append(_shares(schedule, probe, mirror, params, kind))
    n = probe.rate_rps * probe.window_s
    taken = min(range(DRAWN), key=lambda number: distance(shares[number], long_run, n))
    return Balanced(probe.index, DRAWN, taken, shares[taken], long_run)


def distance(shares: Sequence[float], long_run: Sequence[float], n: float) -> float:
    """Return how far a window's shares are from the long run's: Σ |ln ratio|, of 1/n more each."""
    return math.fsum(
        abs(math.log((share + 1 / n) / (wanted + 1 / n)))
        for share, wanted in zip(shares, long_run, strict=True)
    )


def purpose(number: int) -> str:
    """Return the purpose of the seed with which one of the schedules is drawn."""
    return f"balance/{number}"


def _candidate(probe: Probe, workload: Workload, seed: int, number: int) -> Schedule:
    """Draw one of the schedules, as far as the twin needs it."""
    horizon_s = probe.warmup_s + probe.window_s + _TAIL_S
    own = derive_seed(seed, purpose(number), probe.index)
    return poisson_schedule(workload, probe.rate_rps, horizon_s, own)


def _shares(
    schedule: Schedule, probe: Probe, mirror: Mirror, params: TwinParams, kind: int
) -> tuple[float, ...]:
    look_s = probe.warmup_s + probe.window_s + _TAIL_S
    columns = (schedule.arrival_s, schedule.input_tokens, schedule.output_tokens)
    scores = mirror.play(params, columns, look_s, kind)
    w1_s = probe.warmup_s + probe.window_s
    cohort = sorted(
        score
        for at_s, score in zip(
            schedule.arrival_s[schedule.injected :], scores[schedule.injected :], strict=True
        )
        if probe.warmup_s <= at_s < w1_s
    )
    return tuple(share_over(cohort, level) if cohort else 0.0 for level in LEVELS)
