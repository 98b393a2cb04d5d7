"""What an adaptive search is given: the spec's part of it, and the knobs of its mode."""

from dataclasses import dataclass, field, replace
from typing import Literal

from tokenwatt_site.documents.spec import SpecMeasurement, SpecSweep
from tokenwatt_site.method.slo import Slo
from tokenwatt_site.method.twin_player import Player, play_twin
from tokenwatt_site.method.workloads import Workload

Mode = Literal["quick", "standard", "strict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """How a search is run. Errors are the published ones, standard errors of the estimate."""

    ramp_s: float
    """A rung of the ramp."""
    knee_s: float
    """A window near the estimate, before confirm."""
    warm_s: float = 20.0
    tail_s: float = 10.0
    confirms: int
    """Confirm windows that a rate must have to pass,"""
    confirms_max: int
    """and those after which it has failed if it hasn't passed."""
    confirm_s: float
    guard: float
    """A candidate is below the estimate by this share at least,"""
    guard_errors: float
    """and by so many errors,"""
    guard_max: float = 0.12
    """but by no more than this."""
    planned_share: float = 0.0075
    """A candidate is where the twin expects this share of misses, or below."""
    fail_errors: float
    """A candidate has failed when the estimate is less than so many errors above it."""
    caution: float = 0.8
    """On a noisy host both are wider by up to this share."""
    climb: float
    """A first confirm window that shows room for this share more is given up for a higher rate."""
    climbs_max: int = 2
    knee_gap: float
    """Estimate over the rate of the knee window, or the other way round, that needs no other."""
    candidates: int
    restarts_max: int = 3
    """Restarts for a drifting server."""


MODES: dict[Mode, Knobs] = {
    "quick": Knobs(
        ramp_s=20,
        knee_s=60,
        confirms=1,
        confirms_max=2,
        confirm_s=240,
        guard=0.04,
        guard_errors=1.3,
        fail_errors=0.6,
        climb=0.05,
        knee_gap=1.06,
        candidates=4,
    ),
    "standard": Knobs(
        ramp_s=30,
        knee_s=90,
        confirms=3,
        confirms_max=5,
        confirm_s=200,
        guard=0.028,
        guard_errors=1.0,
        fail_errors=0.58,
        caution=1.34,
        climb=0.025,
        knee_gap=1.05,
        candidates=6,
    ),
    "strict": Knobs(
        ramp_s=30,
        knee_s=120,
        confirms=3,
        confirms_max=5,
        confirm_s=300,
        guard=0.035,
        guard_errors=1.6,
        fail_errors=1.0,
        climb=0.025,
        knee_gap=1.05,
        candidates=6,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an adaptive search is given."""

    workload: Workload
    slo: Slo
    seed: int
    """The spec's ``workload.seed``."""
    sweep: SpecSweep
    measurement: SpecMeasurement
    budget_tokens: int = 8192
    """Tokens of one step of the engine: ``engine.max_batched_tokens``."""
    replicas: int = 1
    player: Player = play_twin
    stream_requests: int = 160_000
    """Length of the twin's long run."""
    knobs: Knobs = field(init=False)

    def __post_init__(self) -> None:
        """Set the mode's knobs, and those that the spec gives itself."""
        object.__setattr__(self, "knobs", _knobs(self.mode, self.measurement))

    @property
    def mode(self) -> Mode:
        """Return the mode, that of a spec which names none too."""
        return self.sweep.mode or "standard"


def _knobs(mode: Mode, measurement: SpecMeasurement) -> Knobs:
    """Return a mode's knobs; lengths of ``measurement`` that a spec names replace theirs."""
    knobs, named = MODES[mode], measurement.model_fields_set
    spare = knobs.confirms_max - knobs.confirms
    if "window_s" in named:
        knobs = replace(knobs, confirm_s=measurement.window_s)
    if "warmup_s" in named:
        knobs = replace(knobs, warm_s=measurement.warmup_s)
    if "repeats" in named:
        repeats = measurement.repeats
        knobs = replace(knobs, confirms=repeats, confirms_max=repeats + spare)
    return knobs
