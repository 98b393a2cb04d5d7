"""The true SLO boundary of a shape: the rate at which 1 % of the requests miss a limit.

It is the rule of a window (the larger of two shares, those that miss TTFT and those that miss TPOT)
on streams so long that chance hardly matters, on a server that has long been under load.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tokenwatt_site.documents.spec import SimulatorOptions, Spec
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.scheduler import Request
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.slo import Slo
from tokenwatt_site.method.statistics import mean_interval
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.virtual import play
from tokenwatt_site.method.workloads import Workload, workload_of

Progress = Callable[[int, float], None]
"""Told the number of a seed, from 1, and a rate in requests/s."""
SIMULATOR = "simulator:"
MISS_SHARE = 0.01
_WARM_SHARE, _TAIL_SHARE = 0.10, 0.02
"""Of a stream's requests: those before the steady state and those while it empties don't count."""
_COARSE_SHARE, _COARSE_LEAST = 0.1, 2000
_COARSE_GAP, _FINE_GAP = 1.02, 1.001
_SLOPES = (2.0, 40.0)
_FACTOR = 1.5  # between the miss shares at the outermost of the five rates and at the middle one
_RATES_RPS = (1e-3, 1e5)
_RECENTRES, _FAR = 4, 8.0
_AROUND = (0.95, 1.05)
_XS = (-2, -1, 0, 1, 2)


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the counted requests that miss a limit."""

    ttft: float
    tpot: float
    requests: int

    @property
    def larger(self) -> float:
        """The share that decides."""
        return max(self.ttft, self.tpot)


@dataclass(frozen=True, slots=True)
class Truth:
    """The boundary, requests/s, with its 95 % interval over seeds."""

    rate_rps: float
    lo_rps: float
    hi_rps: float
    seed_rates_rps: tuple[float, ...]
    bound_by: str
    """ttft or tpot: the share that reaches 1 % first."""
    slope: float
    """d ln(miss share)/d ln(rate) there; infinite where the share jumps."""
    requests: int
    """Requests of a stream; each seed plays it at five rates or more."""


class Streams:
    """The same requests at any rate: only the time axis is scaled."""

    def __init__(self, shape: Shape, workload: Workload, slo: Slo) -> None:
        self._shape, self._workload, self._slo = shape, workload, slo

    def draw(self, requests: int, index: int) -> Schedule:
        """Return a stream of about ``requests`` requests at one a second."""
        seed = derive_seed(0, "truth", index)
        return poisson_schedule(self._workload, 1.0, float(requests), seed)

    def shares(self, unit: Schedule, rate_rps: float) -> Shares:
        """Return the miss shares of a stream at a rate."""
        arrival_s = array("d", (t_s / rate_rps for t_s in unit.arrival_s))
        schedule = replace(unit, arrival_s=arrival_s, rate_rps=rate_rps)
        requests = play(StepModel(self._shape, unit.seed), schedule)
        n = len(requests)
        counted = requests[int(_WARM_SHARE * n) : n - int(_TAIL_SHARE * n)]
        late = sum(1 for request in counted if _ttft_ms(request) > self._slo.ttft_p99_ms)
        slow = sum(1 for request in counted if _tpot_ms(request) > self._slo.tpot_p99_ms)
        return Shares(late / len(counted), slow / len(counted), len(counted))


def _ttft_ms(request: Request) -> float:
    first_s = math.inf if request.first_s is None else request.first_s
    return 1000 * (first_s - request.arrival_s)


def _tpot_ms(request: Request) -> float:
    """Return the mean time of a token after the first; 0, which meets any limit, without one."""
    if request.first_s is None or request.last_s is None or request.output_tokens == 1:
        return 0.0
    return 1000 * (request.last_s - request.first_s) / (request.output_tokens - 1)


def truth_of_spec(
    spec: Spec,
    *,
    seeds: int = 5,
    requests: int = 100_000,
    progress: Progress | None = None,
    trace: Trace | None = None,
) -> Truth:
    """Return the true SLO boundary of a spec's embedded engine, see :func:`truth`.

    Raises:
        UsageError: the spec is of another server, or of one without a boundary.
    """
    if spec.engine.endpoint != SIMULATOR:
        raise UsageError(
            f"the truth of {spec.engine.endpoint} can't be computed, only the embedded engine's",
            f"set engine.endpoint to `{SIMULATOR}` and engine.simulator to a profile",
        )
    options = spec.engine.simulator or SimulatorOptions()
    shape = shape_of(options.profile, options.overrides)
    workload = workload_of(spec.workload, trace)
    if workload.arrivals != "poisson":
        raise UsageError(
            "the truth is that of Poisson arrivals, and the spec replays recorded ones",
            "set workload.timestamps to poisson",
        )
    return truth(shape, workload, spec.slo, seeds=seeds, requests=requests, progress=progress)


