"""What a search knows of a server: its windows, the twin, the estimate and its error."""

import math
from collections.abc import Sequence

from tokenwatt_site.method.adaptive_facts import ModelFacts, SearchFacts
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.balance import Balanced, balance
from tokenwatt_site.method.counted import MISS_SHARE
from tokenwatt_site.method.probe import Measured, Probe
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.twin import Guess, Mirror, Twin, twin_of
from tokenwatt_site.method.twin_drift import change_of
from tokenwatt_site.method.twin_error import Error, error_of
from tokenwatt_site.method.twin_player import UNLIMITED
from tokenwatt_site.method.twin_scores import Limits
from tokenwatt_site.method.twin_stream import Stream

NEAR = (0.88, 1.12)
"""Windows whose rate is within these of the estimate tell what happens there."""
_NEAR_LEAST_S = 80.0
_NEAR_MOST = 8
"""More of them would cost time and tell little."""
_LAST = 6
"""With less than that near, so many of the last ones are taken, wherever they are."""
CORR_LEAST = 0.5
TOP = 0.97
"""The estimate stays below the lowest rate whose short window was given up, by this factor."""
_QUIET = 0.02
"""Up to this error a host is quiet; from twice that on the margin is wider by all its caution."""
_FIRST_STAY_S = 3.0
_IN_FLIGHT_GROWTH = 1.8
"""d ln(requests in flight)/d ln(rate), roughly, near a boundary."""
_FAR = 2.0
"""Further above the boundary no server is steady: what was fitted says nothing of it."""
Z95 = 1.96


