"""The ladder: which rate to measure next, as a pure function of the windows measured so far.

The search is written as a walk, a generator that yields the rate it wants measured and is sent the
verdict. To know what comes next, the walk is walked again over the whole history; nothing is kept
between two questions, so that a run resumed or repeated asks for the same windows.
"""

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tokenwatt_site.documents.spec import SpecMeasurement, SpecSweep
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.probe import Done, Measured, Probe
from tokenwatt_site.method.window import MIN_REQUESTS, Phase, window_length_s
from tokenwatt_site.units import fmt

MIN_CONFIRM_REQUESTS = 300
MOST_CLIMBS = 100
MOST_WINDOWS = 500
"""What a search may come to at worst: days. More is a slip in a knob."""


class Bounds(NamedTuple):
    """What a search may cost, invalid windows that are repeated not counted."""

    windows_min: int
    windows_max: int
    minutes_best: float
    minutes_worst: float


_Walk = Generator[tuple[Phase, float], Measured, float | None]
"""Yields phase and rate of the next window, is sent the verdict, returns the confirmed rate."""
_Steps = Generator[tuple[Phase, float], Measured, None]


def check_sweep(sweep: SpecSweep, repeats: int) -> None:
    """Refuse a ladder that can't be run as asked; ``repeats`` are those of a confirm.

    Raises:
        UsageError: knobs that contradict each other, of the other strategy, or out of all measure.
    """
    for key in ("mode", "max_minutes"):
        if getattr(sweep, key) is not None:
            raise UsageError(
                f"spec field sweep.{key} belongs to the adaptive search", "remove it for the ladder"
            )
    if sweep.rates is not None and not sweep.rates:
        raise UsageError("spec field sweep.rates is empty", "name rates, or null to search")
    check_rates(sweep)
    _check_size(sweep, repeats)


def check_rates(sweep: SpecSweep) -> None:
    """Refuse a rate above the highest one.

    Raises:
        UsageError: naming the key.
    """
    named = {"rates": max(sweep.rates or [0]), "floor_rps": sweep.floor_rps or 0}
    for key, rate in {"start_rps": sweep.start_rps, **named}.items():
        if rate > sweep.max_rps:
            raise UsageError(
                f"spec field sweep.{key}: {rate:g} is above max_rps {sweep.max_rps:g}",
                "lower it, or raise sweep.max_rps",
            )


def _check_size(sweep: SpecSweep, repeats: int) -> None:
    climbs = _climb_steps(sweep) if sweep.rates is None else 0
    if climbs > MOST_CLIMBS:
        raise UsageError(
            f"sweep.growth {sweep.growth:g} takes {climbs:,} windows from start_rps "
            f"{sweep.start_rps:g} to max_rps {sweep.max_rps:g}; at most {MOST_CLIMBS} are allowed",
            "raise sweep.growth, or bring start_rps and max_rps nearer to the boundary",
        )
    if sweep.rates is not None:
        most = len(set(sweep.rates)) * repeats
    else:
        confirms = sweep.confirm_steps if sweep.confirm == "bisect" else sweep.max_backoffs
        most = max(climbs, sweep.max_backoffs) + 1 + sweep.bisect_steps + (1 + confirms) * repeats
    if most > MOST_WINDOWS:
        raise UsageError(
            f"the search may take {most:,} windows; at most {MOST_WINDOWS} are allowed",
            "lower measurement.repeats, or the steps and rates of sweep",
        )


def next_probe(
    history: Sequence[Measured], sweep: SpecSweep, measurement: SpecMeasurement
) -> Probe | Done:
    """Return the window to measure after ``history``, or the answer.

    An invalid window is measured once more under a new index; twice in a row ends the search.
    """
    walk = _walk(sweep, measurement.repeats)
    repeated = False
    try:
        phase, rate_rps = next(walk)
        for measured in history:
            if measured.valid:
                phase, rate_rps = walk.send(measured)
            elif repeated:
                return _invalid(history, measured)
            repeated = not measured.valid
    except StopIteration as end:
        return _answer(history, sweep, end.value)
    return _probe(phase, rate_rps, len(history), measurement)


