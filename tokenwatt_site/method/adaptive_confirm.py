"""The last part of the adaptive search: full windows at a rate below the estimate, until one holds.

A candidate passes when it has its windows, the misses counted in them are at most 1 %, and the
estimate, less its error, is still above it. Without a usable twin, rates are tried downwards
from one that a short window passed, and each of three long windows must pass by itself.
"""

import math
from collections.abc import Generator
from dataclasses import replace

from tokenwatt_site.method.adaptive_asking import Asking, Step, rate_words
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.adaptive_model import CORR_LEAST, Z95, Model
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.balance import purpose
from tokenwatt_site.method.counted import MISS_SHARE, met, misses, requests, shown_by_counts
from tokenwatt_site.method.ladder import MIN_CONFIRM_REQUESTS
from tokenwatt_site.method.probe import Cut, Done, Measured, Probe, Word
from tokenwatt_site.method.twin_scores import Limits
from tokenwatt_site.method.window import window_length_s
from tokenwatt_site.units import plural

FALLBACK_STEP, FALLBACK_S, FALLBACK_CONFIRMS, FALLBACKS_MAX = 0.95, 300.0, 3, 8
STEP_DOWN = 0.985
"""A candidate that failed is followed by one at most this far below."""
_NOISY = 0.03
"""An error of the estimate above this is named in the answer."""
_CUT_SIGMAS = 1.5 * math.sqrt(3)
"""A candidate is given up at the allowed misses plus this times their root."""

Answer = Generator[Probe, Measured, Done]
Held = Generator[Probe, Measured, str]


