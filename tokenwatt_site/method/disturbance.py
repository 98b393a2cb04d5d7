"""What makes a server slower or faster than its formula: noise, drift and pauses."""

import math

from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.shape import Shape

_REDRAWS_PER_TAU = 50
"""Finer draws cost time and change nothing: neighbours correlate by 0.98."""


class Disturbance:
    """The disturbances of one server, drawn from ``seed``.

    ``slowness`` multiplies the time of a step and holds until ``until_s``; the next pause is at
    ``stall_at_s``.
    """

    def __init__(self, shape: Shape, seed: int) -> None:
        self._shape = shape
        self._noise_draws = rng(seed, "server noise")
        self._stall_draws = rng(seed, "server stalls")
        self._log_noise = self._noise_draws.gauss(0.0, shape.noise_sd)
        self._redrawn_s = 0.0
        self._every_s = shape.noise_tau_s / _REDRAWS_PER_TAU if shape.noise_sd else math.inf
        self.stall_at_s = self._next_stall_s(0.0)
        self.slowness = 1.0
        self.until_s = 0.0
        self.renew(0.0)

    def renew(self, t_s: float) -> None:
        """Draw the slowness that holds from ``t_s`` on.

        The noise keeps its standard deviation σ and has the autocorrelation exp(−Δt/τ):
        j(t + Δt) = ρ·j(t) + σ·√(1 − ρ²)·N(0, 1), with ρ = exp(−Δt/τ).
        """
        shape = self._shape
        if shape.noise_sd and t_s > self._redrawn_s:
            rho = math.exp((self._redrawn_s - t_s) / shape.noise_tau_s)
            spread = shape.noise_sd * math.sqrt(1 - rho * rho)
            self._log_noise = rho * self._log_noise + self._noise_draws.gauss(0.0, spread)
            self._redrawn_s = t_s
        drifted = t_s >= shape.drift_after_s
        self.slowness = math.exp(self._log_noise) / (shape.drift_speed if drifted else 1.0)
        self.until_s = min(t_s + self._every_s, math.inf if drifted else shape.drift_after_s)

    def pause_s(self, t_s: float) -> float:
        """Return how long the server stands still at ``t_s`` for the pauses that are due."""
        total_s = 0.0
        while self.stall_at_s <= t_s:
            total_s += self._stall_draws.expovariate(1 / self._shape.stall_s)
            self.stall_at_s = self._next_stall_s(self.stall_at_s)
        return total_s

    def skip(self, t_s: float) -> None:
        """Forget the pauses up to ``t_s``: they fell into idle time and delayed nobody."""
        if self.stall_at_s <= t_s:
            self.stall_at_s = self._next_stall_s(t_s)

    def _next_stall_s(self, t_s: float) -> float:
        rate = self._shape.stalls_per_s
        return t_s + self._stall_draws.expovariate(rate) if rate else math.inf
