"""The sampled path against an engine whose energy is known: the step model in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from tokenwatt_site.documents.spec_workload import SpecWorkload
from tokenwatt_site.method.energy import EnergyWindow, energy_window
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.step_model import Reading, Step, StepModel
from tokenwatt_site.method.virtual import play
from tokenwatt_site.method.workloads import workload_of

CHAT = SpecWorkload()
SHORT = SpecWorkload.model_validate(
    {"trace": None, "input_tokens": {"fixed": 256}, "output_tokens": {"fixed": 64}}
)
W0, W1, HZ = 3.033, 62.983, 10.0
CASES = [
    ("demo", SHORT, 2.0),
    ("demo", SHORT, 20.0),
    ("cal", CHAT, 5.0),
    ("d8", CHAT, 3.0),
    ("d70", CHAT, 1.0),
]


@dataclass
class Polled:
    """Reads the model's meter at 10 Hz as it goes, and its energy at the edges of the window."""

    model: StepModel
    samples: list[PowerSample] = field(default_factory=list)
    edges_j: dict[float, float] = field(default_factory=dict)
    tokens: dict[float, int] = field(default_factory=dict)

    def watch(self, step: Step) -> None:
        while (t_s := len(self.samples) / HZ) <= step.ends_s[-1]:
            now = self.at(step, t_s)
            self.samples.append(
                PowerSample(
                    t_s,
                    "gpu",
                    power_w=now.power_w,
                    energy_j=now.energy_j,
                    limit_w=self.model.shape.limit_w,
                    throttle=("sw_power_cap",) if now.throttling else (),
                    throttle_ns={"sw_power_cap": int(now.throttled_s * 1e9)},
                )
            )
        for edge_s in (W0, W1):
            if edge_s not in self.edges_j and edge_s <= step.ends_s[-1]:
                self.edges_j[edge_s] = self.at(step, edge_s).energy_j
                self.tokens[edge_s] = self.model.totals.output_tokens

    def at(self, step: Step, t_s: float) -> Reading:
        """Return the reading in a step, or in the rest before it."""
        reading, rest_s = self.model.reading(max(t_s, step.start_s)), step.start_s - t_s
        if rest_s <= 0:
            return reading
        idle_w = self.model.shape.idle_w
        return Reading(idle_w, reading.energy_j - idle_w * rest_s, reading.throttled_s, False)  # noqa: FBT003


def polled(profile: str, workload: SpecWorkload, rate_rps: float, seed: int) -> Polled:
    poll = Polled(StepModel(shape_of(profile), seed))
    schedule = poisson_schedule(workload_of(workload), rate_rps, W1 + 2, seed)
    play(poll.model, schedule, W1 + 1, poll.watch)
    return poll


def j_per_token(poll: Polled, joules: float | None) -> float:
    assert joules is not None
    return joules / (poll.tokens[W1] - poll.tokens[W0])


def window(
    samples: list[PowerSample], change: Callable[[PowerSample], PowerSample]
) -> EnergyWindow:
    return energy_window(map(change, samples), ["gpu"], W0, W1, HZ)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("profile, workload, rate_rps", CASES)
def test_10_hz_with_the_counter_hidden_is_within_3_pct(
    profile: str, workload: SpecWorkload, rate_rps: float, seed: int
) -> None:
    poll = polled(profile, workload, rate_rps, seed)
    truth = j_per_token(poll, poll.edges_j[W1] - poll.edges_j[W0])

    counted = window(poll.samples, lambda sample: sample)
    assert (counted.method, counted.valid, counted.gaps) == ("counter", True, 0)
    assert j_per_token(poll, counted.joules) == pytest.approx(truth, rel=0.001)

    hidden = window(poll.samples, lambda sample: replace(sample, energy_j=None))
    assert (hidden.method, hidden.valid, hidden.reasons) == ("sampled", True, ("samples_only",))
    assert j_per_token(poll, hidden.joules) == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("profile, workload, rate_rps", CASES)
def test_a_meter_10_pct_wrong_shows_10_pct(
    profile: str, workload: SpecWorkload, rate_rps: float
) -> None:
    poll = polled(profile, workload, rate_rps, seed=0)
    truth = j_per_token(poll, poll.edges_j[W1] - poll.edges_j[W0])

    def wrong(sample: PowerSample) -> PowerSample:
        return replace(sample, power_w=1.1 * (sample.power_w or 0), energy_j=None)

    assert j_per_token(poll, window(poll.samples, wrong).joules) == pytest.approx(
        1.1 * truth, rel=0.03
    )


def test_throttled_time_is_that_of_the_engine() -> None:
    poll = polled("cal", CHAT, 5.0, seed=0)
    result = window(poll.samples, lambda sample: sample)
    seen_pct = 100 * result.throttle_counts["sw_power_cap"] / result.throttle_samples
    assert result.throttle_share_pct["sw_power_cap"] == pytest.approx(19, abs=3)
    assert result.throttle_share_pct["sw_power_cap"] <= seen_pct
    assert result.power_limit_w == 700