class Confirm:
    """Confirms a rate; see :meth:`run`."""

    def __init__(self, setting: Setting, facts: SearchFacts, model: Model, asking: Asking) -> None:
        self._setting, self._knobs = setting, setting.knobs
        self._facts, self._model, self._asking = facts, model, asking
        self._pool: list[Measured] = []
        """Windows at the rate that is confirmed, since it was begun."""

    def run(self, clean_rps: float) -> Answer:
        """Confirm a rate below the estimate; without a twin, below one that a short window passed.

        Args:
            clean_rps: the highest rate of which a short window had at most 1 % of misses.
        """
        model, knobs, facts = self._model, self._knobs, self._facts
        if model.trouble:
            return (yield from self._by_counts(clean_rps))
        facts.twin = "used"
        rate = self._capped(model.candidate_rps())
        while facts.candidates < knobs.candidates:
            facts.candidates += 1
            how = yield from self._hold(rate)
            while how == "restart":
                rate = self._capped(model.candidate_rps())
                how = yield from self._hold(rate)
            if how == "unused":
                return (yield from self._by_counts(clean_rps))
            if how == "passed":
                return self._passed(rate)
            rate = min(model.candidate_rps(), STEP_DOWN * rate)
        return self._asking.done(
            "no_rate",
            None,
            f"none of {facts.candidates} rates kept both limits in its full windows; the last was"
            f" {rate_words(self._pool[-1].probe.rate_rps)}",
        )

    def _capped(self, rate: float) -> float:
        return min(rate, float(self._setting.sweep.max_rps))

    def _hold(self, rate: float) -> Held:
        """Measure full windows at a rate; return passed, failed, restart, or unused (the twin)."""
        self._pool = []
        for number in range(self._knobs.confirms_max):
            measured = yield from self._window(rate, number)
            self._pool.append(measured)
            self._model.refit(rate)
            how = self._verdict(rate, number)
            if how:
                return how
        return "failed"

    def _verdict(self, rate: float, number: int) -> str:
        """Return how a candidate stands after its newest window; empty: it needs another one."""
        model, knobs, facts = self._model, self._knobs, self._facts
        if model.drift():
            facts.drift = True
            if facts.restarts < knobs.restarts_max:
                facts.restarts += 1
                return "restart"
        if model.trouble:
            return "unused"
        est = model.est_rps or 0.0
        if self._pool[-1].aborted or est * (1 - knobs.fail_errors * model.margin) < rate:
            return "failed"
        room = self._capped(model.candidate_rps()) > rate * (1 + knobs.climb)
        if number == 0 and room and facts.climbs < knobs.climbs_max:
            facts.climbs += 1
            return "restart"
        return "passed" if number + 1 >= knobs.confirms and met(self._pool) else ""

    def _window(self, rate: float, number: int) -> Step:
        knobs = self._knobs
        length_s = window_length_s(knobs.confirm_s, rate, MIN_CONFIRM_REQUESTS)
        allowed = MISS_SHARE * rate * length_s * max(knobs.confirms, number + 1)
        over = allowed + _CUT_SIGMAS * math.sqrt(allowed) - misses(self._pool)
        probe = self._probe(rate, length_s, Cut(over=max(over, 0.0)))
        measured = yield from self._asking.window(probe, self._balanced)
        self._model.add(measured)
        return measured

    def _probe(self, rate: float, length_s: float, cut: Cut | None) -> Probe:
        return Probe(
            rate_rps=rate,
            phase="confirm",
            window_s=length_s,
            warmup_s=self._knobs.warm_s,
            min_requests=MIN_CONFIRM_REQUESTS,
            index=self._asking.index,
            inject=self._model.in_flight(rate),
            cut=cut,
        )

    def _balanced(self, probe: Probe) -> Probe:
        if self._setting.workload.arrivals != "poisson":
            return probe
        balanced = self._model.balanced(probe)
        self._facts.balanced.append(balanced)
        return replace(probe, draw=purpose(balanced.taken))

    def _passed(self, rate: float) -> Done:
        model, facts = self._model, self._facts
        est, error = model.est_rps or 0.0, model.error
        sure = (
            self._setting.mode != "quick"
            and not facts.drift
            and error is not None
            and error.relative is not None
            and error.corr is not None
            and error.corr >= CORR_LEAST
            and est * (1 - error.relative) > rate
        )
        word: Word = "proven" if sure else "met"
        text = self._words(rate)
        if model.relative_error > _NOISY:
            width_pct = 100 * Z95 * model.relative_error
            text += f"; noise of the server limits its estimate to ± {width_pct:.0f} %"
        return self._asking.done(word, rate, text)

    def _words(self, rate: float) -> str:
        n, count = len(self._pool), misses(self._pool)
        return (
            f"{count:,} of {requests(self._pool):,} requests missed a limit in"
            f" {plural(n, 'full window')} at {rate_words(rate)}"
        )

    def _by_counts(self, clean_rps: float) -> Answer:
        """Try rates downwards; each of three long windows at one must pass by itself."""
        self._facts.twin, self._facts.stopped = "unused", self._model.trouble
        rate = min(FALLBACK_STEP * clean_rps, self._ceiling())
        for _ in range(FALLBACKS_MAX):
            if not rate:
                break
            self._facts.candidates += 1
            if (yield from self._all_pass(rate)):
                limits = Limits.of(self._setting.slo)
                shown = self._setting.mode != "quick" and shown_by_counts(self._pool, limits)
                return self._asking.done("proven" if shown else "met", rate, self._words(rate))
            rate *= FALLBACK_STEP
        return self._asking.done("no_rate", None, "no rate kept both limits in each of its windows")

    def _ceiling(self) -> float:
        """Return what a rate tried by counts stays below: rates that failed, a twin's candidate."""
        failed = min((m.probe.rate_rps for m in self._pool if not met([m])), default=math.inf)
        known = self._model.twin is not None and self._model.twin.speed.settled
        return min(STEP_DOWN * failed, self._model.candidate_rps() if known else math.inf)

    def _all_pass(self, rate: float) -> Generator[Probe, Measured, bool]:
        self._pool = []
        named = self._setting.measurement.model_fields_set
        nominal_s = self._knobs.confirm_s if "window_s" in named else FALLBACK_S
        wanted = self._knobs.confirms if "repeats" in named else FALLBACK_CONFIRMS
        length_s = window_length_s(nominal_s, rate, MIN_CONFIRM_REQUESTS)
        for _ in range(wanted):
            allowed = MISS_SHARE * rate * length_s
            cut = Cut(over=allowed + _CUT_SIGMAS * math.sqrt(allowed))
            measured = yield from self._asking.window(self._probe(rate, length_s, cut))
            self._model.add(measured)
            self._pool.append(measured)
            if not met([measured]) or measured.aborted:
                return False
        return True
