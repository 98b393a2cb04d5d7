"""The search that a spec asks for: ladder or adaptive, what it may cost, what it may not be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tokenwatt_site.documents.spec import Spec, SpecMeasurement, SpecSweep
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method import adaptive_bounds, ladder
from tokenwatt_site.method.adaptive import Adaptive
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.probe import Done, Measured, Probe
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.workloads import workload_of

BUDGET_TOKENS = 8192
SHARED_KEYS = frozenset({"strategy", "start_rps", "max_rps"})
"""Keys of the spec's sweep that both searches read."""
ADAPTIVE_KEYS = frozenset({"mode", "max_minutes"})


class Search(Protocol):
    """Says what to measure next, as a function of the windows measured so far."""

    @property
    def facts(self) -> SearchFacts | None:
        """Return what it knows of the boundary beside its answer; None for a ladder."""
        ...

    def next(self, history: Sequence[Measured]) -> Probe | Done:
        """Return the window to measure after ``history``, or the answer."""
        ...


@dataclass(frozen=True, slots=True)
class Ladder:
    """The ladder, which knows nothing but verdicts."""

    sweep: SpecSweep
    measurement: SpecMeasurement
    facts: None = None

    def next(self, history: Sequence[Measured]) -> Probe | Done:
        """Return the window to measure after ``history``, or the answer."""
        return ladder.next_probe(history, self.sweep, self.measurement)


def search_of(spec: Spec, trace: Trace | None = None) -> Search:
    """Return the search of a spec; ``trace`` is the recorded one that it names."""
    if spec.sweep.strategy != "adaptive":
        return Ladder(spec.sweep, spec.measurement)
    return Adaptive(setting_of(spec, trace))


def setting_of(spec: Spec, trace: Trace | None = None) -> Setting:
    """Return what the adaptive search is given of a spec."""
    return Setting(
        workload=workload_of(spec.workload, trace),
        slo=spec.slo,
        seed=spec.workload.seed,
        sweep=spec.sweep,
        measurement=spec.measurement,
        budget_tokens=spec.engine.max_batched_tokens or BUDGET_TOKENS,
        replicas=spec.model.replicas,
    )


def bounds_of(spec: Spec, trace: Trace | None = None, tail_s: float = 0.0) -> ladder.Bounds:
    """Return the least and the most that a search may cost.

    Args:
        spec: what was asked.
        trace: the recorded trace that it names.
        tail_s: longest time after a window until its requests are decided.
    """
    if spec.sweep.strategy != "adaptive":
        return ladder.bounds(spec.sweep, spec.measurement, tail_s)
    return adaptive_bounds.bounds(setting_of(spec, trace), tail_s)


def confirm_s(spec: Spec, trace: Trace | None = None) -> float:
    """Return how long a confirm window is meant to be; ``trace`` is the one that the spec names."""
    if spec.sweep.strategy != "adaptive":
        return spec.measurement.window_s
    return setting_of(spec, trace).knobs.confirm_s


def check_search(spec: Spec) -> None:
    """Refuse a search that can't be run as asked.

    Raises:
        UsageError: knobs that contradict each other, of the other strategy, or out of all measure.
    """
    sweep = spec.sweep
    if sweep.strategy != "adaptive":
        ladder.check_sweep(sweep, spec.measurement.repeats)
        return
    if spec.workload.timestamps == "kept":
        raise UsageError(
            "spec field sweep.strategy: a trace with its own times has one rate, nothing to search",
            "set sweep.strategy to ladder, or workload.timestamps to rescaled",
        )
    foreign = sorted(f"sweep.{key}" for key in sweep.model_fields_set - SHARED_KEYS - ADAPTIVE_KEYS)
    if "search_window_s" in spec.measurement.model_fields_set:
        foreign.append("measurement.search_window_s")
    if foreign:
        raise UsageError(
            f"spec field {foreign[0]} belongs to the ladder",
            "remove it for the adaptive search, or set sweep.strategy to ladder",
        )
    ladder.check_rates(sweep)
