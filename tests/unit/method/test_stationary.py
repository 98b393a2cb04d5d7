"""Requests in flight: length-biased, anywhere in their answer, in front of the schedule."""

import pytest

from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.stationary import with_residuals
from tokenwatt_site.method.workloads import Fixed, Lognormal, Workload

MIX = Workload("mix", Lognormal(500, 2000, 4000), Lognormal(100, 400, 800))


def test_they_come_first_at_zero_and_the_stream_is_as_before() -> None:
    stream = poisson_schedule(MIX, 5.0, 20.0, 3)
    whole = with_residuals(stream, MIX, 7, rng(1, "residuals", 4))
    assert whole.injected == 7
    assert list(whole.arrival_s[:7]) == [0.0] * 7
    assert whole.arrival_s[7:] == stream.arrival_s
    assert whole.input_tokens[7:] == stream.input_tokens
    assert whole.output_tokens[7:] == stream.output_tokens
    assert whole == with_residuals(stream, MIX, 7, rng(1, "residuals", 4))


def test_answers_are_drawn_by_their_length_and_cut_anywhere() -> None:
    """The mean rest is E[L²]/2E[L]; prompt and rest together hold the prompt and the answer."""
    empty = poisson_schedule(MIX, 1.0, 0.0, 1)
    drawn = with_residuals(empty, MIX, 8000, rng(2, "residuals"))
    source = rng(3, "lengths")
    lengths = [MIX.output.draw(source) for _ in range(40_000)]
    second, first = sum(x * x for x in lengths), sum(lengths)
    rest = sum(drawn.output_tokens) / 8000
    assert rest == pytest.approx(second / first / 2 + 0.5, rel=0.03)
    whole = rest + sum(drawn.input_tokens) / 8000
    assert whole == pytest.approx(MIX.input.mean() + second / first, rel=0.03)
    assert min(drawn.output_tokens) >= 1


def test_equal_answers_have_rests_of_every_length() -> None:
    fixed = Workload("fixed", Fixed(10), Fixed(4))
    drawn = with_residuals(poisson_schedule(fixed, 1.0, 0.0, 1), fixed, 400, rng(5, "residuals"))
    assert {*zip(drawn.input_tokens, drawn.output_tokens, strict=True)} == {
        (10, 4), (11, 3), (12, 2), (13, 1),
    }  # fmt: skip
