"""The searches that are compared: ours, and those of other tools in our own words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.search_policy.cases import Case
from benchmarks.search_policy.harness import Bench
from tokenwatt_site.method.ladder import next_probe
from tokenwatt_site.method.probe import Done
from tokenwatt_site.method.rng import open_unit, rng


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search reports."""

    rate_rps: float | None
    minutes: float
    """Server time."""
    more: dict[str, Any] = field(default_factory=dict)
    """What a policy says beside it."""


Policy = Callable[[Case, int], Answer]
"""Searches a case with a seed."""


def ladder(measurement: dict[str, Any], *, dithered: bool) -> Policy:
    """Return the product's ladder with the default knobs of its sweep.

    Args:
        measurement: lengths and repeats of the windows.
        dithered: start at 2·2^(u/8), u uniform, for the luck of where the limit lies on the grid of
            rates not to colour every trial alike.
    """

    def policy(case: Case, seed: int) -> Answer:
        start = 2.0 * 2 ** (open_unit(rng(seed, "dither")) / 8) if dithered else 2.0
        sweep = {"strategy": "ladder", "start_rps": start}
        spec = case.spec(seed, sweep=sweep, measurement=measurement)
        bench = Bench(spec, case.server(seed), recording=False)
        while not isinstance(step := next_probe(bench.windows, spec.sweep, spec.measurement), Done):
            bench.measure(step)
        return Answer(step.rate_rps, bench.now_s / 60)

    return policy


QUICK = {"warmup_s": 45, "search_window_s": 60, "window_s": 120, "repeats": 2}
LONG = {"warmup_s": 45, "search_window_s": 60, "window_s": 300, "repeats": 3}

POLICIES: dict[str, Policy] = {
    "ladder-quick": ladder(QUICK, dithered=False),
    "ladder-quick-dithered": ladder(QUICK, dithered=True),
    "ladder": ladder(LONG, dithered=True),
}

NAMES = {
    "ladder-quick": "ladder, quick: 60 s / 2 × 120 s, from 2 requests/s",
    "ladder-quick-dithered": "ladder, quick: 60 s / 2 × 120 s",
    "ladder": "ladder: 60 s / 3 × 300 s",
}
"""What tables call them, in their order."""
