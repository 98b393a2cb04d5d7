"""The step model against its physics, worked out by hand."""

from itertools import pairwise
from typing import Any

import pytest

from tests.support.steps import plain, play_out, submit, tpot_s, ttft_s
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.profiles import PROFILES, shape_of
from tokenwatt_site.method.step_model import StepModel

# what isn't bytes over bandwidth
CONSTANT_TERMS = ("fixed_s", "sequence_s", "decode_token_s", "noise_sd")


def batch_tpot_s(profile: str, batch: int, **overrides: Any) -> float:
    """Return the TPOT of a batch of 512 tokens in and 128 out, all prefilled in one step."""
    model = StepModel(shape_of(profile, {"budget_tokens": 10**6} | overrides))
    requests = submit(model, *[(0.0, 512, 128)] * batch)
    play_out(model)
    assert {request.first_s for request in requests} == {requests[0].first_s}
    return tpot_s(requests[0])


BATCHES = [
    ("d8", 1), ("d8", 32), ("d8", 256), ("d70", 1), ("d70", 32), ("d70", 256),
    ("cal", 1), ("cal", 32), ("cal", 1024), ("hard", 48),
]  # fmt: skip


@pytest.mark.parametrize("profile,batch", BATCHES)
def test_tpot_is_bytes_over_bandwidth(profile: str, batch: int) -> None:
    """Weights and context over bandwidth: experts that k of E choices of ``batch`` tokens touch."""
    shape = PROFILES[profile]
    assert batch <= shape.max_sequences
    touched = 1 - (1 - shape.experts_per_token / shape.experts) ** batch
    context = 512 + (1 + 127) / 2  # grows from 513 to 639
    read = shape.dense_bytes + shape.expert_bytes * touched + shape.kv_bytes * batch * context
    bandwidth = shape.gpus * 4.8e12 * shape.bandwidth_share
    measured = batch_tpot_s(profile, batch, limit_w=1e6, **dict.fromkeys(CONSTANT_TERMS, 0.0))
    assert measured == pytest.approx(read / bandwidth, rel=0.01)


@pytest.mark.parametrize("profile,batch", BATCHES)
def test_tpot_has_the_terms_of_the_formula_and_no_other(profile: str, batch: int) -> None:
    shape = PROFILES[profile]
    bare = batch_tpot_s(profile, batch, limit_w=1e6, **dict.fromkeys(CONSTANT_TERMS, 0.0))
    whole = batch_tpot_s(profile, batch, limit_w=1e6, noise_sd=0)
    added = shape.fixed_s + batch * (shape.sequence_s + shape.decode_token_s)
    assert whole - bare == pytest.approx(added, rel=1e-6)


def test_one_step_by_hand() -> None:
    """300 prompt tokens on 1 TB/s with 10 GB: 1 + 10 + 3 ms, and 0.045 ms of attention."""
    model = StepModel(plain())
    submit(model, (0.0, 300, 2))
    first, second = play_out(model)
    assert first.ends_s == [pytest.approx(14.045e-3)]
    # then 1 sequence with 301 tokens: 1 + 0.1 + 10.0301 + 0.2 ms
    assert second.ends_s[0] - first.ends_s[0] == pytest.approx(11.3301e-3)
    assert model.bytes_read == pytest.approx(2 * 10e9 + 301 * 100e3)


def test_power_of_one_step_by_hand() -> None:
    model = StepModel(plain())
    submit(model, (0.0, 300, 1))
    (step,) = play_out(model)
    dynamic_j = 300 * 10e-3 + 500 * 3.045e-3
    assert model.totals.energy_j == pytest.approx(100 * 14.045e-3 + dynamic_j)
    assert model.reading(step.ends_s[0]).power_w == pytest.approx(100 + dynamic_j / 14.045e-3)


def test_the_power_limit_makes_the_step_longer() -> None:
    """4.5225 J above idle at 200 W of headroom take 22.6 ms instead of 14.0."""
    model = StepModel(plain(limit_w=300.0))
    submit(model, (0.0, 300, 1))
    (step,) = play_out(model)
    assert step.ends_s == [pytest.approx(4.5225 / 200)]
    assert model.reading(step.ends_s[0]).power_w == pytest.approx(300)
    assert model.totals.throttled_s == pytest.approx(4.5225 / 200)
    assert model.reading(step.ends_s[0] / 2).throttled_s == pytest.approx(4.5225 / 400)


