"""The searches that are compared: ours, and those of other tools in our own words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.search_policy.cases import Case
from benchmarks.search_policy.fast import play_twin
from benchmarks.search_policy.harness import Bench
from benchmarks.search_policy.peers import PEERS, Tool
from tokenwatt_site.method.adaptive import Adaptive
from tokenwatt_site.method.adaptive_setting import Mode, Setting
from tokenwatt_site.method.ladder import next_probe
from tokenwatt_site.method.probe import Done
from tokenwatt_site.method.rng import open_unit, rng
from tokenwatt_site.method.workloads import workload_of


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


def adaptive(mode: Mode, **parts: Any) -> Policy:
    """Return the product's adaptive search in one of its modes; it sees requests alone.

    ``parts`` are of its setting.
    """

    def policy(case: Case, seed: int) -> Answer:
        spec = case.spec(seed, sweep={"strategy": "adaptive", "mode": mode})
        bench = Bench(spec, case.server(seed))
        search = Adaptive(
            Setting(
                workload=workload_of(spec.workload),
                slo=spec.slo,
                seed=seed,
                sweep=spec.sweep,
                measurement=spec.measurement,
                replicas=case.replicas,
                player=play_twin,
                **parts,
            )
        )
        facts, before = search.facts, None
        while not isinstance(step := search.next(bench.windows), Done):
            if step.phase == "confirm" and before is None:
                before = facts.est_rps
            bench.measure(step)
        more = {
            "before": _rounded(before),
            "after": _rounded(facts.est_rps),
            "word": step.word,
            "error": _rounded(facts.error),
            "corr": _rounded(facts.corr),
            "twin": facts.twin,
            "drift": facts.drift,
            "candidates": facts.candidates,
            "climbs": facts.climbs,
            "windows": len(bench.windows),
        }
        return Answer(step.rate_rps, bench.now_s / 60, more)

    return policy


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


def peer(name: str) -> Policy:
    """Return the search of another tool."""

    def policy(case: Case, seed: int) -> Answer:
        tool = Tool(case, seed)
        rate = PEERS[name][1](tool)
        return Answer(rate, tool.now_s / 60)

    return policy


QUICK = {"warmup_s": 45, "search_window_s": 60, "window_s": 120, "repeats": 2}
LONG = {"warmup_s": 45, "search_window_s": 60, "window_s": 300, "repeats": 3}

POLICIES: dict[str, Policy] = {
    "standard": adaptive("standard"),
    "quick": adaptive("quick"),
    "strict": adaptive("strict"),
    "ladder-quick": ladder(QUICK, dithered=False),
    "ladder-quick-dithered": ladder(QUICK, dithered=True),
    "ladder": ladder(LONG, dithered=True),
    **{name: peer(name) for name in PEERS},
}

NAMES = {
    "standard": "adaptive, standard",
    "standard-unaware": "adaptive, standard, before it saw each change of speed",
    "standard-loose": "adaptive, standard, before it took more care on noisy servers",
    "standard-tight": "adaptive, standard, before its guard was loosened",
    "standard-first": "adaptive, standard, as first built",
    "quick": "adaptive, quick",
    "strict": "adaptive, strict",
    "ladder-quick": "ladder, quick: 60 s / 2 × 120 s, from 2 requests/s",
    "ladder-quick-dithered": "ladder, quick: 60 s / 2 × 120 s",
    "ladder": "ladder: 60 s / 3 × 300 s",
    **{name: text for name, (text, _) in PEERS.items()},
}
"""What tables call them, in their order."""
