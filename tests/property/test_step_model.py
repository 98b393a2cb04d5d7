"""The step model on any server and any load: nothing is lost, nobody is passed, time goes on."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.steps import plain, play_out, submit
from tokenwatt_site.method.scheduler import Request
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_model import Step, StepModel

LOADS = st.lists(
    st.tuples(
        st.floats(0, 2, allow_subnormal=False),
        st.integers(1, 300),
        st.integers(1, 60),
    ),
    min_size=1,
    max_size=40,
).map(sorted)


@st.composite
def servers(draw: st.DrawFn, *, roomy: bool = False) -> Shape:
    """Draw a server; a roomy one never runs out of memory."""
    return plain(
        budget_tokens=draw(st.integers(8, 600)),
        max_sequences=draw(st.integers(1, 40)),
        kv_capacity_tokens=100_000 if roomy else draw(st.integers(400, 4000)),
        expert_bytes=draw(st.sampled_from([0.0, 50e9])),
        experts=64,
        experts_per_token=4,
        limit_w=draw(st.sampled_from([250.0, 1000.0])),
        noise_sd=draw(st.sampled_from([0.0, 0.2])),
        noise_tau_s=1.0,
        stalls_per_s=draw(st.sampled_from([0.0, 3.0])),
        stall_s=0.05,
        drift_speed=0.9,
        drift_after_s=0.5,
        exclusive_prefill=draw(st.booleans()),
    )


def played(shape: Shape, load: list[tuple[float, int, int]]) -> tuple[StepModel, list[Request]]:
    model = StepModel(shape, seed=1)
    requests = submit(model, *load)
    play_out(model, model.run)
    return model, requests


@given(servers(), LOADS)
def test_every_request_gets_its_tokens_and_all_memory_is_free_again(
    shape: Shape, load: list[tuple[float, int, int]]
) -> None:
    model, requests = played(shape, load)
    assert model.totals.finished == len(load)
    assert model.totals.output_tokens == sum(output for _, _, output in load)
    assert model.totals.prompt_tokens == sum(prompt for _, prompt, _ in load)
    assert [model.produced(request) for request in requests] == [output for *_, output in load]
    assert (model.running, model.waiting, model.kv_share) == (0, 0, 0.0)


@given(servers(), LOADS)
def test_time_goes_on_and_no_token_comes_before_its_request(
    shape: Shape, load: list[tuple[float, int, int]]
) -> None:
    model = StepModel(shape, seed=1)
    requests = submit(model, *load)
    steps = play_out(model)
    assert all(step.start_s < step.ends_s[0] for step in steps)
    assert all(a.ends_s[0] <= b.start_s for a, b in pairwise(steps))
    for request in requests:
        assert request.first_s is not None
        assert request.last_s is not None
        assert request.arrival_s < request.first_s <= request.last_s


@given(servers(roomy=True), LOADS)
def test_first_tokens_come_in_the_order_of_arrival(
    shape: Shape, load: list[tuple[float, int, int]]
) -> None:
    _, requests = played(shape, load)
    firsts = [request.first_s or 0.0 for request in requests]
    assert firsts == sorted(firsts)


@given(servers(), LOADS)
def test_a_step_keeps_the_limits_of_the_server(
    shape: Shape, load: list[tuple[float, int, int]]
) -> None:
    model = StepModel(shape, seed=1)
    submit(model, *load)
    for step in play_out(model):
        assert step.plan.decoding + len(step.plan.first) <= shape.max_sequences
        room = max(0, shape.budget_tokens - step.plan.decoding)
        assert step.plan.prefill_tokens <= (
            shape.budget_tokens if shape.exclusive_prefill else room
        )


@given(servers(), LOADS)
def test_energy_is_the_integral_of_power_under_the_limit(
    shape: Shape, load: list[tuple[float, int, int]]
) -> None:
    model = StepModel(shape, seed=1)
    submit(model, *load)
    energy_j, last_s = 0.0, 0.0
    while (step := model.step()) is not None:
        energy_j += shape.idle_w * (step.start_s - last_s)
        power_w = model.reading(step.ends_s[0]).power_w
        assert shape.idle_w < power_w <= shape.limit_w * (1 + 1e-9)
        energy_j += power_w * (step.ends_s[0] - step.start_s)
        last_s = step.ends_s[0]
    assert abs(model.totals.energy_j - energy_j) <= 1e-9 * energy_j


@given(servers(), LOADS)
def test_steps_taken_together_end_like_steps_one_by_one(
    shape: Shape, load: list[tuple[float, int, int]]
) -> None:
    one, many = StepModel(shape, seed=1), StepModel(shape, seed=1)
    slow, fast = submit(one, *load), submit(many, *load)

    def ends(steps: list[Step]) -> list[float]:
        return [end_s for step in steps for end_s in step.ends_s]

    assert ends(play_out(one)) == ends(play_out(many, many.run))
    assert [(r.first_s, r.last_s) for r in slow] == [(r.first_s, r.last_s) for r in fast]
    assert one.preemptions == many.preemptions
    assert abs(one.totals.energy_j - many.totals.energy_j) <= 1e-9 * one.totals.energy_j


@given(servers(), LOADS, st.data())
def test_a_cancel_at_any_time_leaves_the_others_whole(
    shape: Shape, load: list[tuple[float, int, int]], data: st.DataObject
) -> None:
    model = StepModel(shape, seed=1)
    requests = submit(model, *load)
    gone = {key for key in range(len(load)) if data.draw(st.booleans())}
    cancelled: set[int] = set()
    for key in gone:
        for _ in range(data.draw(st.integers(0, 3))):
            model.step()
        if model.cancel(key):
            cancelled.add(key)
    play_out(model)
    assert model.kv_share == 0.0
    assert model.running == 0
    for request in requests:
        if request.key not in cancelled:
            assert model.produced(request) == request.output_tokens
            assert request.last_s is not None