def test_ttft_grows_with_the_queue() -> None:
    model = StepModel(plain(max_sequences=4))
    requests = submit(model, *[(0.0, 100, 20)] * 12)
    play_out(model)
    waves = [[ttft_s(request) for request in requests[k : k + 4]] for k in (0, 4, 8)]
    assert all(max(wave) == min(wave) for wave in waves)
    assert waves[2][0] - waves[1][0] == pytest.approx(waves[1][0] - waves[0][0])
    assert waves[1][0] - waves[0][0] > 20 * 11e-3  # twenty steps of a batch of four


def test_a_prompt_stretches_the_tokens_of_the_others() -> None:
    model = StepModel(plain())
    submit(model, (0.0, 100, 50), (0.2, 800, 1))
    steps = play_out(model)
    gaps = {step.plan.prefill_tokens: step.ends_s[0] - step.start_s for step in steps[1:]}
    # 800 tokens at 10 us and 800²/2 pairs at 1 ns
    assert gaps[800] - gaps[0] == pytest.approx(8.32e-3, abs=1e-4)


def test_a_step_that_prefills_alone_stops_the_others() -> None:
    model = StepModel(plain(exclusive_prefill=True))
    submit(model, (0.0, 100, 50), (0.2, 800, 1))
    mixed = [step.plan for step in play_out(model) if step.plan.prefill_tokens]
    assert [(plan.prefill_tokens, plan.decoding) for plan in mixed] == [(100, 0), (800, 0)]


def test_decoding_goes_first_and_prompts_share_what_is_left() -> None:
    """A budget of 100: ten decode, a prompt of 200 takes 90, 90 and 20, the next 70 of the rest."""
    model = StepModel(plain(budget_tokens=100))
    submit(model, *[(0.0, 10, 100)] * 10, (0.05, 200, 1), (0.05, 75, 1))
    plans = [step.plan for step in play_out(model)]
    chunks = [plan.prefill_tokens for plan in plans if plan.prefill_tokens]
    assert chunks == [100, 90, 90, 90, 5]
    third = next(plan for plan in plans if [r.key for r in plan.first] == [10])
    assert third.attended_tokens == 20 * (180 + 10) + 70 * 35


def test_memory_overflow_sends_the_newest_back_and_it_finishes_later() -> None:
    """Three of 300 + 60 tokens in 1,000: the third outgrows the memory, and prefills again."""
    model = StepModel(plain(kv_capacity_tokens=1000, context_tokens=500))
    requests = submit(model, *[(0.0, 300, 60)] * 3)
    steps = play_out(model)
    assert model.preemptions == 1
    again = [step for step in steps if step.plan.prefill_tokens and step.start_s > 0]
    assert [request.key for request in again[0].plan.first] == [2]
    assert again[0].plan.prefill_tokens == 300 + 34  # 3 x 334 is the first total over 1,000
    assert [request.last_s is not None for request in requests] == [True] * 3
    assert requests[2].last_s == steps[-1].ends_s[0]
    assert model.totals.output_tokens == 180
    assert model.totals.prompt_tokens == 900  # computing it again is no new prompt


def test_a_full_memory_keeps_the_queue_in_order() -> None:
    """The short one behind the one that doesn't fit waits for it."""
    model = StepModel(plain(kv_capacity_tokens=1000))
    submit(model, (0.0, 600, 50), (0.0, 500, 5), (0.0, 10, 5))
    order = [request.key for step in play_out(model) for request in step.plan.first]
    assert order == [0, 1, 2]


@pytest.mark.parametrize("steps_before", [0, 1, 2, 6])
def test_cancel_frees_a_request_wherever_it_is(steps_before: int) -> None:
    """Not arrived, queued, half prefilled, decoding."""
    model = StepModel(plain(max_sequences=2))
    submit(model, (0.0, 100, 10), (0.0, 2500, 10), (0.0, 100, 10), (9.0, 100, 10))
    for _ in range(steps_before):
        model.step()
    unfinished = [key for key in range(4) if model.cancel(key)]
    assert unfinished == [0, 1, 2, 3]
    assert (model.running, model.waiting, model.kv_share) == (0, 0, 0.0)
    assert model.step() is None
    assert model.totals.cancelled == 4


