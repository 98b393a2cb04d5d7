"""The walk of the adaptive search: short rungs, a window at the knee, then confirm windows.

A walk is a generator that yields the window it wants measured and is sent what came of it. A twin,
fitted to the records of the requests, proposes the rates and explains luck; it never replaces a
count: a rate passes only if its counted misses are at most 1 %.
"""

import math
from collections.abc import Generator

from tokenwatt_site.method.adaptive_asking import Asking, Ended, Step, rate_words
from tokenwatt_site.method.adaptive_confirm import Confirm
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.adaptive_model import TOP, Model
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.counted import MISS_SHARE, missed
from tokenwatt_site.method.probe import Cut, Done, Measured, Probe
from tokenwatt_site.method.twin_scores import Limits
from tokenwatt_site.method.window import MIN_REQUESTS, window_length_s

RAMP_WARM_S, RAMP_TAIL_S = 12.0, 5.0
RAMP_CUT = Cut(over=8, share=0.1, few=30, few_share=0.3)
KNEE_CUT = Cut(over=20, share=0.15)
CUTS_MAX, RUNGS_MAX, KNEES_MAX = 8, 20, 3
RATE_LEAST_RPS = 0.05
_FEW = 40
"""A rung of fewer requests is too few to fit."""
_NEAR = (0.88, 1.10)
_BRACKET = 1.2
"""A rung ends the ramp when the estimate over its rate is within these, or the two ends are as
near as this factor."""
_FALL = 4.0
"""Nor further below a rate that was cut than this: an overloaded server says little of it."""
_CLEAN = 0.95
"""And is no lower than a rung without misses, by this."""
_GROWTH_FIRST, _GROWTH, _FIRST = 4.0, 2.0, 2
"""How far one rung is above the one before: the first so many, and the others."""
_BELOW = 0.85
_KNEE = 0.98
"""The rate of the window at the knee, over the estimate."""

Walk = Generator[Probe, Measured, Done]
Phase = Generator[Probe, Measured, None]


def walk(setting: Setting, facts: SearchFacts) -> Walk:
    """Search; ``facts`` are kept up to date."""
    return _Search(setting, facts).run()


class _Search:
    def __init__(self, setting: Setting, facts: SearchFacts) -> None:
        self._setting, self._facts = setting, facts
        self._knobs = setting.knobs
        self._limits = Limits.of(setting.slo)
        self._asking = Asking(setting.sweep.max_minutes)
        self._model = Model(setting, facts)
        self._confirm = Confirm(setting, facts, self._model, self._asking)
        self._lo_rps, self._hi_rps = 0.0, math.inf  # the highest that wasn't cut, the lowest cut
        self._clean_rps = 0.0  # the highest with at most 1 % of misses

    def run(self) -> Walk:
        try:
            yield from self._ramp()
            yield from self._knee()
            return (yield from self._confirm.run(self._clean_rps))
        except Ended as end:
            return self._asking.done(end.word, None, end.text, invalid=end.invalid)

    def _ramp(self) -> Phase:
        """Take rungs until the estimate is near to one that wasn't cut, or between two rungs."""
        rate, top = float(self._setting.sweep.start_rps), float(self._setting.sweep.max_rps)
        cuts = 0
        for rung in range(RUNGS_MAX):
            measured = yield from self._rung(rate)
            clean = self._note(measured)
            if clean and rate >= top:
                raise Ended(
                    "undecided",
                    f"sweep.max_rps {rate_words(top)} kept both limits in a short window: the"
                    " boundary lies above",
                )
            cuts += measured.aborted
            est = self._estimate(measured, clean=clean)
            if self._near(measured, est):
                return
            rate = min(top, self._next_rung(measured, est, rung))
            if cuts == CUTS_MAX or rate < RATE_LEAST_RPS:
                raise Ended("no_rate", f"no rate down to {rate_words(rate)} kept both limits")

    def _rung(self, rate: float) -> Step:
        length_s = self._knobs.ramp_s
        if self._hi_rps < math.inf:  # the boundary is near: worth its time at a low rate too
            length_s = window_length_s(length_s, rate, _FEW)
        probe = Probe(
            rate_rps=rate,
            phase="search",
            window_s=length_s,
            warmup_s=RAMP_WARM_S,
            min_requests=0,
            index=self._asking.index,
            tail_s=RAMP_TAIL_S,
            inject=self._model.in_flight(rate),
            cut=RAMP_CUT,
        )
        return (yield from self._window(probe))

    def _window(self, probe: Probe) -> Step:
        measured = yield from self._asking.window(probe)
        self._model.add(measured)
        return measured

    def _note(self, measured: Measured) -> bool:
        """Move the ends of the bracket; return whether the window was clean."""
        rate = measured.probe.rate_rps
        if measured.aborted:
            self._hi_rps = min(self._hi_rps, rate)
            return False
        self._lo_rps = max(self._lo_rps, rate)
        clean = missed(measured, self._limits) <= MISS_SHARE * measured.n
        if clean:
            self._clean_rps = max(self._clean_rps, rate)
        return clean

    def _estimate(self, measured: Measured, *, clean: bool) -> float:
        """Return the estimate after a rung; while there is no twin, none (+inf) or half its rate.

        A rung of few requests is not fitted as long as no rate was cut.
        """
        rate, open_end = measured.probe.rate_rps, self._hi_rps == math.inf
        if open_end and measured.n < _FEW:
            return math.inf
        self._model.refit(rate, rough=True)
        est = self._model.est_rps
        if est is None:
            est = rate / 2 if measured.aborted else math.inf
        elif measured.aborted:
            est = max(est, rate / _FALL)
        if clean and open_end:
            est = max(est, _CLEAN * rate)
        ceiling = TOP * self._hi_rps
        est = min(max(est, self._lo_rps), ceiling) if not open_end else est
        if self._model.est_rps is not None:
            self._model.bound(est)
        return est

    def _near(self, measured: Measured, est: float) -> bool:
        low, high = _NEAR
        if not measured.aborted and low < est / measured.probe.rate_rps < high:
            return True
        return self._lo_rps > 0 and self._hi_rps / self._lo_rps < _BRACKET

    def _next_rung(self, measured: Measured, est: float, rung: int) -> float:
        rate, lo = measured.probe.rate_rps, self._lo_rps
        if measured.aborted:
            return max(min(est, _BELOW * rate), min(1.02 * lo, 0.9 * rate))
        growth = _GROWTH_FIRST if rung < _FIRST and est < math.inf else _GROWTH
        return min(est, growth * rate, math.sqrt(lo * self._hi_rps))

    def _knee(self) -> Phase:
        """Measure just below the estimate until it stays there."""
        for _ in range(KNEES_MAX):
            est = self._model.est_rps
            if est is None:
                return
            rate = min(_KNEE * est, float(self._setting.sweep.max_rps))
            probe = Probe(
                rate_rps=rate,
                phase="search",
                window_s=window_length_s(self._knobs.knee_s, rate, MIN_REQUESTS),
                warmup_s=self._knobs.warm_s,
                min_requests=MIN_REQUESTS,
                index=self._asking.index,
                tail_s=self._knobs.tail_s,
                inject=self._model.in_flight(rate),
                cut=KNEE_CUT,
            )
            measured = yield from self._window(probe)
            self._note(measured)
            self._model.refit(rate)
            if self._model.drift():
                self._facts.drift = True
            est = self._model.est_rps or rate
            if max(est / rate, rate / est) <= self._knobs.knee_gap:
                return
