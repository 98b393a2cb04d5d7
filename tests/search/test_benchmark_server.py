"""The benchmark's step model in C takes the steps of the one in Python, to the last digit."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace

import pytest

from benchmarks.search_policy import fast
from benchmarks.search_policy.native import NativeServer
from tests.support.steps import plain
from tokenwatt_site.method.profiles import PROFILES
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.twin_player import UNLIMITED, TwinParams, play_twin
from tokenwatt_site.method.virtual import trace
from tokenwatt_site.method.workloads import WORKLOADS, Fixed, Lognormal, Workload

pytestmark = [
    pytest.mark.no_cover,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the C model needs gcc"),
]
CHAT = WORKLOADS["chat-mix-v1"]
SHORT = Workload("short", Fixed(32), Fixed(16))
SMALL = Workload("small", Lognormal(400, 1500, 3000), Lognormal(60, 300, 700))
TIGHT = plain(
    kv_capacity_tokens=8_000, noise_sd=0.05, stalls_per_s=0.5, stall_s=0.1, noise_tau_s=2.0
)
RATES_RPS = {"demo": 20.0, "d70": 2.2, "d8": 7.0, "hard": 4.0, "tight": 6.0, "tight-excl": 6.0}
SHAPES = [*PROFILES.values(), replace(TIGHT, name="tight")]
SHAPES += [replace(TIGHT, name="tight-excl", exclusive_prefill=True, max_sequences=30)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_both_models_give_every_request_the_same_tokens_at_the_same_times(shape: Shape) -> None:
    shape = replace(shape, drift_after_s=min(shape.drift_after_s, 40.0))
    python, native = StepModel(shape, 5), NativeServer(shape, 5)
    tight = shape.name.startswith("tight")
    workload = SMALL if tight else SHORT if shape.name == "demo" else CHAT
    for index in (1, 2):  # the second load meets a server that the first one has used
        t0_s = python.t_s
        schedule = poisson_schedule(workload, RATES_RPS.get(shape.name, 5.5), 90.0, index)
        traces = trace(python, schedule, t0_s + 60.0)
        native.load([t0_s + t for t in schedule.arrival_s], *_sizes(schedule))
        native.run(t0_s + 35.0)  # where it is looked at doesn't matter
        native.run(t0_s + 60.0)
        seen = native.look(t0_s + 60.0)
        assert native.t_s == python.t_s
        for t, first_s, last_s, tokens in zip(traces, *seen, strict=False):
            assert tokens == len(t.events_s)
            assert (first_s, last_s) == (
                (t.events_s[0], t.events_s[-1]) if t.events_s else (math.inf, math.inf)
            )
        python.idle_to(t0_s + 62.0)
        native.idle_to(t0_s + 62.0)
    if tight:
        assert native.preemptions == python.preemptions > 0


def _sizes(schedule: Schedule) -> tuple[Sequence[int], Sequence[int]]:
    return schedule.input_tokens, schedule.output_tokens


@pytest.mark.parametrize("rate_rps, limit", [(3.0, UNLIMITED), (9.0, 20)])
@pytest.mark.parametrize("until_s", [60.0, math.inf])
def test_both_twins_give_every_request_the_same_tokens_at_the_same_times(
    rate_rps: float, limit: int, until_s: float
) -> None:
    params = TwinParams(4e-3, 2e-4, 1e-3, 5e-3, 3e-5, 1e-9, budget_tokens=512, max_sequences=limit)
    drawn = poisson_schedule(SMALL, rate_rps, 80.0, 3)
    columns = drawn.arrival_s, drawn.input_tokens, drawn.output_tokens
    assert fast.play_twin(params, *columns, until_s) == play_twin(params, *columns, until_s)


@pytest.mark.parametrize("workload", [CHAT, SHORT, Workload("one", Fixed(7), Lognormal(9, 99, 50))])
@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1])
def test_both_schedules_are_the_same_draw_by_draw(workload: Workload, seed: int) -> None:
    assert fast.poisson_schedule(workload, 5.5, 400.0, seed) == poisson_schedule(
        workload, 5.5, 400.0, seed
    )
