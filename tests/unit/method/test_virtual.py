"""Schedules played in virtual time, and what a client without lag records of them."""

from array import array
from itertools import pairwise

import pytest

from tests.support.steps import plain
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.step_model import Step, StepModel
from tokenwatt_site.method.virtual import play, trace
from tokenwatt_site.method.workloads import Lognormal, Workload

MIX = Workload("mix", Lognormal(100, 300, 800), Lognormal(20, 60, 160))


def schedule(*requests: tuple[float, int, int]) -> Schedule:
    arrivals, inputs, outputs = zip(*requests, strict=True)
    return Schedule(array("d", arrivals), array("q", inputs), array("q", outputs), 0, 1.0)


def test_a_schedule_is_played_to_its_end() -> None:
    model = StepModel(plain())
    requests = play(model, poisson_schedule(MIX, 20.0, 30.0, 1))
    assert len(requests) > 500
    assert all(request.last_s is not None for request in requests)
    assert model.totals.finished == len(requests)


def test_arrivals_count_from_the_clock_of_the_server() -> None:
    """Windows follow each other on one server."""
    model = StepModel(plain())
    first = play(model, schedule((0.0, 10, 5)))
    ended_s = model.t_s
    second = play(model, schedule((1.0, 10, 5)))
    assert first[0].arrival_s == 0.0
    assert second[0].arrival_s == ended_s + 1.0


def test_the_client_stops_at_its_time_and_cancels_what_runs() -> None:
    model = StepModel(plain(max_sequences=1))
    requests = play(model, schedule((0.0, 10, 20), (0.0, 10, 200), (0.1, 10, 5), (2, 9, 9)), 1.0)
    assert [request.key for request in requests] == [0, 1, 2]  # the fourth was never sent
    assert [request.last_s is not None for request in requests] == [True, False, False]
    assert 0 < model.produced(requests[1]) < 200
    assert requests[2].first_s is None
    assert (model.running, model.waiting) == (0, 0)
    assert 1.0 <= model.t_s < 1.02  # the step under way ends


def test_a_watcher_sees_every_step() -> None:
    seen: list[Step] = []
    model = StepModel(plain())
    play(model, schedule((0.0, 10, 20), (0.05, 10, 20)), watch=seen.append)
    ends = [end_s for step in seen for end_s in step.ends_s]
    assert ends == sorted(ends)
    assert ends[-1] == model.t_s
    assert sum(len(s.ends_s) * s.plan.decoding + len(s.plan.first) for s in seen) == 40


@pytest.mark.parametrize("memory", [100_000, 1500])
def test_a_trace_has_a_stamp_for_each_token(memory: int) -> None:
    """Also across preemptions, for which the smaller memory cares."""
    shape = plain(kv_capacity_tokens=memory, context_tokens=1200)
    load = poisson_schedule(MIX, 20.0, 20.0, 1)
    model, twin = StepModel(shape), StepModel(shape)
    traces = trace(model, load)
    requests = play(twin, load)
    assert (model.preemptions > 0) == (memory == 1500)
    for seen, request in zip(traces, requests, strict=True):
        assert len(seen.events_s) == request.output_tokens == seen.n_output
        assert (seen.events_s[0], seen.events_s[-1]) == (request.first_s, request.last_s)
        assert all(a < b for a, b in pairwise(seen.events_s))
        assert (seen.outcome, seen.finish, seen.done) == ("ok", "length", True)
        assert (seen.n_prompt, seen.input_tokens) == (request.prompt_tokens,) * 2


def test_stamps_are_the_ends_of_the_steps() -> None:
    """Two at once, a third that joins: all stamps are among the ends of single steps."""
    load = schedule((0.0, 10, 5), (0.0, 10, 9), (0.05, 10, 3))
    model = StepModel(plain())
    traces = trace(StepModel(plain()), load)
    for key in range(3):
        model.submit(key, load.arrival_s[key], 10, load.output_tokens[key])
    ends: list[float] = []
    while (step := model.step()) is not None:
        ends += step.ends_s
    assert list(traces[0].events_s) == ends[:5]
    assert list(traces[1].events_s) == ends[:9]
    assert set(traces[2].events_s) < set(ends)


def test_a_trace_that_is_cut_off_has_the_tokens_until_then() -> None:
    load = schedule((0.0, 10, 20), (0.0, 10, 200), (0.1, 10, 1), (0.7, 10, 1))
    shape = plain(max_sequences=2, kv_capacity_tokens=1000)
    cut, whole = (trace(StepModel(shape), load, until_s) for until_s in (0.2, 100.0))
    assert len(cut) == 3
    assert (cut[2].outcome, len(cut[2].events_s), cut[2].n_prompt) == ("running", 0, None)
    cut, whole = (trace(StepModel(shape), load, until_s) for until_s in (0.5, 100.0))
    assert (cut[0].outcome, cut[1].outcome) == ("ok", "running")
    assert list(cut[1].events_s) == [t_s for t_s in whole[1].events_s if t_s <= 0.5]
    assert (cut[1].n_output, cut[1].finish, cut[1].done, cut[1].t_end_s) == (None, None, False, 0.5)


def test_another_seed_is_another_server_under_the_same_load() -> None:
    load = poisson_schedule(MIX, 20.0, 10.0, 1)
    shape = plain(noise_sd=0.1)
    ends = [play(StepModel(shape, seed), load)[-1].last_s for seed in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]
