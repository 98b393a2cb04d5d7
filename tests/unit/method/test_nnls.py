"""Least squares without negative coefficients, against answers that are known."""

import pytest

from tokenwatt_site.method.nnls import non_negative
from tokenwatt_site.method.rng import rng


def test_an_exact_answer_is_found() -> None:
    rows = [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [1.0, 1.0, 1.0]]
    wanted = [0.5, 2.0, 0.25]
    targets = [sum(a * b for a, b in zip(row, wanted, strict=True)) for row in rows]
    assert non_negative(rows, targets) == pytest.approx(wanted)


def test_what_would_be_negative_is_zero_and_the_rest_is_fitted_without_it() -> None:
    """Of y = 3 - x on x = 0..3: a constant alone is left, the mean."""
    rows = [[1.0, float(x)] for x in range(4)]
    assert non_negative(rows, [3.0, 2.0, 1.0, 0.0]) == pytest.approx([1.5, 0.0])


def test_a_column_that_comes_in_first_may_go_out_again() -> None:
    """The second column alone explains most, both others together explain all."""
    rows = [[1.0, 0.9, 0.0], [0.0, 0.9, 1.0], [0.0, 0.1, 0.0]]
    assert non_negative(rows, [1.0, 1.0, 0.0]) == pytest.approx([1.0, 0.0, 1.0])


def test_columns_that_say_the_same_and_empty_ones_do_no_harm() -> None:
    rows = [[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]]
    first, second, empty = non_negative(rows, [3.0, 6.0])
    assert first + second == pytest.approx(3.0)
    assert empty == 0.0
    assert non_negative(rows, [-1.0, -2.0]) == [0.0, 0.0, 0.0]


def test_no_step_away_from_the_answer_is_better() -> None:
    """The conditions of an optimum: no pull on what is free, none upwards on what is 0."""
    source = rng(3, "rows")
    for _ in range(30):
        rows = [[source.gauss(0, 1) for _ in range(5)] for _ in range(9)]
        targets = [source.gauss(0, 1) for _ in range(9)]
        x = non_negative(rows, targets)
        left = [
            target - sum(a * b for a, b in zip(row, x, strict=True))
            for row, target in zip(rows, targets, strict=True)
        ]
        for j in range(5):
            pull = sum(row[j] * rest for row, rest in zip(rows, left, strict=True))
            assert x[j] >= 0
            assert pull == pytest.approx(0, abs=1e-8) if x[j] > 0 else pull <= 1e-8