def test_cancel_knows_what_is_over() -> None:
    model = StepModel(plain())
    submit(model, (0.0, 100, 2))
    play_out(model)
    assert not model.cancel(0)
    assert not model.cancel(7)
    assert model.totals.cancelled == 0


def test_the_others_go_on_after_a_cancel() -> None:
    model = StepModel(plain())
    kept, _ = submit(model, (0.0, 100, 10), (0.0, 100, 10))
    model.step()
    model.step()
    model.cancel(1)
    steps = play_out(model)
    assert {step.plan.decoding for step in steps} == {1}
    assert kept.last_s == steps[-1].ends_s[0]


def test_idle_time_jumps_to_the_next_arrival_at_idle_power() -> None:
    model = StepModel(plain())
    submit(model, (5.0, 300, 1))
    (step,) = play_out(model)
    assert step.start_s == 5.0
    assert model.reading(step.ends_s[0] + 2.0).power_w == 100
    busy_j = 100 * 14.045e-3 + 300 * 10e-3 + 500 * 3.045e-3
    assert model.reading(step.ends_s[0] + 2.0).energy_j == pytest.approx(700 + busy_j)


def test_time_never_goes_back() -> None:
    model = StepModel(plain())
    model.idle_to(5.0)
    model.idle_to(3.0)
    assert (model.t_s, model.totals.energy_j) == (5.0, 500.0)


def test_what_can_never_fit_is_refused_by_name() -> None:
    model = StepModel(plain(context_tokens=500))
    with pytest.raises(UsageError, match=r"490 \+ 11 tokens doesn't fit in the simulator's 500"):
        model.submit(0, 0.0, 490, 11)
    model.submit(0, 0.0, 489, 11)


@pytest.mark.parametrize("tokens", [(0, 5), (5, 0)])
def test_an_empty_request_is_a_fault_of_the_caller(tokens: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="request 0"):
        StepModel(plain()).submit(0, 0.0, *tokens)


def test_a_key_is_free_again_only_after_its_request() -> None:
    model = StepModel(plain())
    model.submit(0, 0.0, 5, 1)
    with pytest.raises(ValueError, match="request 0"):
        model.submit(0, 0.0, 5, 1)
    play_out(model)
    model.submit(0, 1.0, 5, 1)


def test_drift_slows_every_step_after_its_time() -> None:
    model = StepModel(plain(drift_speed=0.8, drift_after_s=1.0))
    submit(model, (0.0, 10, 200))
    lengths = [(step.start_s, step.ends_s[0] - step.start_s) for step in play_out(model)]
    before = [length for start, length in lengths if 0.1 < start < 1.0]
    after = [length for start, length in lengths if start >= 1.0]
    assert after[0] == pytest.approx(before[-1] / 0.8, rel=1e-3)


def test_a_pause_delays_tokens_at_idle_power() -> None:
    model = StepModel(plain(stalls_per_s=2.0, stall_s=0.5), seed=3)
    quiet = StepModel(plain())
    for each in (model, quiet):
        submit(each, (0.0, 10, 500))
        play_out(each)
    paused_s = model.t_s - quiet.t_s
    assert paused_s > 1
    assert model.totals.energy_j - quiet.totals.energy_j == pytest.approx(100 * paused_s)


def test_the_meter_never_runs_backwards_and_never_over_the_limit() -> None:
    model = StepModel(shape_of("cal", {"stalls_per_s": 1, "stall_s": 0.1}), seed=5)
    submit(model, *[(0.05 * k, 900, 40) for k in range(200)])
    readings = []
    while (step := model.step()) is not None:
        span = step.ends_s[0] - step.start_s
        readings += [model.reading(step.start_s + span * k / 4) for k in range(1, 5)]
    assert all(a.energy_j < b.energy_j for a, b in pairwise(readings))
    assert all(a.throttled_s <= b.throttled_s for a, b in pairwise(readings))
    assert max(reading.power_w for reading in readings) <= 700 * (1 + 1e-12)
    assert any(reading.throttling for reading in readings)
    assert model.totals.throttled_s > 0