def bounds(sweep: SpecSweep, measurement: SpecMeasurement, tail_s: float = 0.0) -> Bounds:
    """Return the least and the most that a search may cost.

    The least is a search whose confirm windows all pass. The most fails as late as it can: for
    each number of steps up (or down) before the first fail, everything after it fails, since lower
    rates take longer windows, and a confirm fails in its last repeat.

    Args:
        sweep: the knobs of the search.
        measurement: the lengths of the windows.
        tail_s: longest time after a window until its requests are decided; only in the worst case.
    """
    up, down = range(1, _climb_steps(sweep) + 2), range(1, sweep.max_backoffs + 1)
    easy = [_play(sweep, measurement, turn, confirms=True) for turn in up]
    hard = [_play(sweep, measurement, turn, confirms=False) for turn in up]
    hard += [_play(sweep, measurement, -turn, confirms=False) for turn in down]
    best = [sum(p.warmup_s + p.window_s for p in probes) for probes in easy]
    worst = [sum(p.warmup_s + p.window_s + tail_s for p in probes) for probes in easy + hard]
    return Bounds(
        windows_min=min(map(len, easy)),
        windows_max=max(map(len, easy + hard)),
        minutes_best=min(best) / 60,
        minutes_worst=max(worst) / 60,
    )


def _walk(sweep: SpecSweep, repeats: int) -> _Walk:
    return _listed(sweep.rates, repeats) if sweep.rates is not None else _ladder(sweep, repeats)


def _listed(rates: Iterable[float], repeats: int) -> _Walk:
    """Measure just these rates, upwards, each until it fails or all of its windows passed.

    A pass above a rate that failed is luck, and not the answer.
    """
    best, failed = None, False
    for rate in sorted({float(rate) for rate in rates}):
        last = yield from _hold("rate", rate, repeats)
        failed = failed or not (last.passed or last.undecided)
        if last.passed and not failed:
            best = rate
    return best


def _ladder(sweep: SpecSweep, repeats: int) -> _Walk:
    """Find the highest rate that passes short windows, then confirm it or a lower one."""
    bracket = _Bracket([])
    yield from _search(sweep, bracket)
    if not bracket.passed:
        return None
    top = bracket.passed[-1]
    if (yield from _hold("confirm", top, repeats)).passed:
        return top
    if sweep.confirm == "bisect":
        return (yield from _confirm_between(bracket.passed, sweep, repeats))
    for _ in range(sweep.max_backoffs):
        top *= sweep.backoff
        if (yield from _hold("confirm", top, repeats)).passed:
            return top
    return None


@dataclass(slots=True)
class _Bracket:
    """What the search windows have shown."""

    passed: list[float]
    """Rates that passed, upwards."""
    failed: float | None = None
    """The lowest rate that didn't."""
    undecided: bool = False
    """The last window held too few requests."""


def _search(sweep: SpecSweep, bracket: _Bracket) -> _Steps:
    """Walk up to the first fail, or down to the first pass; then bisect on the logarithm."""
    rate = float(sweep.start_rps)
    yield from _try(rate, bracket)
    if bracket.passed:
        while bracket.failed is None and rate < sweep.max_rps:
            rate = min(rate * sweep.growth, float(sweep.max_rps))
            yield from _try(rate, bracket)
    else:
        for _ in range(sweep.max_backoffs):
            if bracket.passed or bracket.undecided:
                break  # found; or a lower rate would hold even fewer requests
            rate *= sweep.backoff
            yield from _try(rate, bracket)
    if bracket.passed and bracket.failed is not None:
        for _ in range(sweep.bisect_steps):
            yield from _try(math.sqrt(bracket.passed[-1] * bracket.failed), bracket)


def _try(rate_rps: float, bracket: _Bracket) -> _Steps:
    verdict = yield "search", rate_rps
    bracket.undecided = verdict.undecided
    if verdict.passed:
        bracket.passed.append(rate_rps)
    else:
        bracket.failed = rate_rps


def _hold(
    phase: Phase, rate_rps: float, repeats: int
) -> Generator[tuple[Phase, float], Measured, Measured]:
    """Measure full windows at one rate until one doesn't pass; return the last."""
    verdict = yield phase, rate_rps
    for _ in range(repeats - 1):
        if verdict.passed:
            verdict = yield phase, rate_rps
    return verdict


