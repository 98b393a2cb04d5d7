"""The true limit of each case: the rate at which 1 % of the requests miss one of the two limits.

The rule and the fit are those of ``method/truth.py``, on streams long enough for errors of a few
parts in a thousand, and on servers that the package doesn't have.
"""

import json
import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from benchmarks.search_policy import fast
from benchmarks.search_policy.cases import CASES, Case
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.statistics import mean_interval
from tokenwatt_site.method.truth import MISS_SHARE, Shares, crossing, parabola
from tokenwatt_site.method.workloads import workload_of

TRUTHS = Path(__file__).parent / "truths.json"
STREAMS, REQUESTS, SHORT = 8, 250_000, 20_000
_WARM_SHARE, _TAIL_SHARE = 0.05, 0.01
_GAP = 1.02
_FACTOR = 1.5  # between the miss shares at the outermost of the five rates and at the middle one
_TRIES = 8
_XS = (-2, -1, 0, 1, 2)


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests at one a second, and the luck of the server that gets them."""

    case: Case
    unit: Schedule

    @classmethod
    def draw(cls, case: Case, requests: int, index: int) -> "Stream":
        """Draw about ``requests`` requests."""
        workload = workload_of(case.spec(0).workload)
        seed = derive_seed(0, "benchmark truth", index)
        return cls(case, fast.poisson_schedule(workload, 1.0, float(requests), seed))

    def shares(self, rate_rps: float) -> Shares:
        """Return the shares that miss at a rate, on a server in its final state."""
        case, unit = self.case, self.unit
        server = case.serve(replace(case.shape, drift_after_s=0.0), unit.seed)
        arrival_s = array("d", (t / rate_rps for t in unit.arrival_s))
        server.load(arrival_s, unit.input_tokens, unit.output_tokens)
        server.run(math.inf)
        seen, n = server.look(math.inf), len(unit)
        limit_s, pace_s = case.slo["ttft_p99_ms"] / 1000, case.slo["tpot_p99_ms"] / 1000
        counted = range(int(_WARM_SHARE * n), n - int(_TAIL_SHARE * n))
        late = sum(seen.first_s[i] - arrival_s[i] > limit_s for i in counted)
        slow = sum(
            seen.last_s[i] - seen.first_s[i] > pace_s * (seen.tokens[i] - 1) for i in counted
        )
        return Shares(late / len(counted), slow / len(counted), len(counted))


def truth(name: str) -> tuple[str, dict[str, Any]]:
    """Return the limit of a case, requests/s, with its 95 % interval over streams."""
    case = CASES[name]
    guess_rps = _bisect(Stream.draw(case, SHORT, -1).shares)
    fits = [_fit(Stream.draw(case, REQUESTS, i).shares, guess_rps) for i in range(STREAMS)]
    mean, half = mean_interval([math.log(rate) for rate, _, _ in fits])
    late = sum(at.ttft > at.tpot for _, _, at in fits)
    return name, {
        "rps": round(math.exp(mean), 4),
        "lo_rps": round(math.exp(mean - (half or 0.0)), 4),
        "hi_rps": round(math.exp(mean + (half or 0.0)), 4),
        "slope": round(sum(slope for _, slope, _ in fits) / len(fits), 1),
        "bound_by": "ttft" if 2 * late > len(fits) else "tpot",
        "streams": STREAMS,
        "requests": REQUESTS,
    }


def write(names: list[str], processes: int) -> None:
    """Compute the truths of some cases and keep those of the others."""
    known = load() if TRUTHS.exists() else {}
    with Pool(processes) as pool:
        for name, found in pool.imap_unordered(truth, names):
            known[name] = found
            ordered = {each: known[each] for each in CASES if each in known}
            text = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in ordered.items())
            TRUTHS.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def load() -> dict[str, dict[str, Any]]:
    """Return the truths, by case."""
    return dict(json.loads(TRUTHS.read_text(encoding="utf-8")))


def _bisect(shares: Callable[[float], Shares]) -> float:
    low, high, rate = 0.0, math.inf, 2.0
    while not high < _GAP * low:
        if shares(rate).larger <= MISS_SHARE:
            low = rate
        else:
            high = rate
        rate = math.sqrt(low * high) if low and high < math.inf else low * 2 or high / 2
    return rate


def _fit(shares: Callable[[float], Shares], centre_rps: float) -> tuple[float, float, Shares]:
    """Return where a parabola through five rates is 1 %, its slope, and the shares nearby."""
    slope = steep = 12.0
    found: list[Shares] = []
    for _ in range(_TRIES):
        step = math.log(_FACTOR) / 2 / slope
        found = [shares(centre_rps * math.exp(step * x)) for x in _XS]
        level, rise, bend = parabola([math.log(s.larger + 0.5 / s.requests) for s in found])
        x = crossing(level - math.log(MISS_SHARE), rise, bend)
        centre_rps *= math.exp(step * x)
        steep = rise / step
        if abs(x) <= 1 and 1 / 2 < steep / slope < 2:  # noqa: PLR2004 - in the middle, well scaled
            break
        slope = min(max(steep, 2.0), 40.0)
    return centre_rps, steep, found[2]