def truth(
    shape: Shape,
    workload: Workload,
    slo: Slo,
    *,
    seeds: int = 5,
    requests: int = 100_000,
    progress: Progress | None = None,
) -> Truth:
    """Return the true SLO boundary of a shape under a workload and limits.

    A short stream finds the neighbourhood; then each seed plays its stream at five rates around it,
    and a parabola through ln(share) over ln(rate) tells where it is 1 %.

    Args:
        shape: the server. One that drifts is taken in its final state.
        workload: lengths of the requests.
        slo: the limits.
        seeds: independent streams, 2 or more.
        requests: length of a stream; a tenth of it is warm-up.
        progress: told of the neighbourhood (seed 0) and of each seed's boundary.

    Raises:
        UsageError: no rate keeps the limits, or every rate does.
    """
    streams = Streams(replace(shape, drift_after_s=0.0), workload, slo)
    guess_rps, slope = _coarse(streams, max(_COARSE_LEAST, int(requests * _COARSE_SHARE)))
    if progress is not None:
        progress(0, guess_rps)
    fits: list[_Fit] = []
    for index in range(seeds):
        fits.append(_fit(streams, streams.draw(requests, index), guess_rps, slope))
        if progress is not None:
            progress(index + 1, fits[-1].rate_rps)
    mean, half = mean_interval([math.log(fit.rate_rps) for fit in fits])
    late = sum(fit.at.ttft > fit.at.tpot for fit in fits)
    return Truth(
        rate_rps=math.exp(mean),
        lo_rps=math.exp(mean - (half or 0.0)),
        hi_rps=math.exp(mean + (half or 0.0)),
        seed_rates_rps=tuple(fit.rate_rps for fit in fits),
        bound_by="ttft" if 2 * late > seeds else "tpot",
        slope=sum(fit.slope for fit in fits) / seeds,
        requests=requests,
    )


def _coarse(streams: Streams, requests: int) -> tuple[float, float]:
    """Return the rate at which a short stream misses 1 %, and the slope of ln(share) there."""
    unit = streams.draw(requests, -1)
    rate_rps = _bisect(streams, unit, 1.0, _COARSE_GAP)
    around = [streams.shares(unit, rate_rps * factor).larger + 1 / requests for factor in _AROUND]
    slope = math.log(around[1] / around[0]) / math.log(_AROUND[1] / _AROUND[0])
    return rate_rps, min(max(slope, _SLOPES[0]), _SLOPES[1])


def _bisect(streams: Streams, unit: Schedule, rate_rps: float, gap: float) -> float:
    """Return a rate within ``gap``, a factor, of where a stream begins to miss 1 %."""
    low, high = 0.0, math.inf
    while not high < gap * low:
        if not _RATES_RPS[0] < rate_rps < _RATES_RPS[1]:
            raise UsageError(
                f"no SLO boundary between {_RATES_RPS[0]:g} and {_RATES_RPS[1]:g} requests/s",
                "give limits that the shape keeps at a low rate and breaks at a high one",
            )
        if streams.shares(unit, rate_rps).larger <= MISS_SHARE:
            low = rate_rps
        else:
            high = rate_rps
        rate_rps = math.sqrt(low * high) if low and high < math.inf else low * 2 or high / 2
    return rate_rps


@dataclass(frozen=True, slots=True)
class _Fit:
    rate_rps: float
    slope: float
    at: Shares
    """At the middle one of the five rates."""


def _fit(streams: Streams, unit: Schedule, centre_rps: float, slope: float) -> _Fit:
    """Return where a parabola through five rates is 1 %, centred anew until that is among them.

    Where the share jumps, so that no parabola fits, by bisection.
    """
    step = math.log(_FACTOR) / 2 / slope
    for _ in range(_RECENTRES):
        shares = [streams.shares(unit, centre_rps * math.exp(step * x)) for x in _XS]
        level, rise, bend = parabola([math.log(s.larger + 0.5 / s.requests) for s in shares])
        x = crossing(level - math.log(MISS_SHARE), rise, bend)
        centre_rps *= math.exp(step * x)
        if abs(x) <= _XS[-1]:
            return _Fit(centre_rps, rise / step, shares[len(_XS) // 2])
    rate_rps = _bisect(streams, unit, centre_rps, _FINE_GAP)
    return _Fit(rate_rps, math.inf, streams.shares(unit, rate_rps))


def parabola(y: Sequence[float]) -> tuple[float, float, float]:
    """Return a, b, c of the least-squares a + b·x + c·(x² − 2) through y at x = −2, −1, 0, 1, 2.

    The three terms are orthogonal on these x, so each coefficient is a sum of its own.
    """
    return (
        math.fsum(y) / 5,
        math.fsum(x * v for x, v in zip(_XS, y, strict=True)) / 10,
        math.fsum((x * x - 2) * v for x, v in zip(_XS, y, strict=True)) / 14,
    )


def crossing(level: float, rise: float, bend: float) -> float:
    """Return the x at which level + rise·x + bend·(x² − 2) is 0: of two, the one near the line's.

    Where the values don't rise, a far x on the side on which they should.
    """
    if rise <= 0:
        return -math.copysign(_FAR, level)
    x = -level / rise
    root = rise * rise - 4 * bend * (level - 2 * bend)
    if bend and root >= 0:
        ends = ((-rise + sign * math.sqrt(root)) / (2 * bend) for sign in (1, -1))
        x = min(ends, key=lambda end: abs(end - x))
    return max(-_FAR, min(_FAR, x))