def _confirm_between(passed: Sequence[float], sweep: SpecSweep, repeats: int) -> _Walk:
    """Bisect between a rate taken for safe and the highest search pass, whose confirm failed."""
    best, high = None, passed[-1]
    for _ in range(sweep.confirm_steps):
        low = _floor(passed, high, sweep) if best is None else best
        rate = math.sqrt(low * high)
        if (yield from _hold("confirm", rate, repeats)).passed:
            best = rate
        else:
            high = rate
    return best


def _floor(passed: Sequence[float], failed: float, sweep: SpecSweep) -> float:
    """Return the lower end of ``confirm: bisect`` while no confirm has passed.

    floor_rps; without one, the highest rate that passed in search, or start_rps, as far below the
    failed rate as one backoff: search passes just below it were as lucky as its own. Where there
    is none, what backing off could reach.
    """
    if sweep.floor_rps is not None:
        below = [sweep.floor_rps] if sweep.floor_rps < failed else []
    else:
        below = [rate for rate in (*passed, sweep.start_rps) if rate <= failed * sweep.backoff]
    return max(below, default=failed * sweep.backoff ** max(1, sweep.max_backoffs))


def _probe(phase: Phase, rate_rps: float, index: int, measurement: SpecMeasurement) -> Probe:
    searching = phase == "search"
    nominal_s = measurement.search_window_s if searching else measurement.window_s
    least = MIN_REQUESTS if searching else MIN_CONFIRM_REQUESTS
    window_s = window_length_s(nominal_s, rate_rps, least)
    return Probe(rate_rps, phase, window_s, measurement.warmup_s, least, index)


def _answer(history: Sequence[Measured], sweep: SpecSweep, rate_rps: float | None) -> Done:
    low, high = _ends(history)
    if rate_rps is not None:
        text = f"every full window at {_rate(rate_rps)} kept both limits"
        if high is None:
            text += "; no higher rate was measured, so the boundary lies above"
        return Done("met", rate_rps, low, high, text)
    if high is None:
        text = f"the windows held fewer than {MIN_REQUESTS} requests, too few for a verdict"
        return Done("undecided", None, low, high, text)
    text = f"no rate kept both limits in every window; the lowest that failed was {_rate(high)}"
    return Done("failed" if sweep.rates is not None else "no_rate", None, low, high, text)


def _invalid(history: Sequence[Measured], last: Measured) -> Done:
    low, high = _ends(history)
    rate = _rate(last.probe.rate_rps)
    text = f"the window at {rate} was invalid twice: it says nothing about the server"
    return Done("undecided", None, low, high, text, invalid=True)


def _rate(rate_rps: float) -> str:
    return str(fmt(rate_rps, "rps"))


def _ends(history: Sequence[Measured]) -> tuple[float | None, float | None]:
    """Return the highest rate that passed below any that failed, and the lowest that failed."""
    counted = [m for m in history if m.valid and not m.undecided]
    high = min((m.probe.rate_rps for m in counted if not m.passed), default=None)
    passed = [m.probe.rate_rps for m in counted if m.passed]
    return max((r for r in passed if high is None or r < high), default=None), high


def _climb_steps(sweep: SpecSweep) -> int:
    """Return how many times the rate grows from start_rps to max_rps."""
    span = (math.log(sweep.max_rps) - math.log(sweep.start_rps)) / math.log(sweep.growth)
    return max(0, math.ceil(span - 1e-9))


def _play(
    sweep: SpecSweep, measurement: SpecMeasurement, turn: int, *, confirms: bool
) -> list[Probe]:
    """Return the windows of a search whose first ``turn`` windows pass and the others fail.

    A negative turn: that many fail first, then one passes. A confirm fails in its last repeat, or,
    with ``confirms``, never.
    """
    walk = _walk(sweep, measurement.repeats)
    probes: list[Probe] = []
    streak = 0
    try:
        phase, rate_rps = next(walk)
        while True:
            probe = _probe(phase, rate_rps, len(probes), measurement)
            if phase == "search":
                passed = probe.index < turn if turn >= 0 else probe.index == -turn
            else:
                streak = streak % measurement.repeats + 1
                passed = confirms or streak < measurement.repeats
            probes.append(probe)
            phase, rate_rps = walk.send(Measured(probe, passed, valid=True))
    except StopIteration:
        return probes
