"""The twin's player against the step model, whose scheduler it restates, and on cases by hand."""

import math
from array import array

import pytest

from tests.support.steps import plain
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.twin_player import TwinParams, play_twin
from tokenwatt_site.method.virtual import play
from tokenwatt_site.method.workloads import Lognormal, Workload

MIX = Workload("mix", Lognormal(300, 1200, 2400), Lognormal(20, 80, 160))
QUIET = {"kv_bytes": 0.0, "limit_w": 1e9, "kv_capacity_tokens": 10_000_000}


def twin_of_plain(**changes: int) -> TwinParams:
    """Return the twin whose steps take what a quiet plain shape's do: 10 ms to read weights."""
    return TwinParams(11e-3, 3e-4, 0.0, 0.0, 1e-5, 1e-9, budget_tokens=1000, **changes)


def columns(
    rows: list[tuple[float, int, int]],
) -> tuple["array[float]", "array[int]", "array[int]"]:
    at, inputs, outputs = zip(*rows, strict=True)
    return array("d", at), array("q", inputs), array("q", outputs)


@pytest.mark.parametrize("limit", [64, 8])
@pytest.mark.parametrize("until_s", [math.inf, 31.7])
def test_it_plays_as_the_step_model_does(limit: int, until_s: float) -> None:
    schedule = poisson_schedule(MIX, 12.0, 40.0, 5)
    model = StepModel(plain(max_sequences=limit, **QUIET))
    requests = play(model, schedule, until_s)
    played = play_twin(
        twin_of_plain(max_sequences=limit),
        schedule.arrival_s,
        schedule.input_tokens,
        schedule.output_tokens,
        until_s,
    )
    for request in requests:
        first_s, last_s = played.first_s[request.key], played.last_s[request.key]
        if request.first_s is None or request.first_s > until_s:
            assert first_s == math.inf
            continue
        assert first_s == pytest.approx(request.first_s, rel=1e-9)
        if request.last_s is not None and request.last_s <= until_s:
            assert last_s == pytest.approx(request.last_s, rel=1e-9)
            assert played.tokens[request.key] == request.output_tokens


def test_steps_by_hand() -> None:
    """Two prompts share a step of 100 tokens; the third waits; until the end, and cut short."""
    params = TwinParams(1.0, 0.5, 2.0, 0.25, 0.01, 0.001, budget_tokens=100, max_sequences=2)
    schedule = columns([(0.0, 60, 3), (0.0, 40, 1), (0.1, 150, 2)])
    prefill_s = 1.0 + 0.25 + 1.0 + 0.001 * (60 * 30 + 40 * 20)
    played = play_twin(params, *schedule)
    assert list(played.first_s[:2]) == pytest.approx([prefill_s, prefill_s])
    assert played.last_s[1] == played.first_s[1]
    alone_s = 1.0 + 0.5 + 2.0
    second_s = prefill_s + alone_s + 0.25 + 0.01 * 99 + 0.001 * 99 * 49.5
    third_s = second_s + alone_s + 0.25 + 0.01 * 51 + 0.001 * 51 * (99 + 25.5)
    assert played.last_s[0] == pytest.approx(third_s)
    assert played.first_s[2] == pytest.approx(third_s)
    assert played.last_s[2] == pytest.approx(third_s + alone_s)
    cut = play_twin(params, *schedule, until_s=third_s - 0.01)
    assert list(cut.tokens) == [2, 1, 0]
    assert cut.last_s[0] == pytest.approx(second_s)
    assert list(cut.first_s[2:]) + list(cut.last_s[2:]) == [math.inf, math.inf]


def test_a_run_of_steps_is_cut_in_its_middle() -> None:
    params = TwinParams(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    played = play_twin(params, *columns([(2.0, 10, 100)]), until_s=12.5)
    assert (played.first_s[0], played.last_s[0], played.tokens[0]) == (3.0, 12.0, 10)


def test_scaling_the_twin_scales_its_time() -> None:
    params = twin_of_plain()
    schedule = poisson_schedule(MIX, 12.0, 20.0, 6)
    slow = array("d", (3 * t_s for t_s in schedule.arrival_s))
    one = play_twin(params, schedule.arrival_s, schedule.input_tokens, schedule.output_tokens)
    three = play_twin(params.scaled(3), slow, schedule.input_tokens, schedule.output_tokens)
    assert list(three.last_s) == pytest.approx([3 * t_s for t_s in one.last_s], rel=1e-6)


def test_nothing_to_play() -> None:
    empty = Schedule(array("d"), array("q"), array("q"), 0, 1.0)
    played = play_twin(twin_of_plain(), empty.arrival_s, empty.input_tokens, empty.output_tokens)
    assert len(played.first_s) == 0