class Model:
    """The windows of a search and what they say."""

    def __init__(self, setting: Setting, facts: SearchFacts) -> None:
        self._setting = setting
        self._facts = facts
        self._limits = Limits.of(setting.slo)
        self._mirror = Mirror(setting.player, self._limits, setting.budget_tokens, setting.replicas)
        self._stream = Stream(
            setting.workload,
            setting.stream_requests,
            derive_seed(setting.seed, "twin"),
            setting.player,
            self._limits,
            setting.replicas,
        )
        self.windows: list[Measured] = []
        """Those that count, in order."""
        self._fresh = 0  # windows before this one are of a server that was faster or slower
        self._straddles = False  # the first fresh one may have been measured while it changed
        self.twin: Twin | None = None
        self.error: Error | None = None
        self.est_rps: float | None = None

    @property
    def trouble(self) -> str | None:
        """Why the twin may not explain luck; None: it came to rest, and moves as the server does.

        As long as there are too few blocks to tell the correlation, it is trusted.
        """
        if self.twin is None:
            return "too few requests to fit it"
        if not self.twin.speed.settled:
            return "no speed makes its scores as high as the server's"
        corr = None if self.error is None else self.error.corr
        if corr is not None and corr < CORR_LEAST:
            return f"it doesn't move as the server does: correlation {corr:.2f}"
        return None

    @property
    def relative_error(self) -> float:
        """The published error of the estimate over it; 0 while there are too few blocks to tell."""
        return (self.error.relative or 0.0) if self.error is not None else 0.0

    @property
    def margin(self) -> float:
        """The error that guard and pass reckon with: wider on a noisy host.

        There the error itself is badly known, and misses come in spells that no window sees all of.
        """
        over = (self.relative_error - _QUIET) / _QUIET
        caution = self._setting.knobs.caution
        return self.relative_error * (1 + caution * max(0.0, min(1.0, over)))

    @property
    def ceiling_rps(self) -> float:
        """What the estimate stays below: short windows that the server, as it is now, gave up."""
        fresh = self.windows[self._fresh :]
        cut = [m.probe.rate_rps for m in fresh if m.aborted and m.probe.phase == "search"]
        return TOP * min(cut, default=math.inf)

    def add(self, measured: Measured) -> None:
        """Count a window in."""
        self.windows.append(measured)
        if self._straddles and len(self.windows) > self._fresh + 1:
            self._fresh += 1
            self._straddles = False

    def refit(self, guess_rps: float, *, rough: bool = False) -> None:
        """Fit the twin to the windows near the estimate, or a first guess of it."""
        guess = Guess(self.est_rps or guess_rps, rough)
        near = self._near(guess.rate_rps)
        twin = twin_of(near, self._mirror, self._stream, self.twin, guess)
        if twin is None:
            return
        self.twin, self.est_rps = twin, min(twin.boundary.rate_rps, self.ceiling_rps)
        self.error = error_of(self._mirror, twin)
        self._publish()

    def drift(self) -> bool:
        """Tell whether the speed changed; what is older is forgotten and the twin fitted anew."""
        change = None if self.twin is None else change_of(self._mirror, self.twin)
        if self.twin is None or change is None:
            return False
        first = self.windows.index(self.twin.replays[change.window].measured)
        newest = first == len(self.windows) - 1
        self._fresh = first + (change.within and not newest)
        self._straddles = change.within and newest
        self.refit(self.windows[-1].probe.rate_rps)
        return True

    def bound(self, rate_rps: float) -> None:
        """Set the estimate to what a bracket allows."""
        self.est_rps = rate_rps
        self._publish()

    def candidate_rps(self) -> float:
        """Return the rate to confirm: below the estimate by guard, error, and planned misses."""
        knobs = self._setting.knobs
        est_rps, twin = self._known()
        planned = math.log(MISS_SHARE / knobs.planned_share) / max(twin.boundary.slope, 1e-9)
        below = max(knobs.guard, knobs.guard_errors * self.margin, planned)
        return est_rps * (1 - min(knobs.guard_max, below))

    def in_flight(self, rate_rps: float) -> int:
        """Return how many requests a steady server would have in flight."""
        if self.twin is None:
            return round(_FIRST_STAY_S * rate_rps)
        near = self.twin.boundary.near
        growth: float = min(rate_rps / near.rate_rps, _FAR) ** _IN_FLIGHT_GROWTH
        return round(near.in_flight * growth)

    def balanced(self, probe: Probe) -> Balanced:
        """Choose the schedule of a window."""
        _, twin = self._known()
        params = twin.params
        steady = self._stream.steady(params, probe.rate_rps)
        setting = self._setting
        return balance(probe, setting.workload, setting.seed, self._mirror, params, steady)

    def _known(self) -> tuple[float, Twin]:
        if self.est_rps is None or self.twin is None:
            raise ValueError("there is no twin yet")
        return self.est_rps, self.twin

    def _near(self, est_rps: float) -> Sequence[Measured]:
        fresh = self.windows[self._fresh :]
        low, high = (factor * est_rps for factor in NEAR)
        near = [m for m in fresh if low <= m.probe.rate_rps <= high]
        length_s = sum(min(m.w1_s, m.look_s) - m.w0_s for m in near)
        return near[-_NEAR_MOST:] if length_s >= _NEAR_LEAST_S else fresh[-_LAST:]

    def _publish(self) -> None:
        facts, twin, est = self._facts, self.twin, self.est_rps
        facts.est_rps = est
        if twin is None or est is None:
            return
        facts.kappa = twin.speed.kappa
        facts.bound_by = ("ttft", "tpot")[twin.boundary.kind]
        params = twin.params
        facts.model = ModelFacts(
            params.fixed_s,
            params.sequence_s,
            params.root_s,
            params.prefill_s,
            params.token_s,
            params.square_s,
            params.budget_tokens,
            None if params.max_sequences == UNLIMITED else params.max_sequences,
        )
        if self.error is not None:
            facts.corr, facts.resid_se = self.error.corr, self.error.residual
            facts.error = self.error.relative
        if facts.error is not None:
            half = Z95 * facts.error
            facts.interval_rps = (est * (1 - half), est * (1 + half))
