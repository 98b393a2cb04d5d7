"""Which accelerators a measurement is about."""

import pytest

from tokenwatt_site.drivers.choice import EVERY, choose
from tokenwatt_site.errors import UsageError

FOUND = ["A", "B", None, "D"]


@pytest.mark.parametrize(
    "gpus, count, expected",
    [
        (None, 1, ["A"]),
        (None, 2, ["A", "B"]),
        ([3, 0], 2, ["D", "A"]),
        (["B", 0], 2, ["B", "A"]),
        ([1], 0, ["B"]),
        (None, EVERY, ["A", "B", "D"]),
    ],
)
def test_accelerators_are_chosen(
    gpus: list[int | str] | None, count: int, expected: list[str]
) -> None:
    assert choose(FOUND, gpus, count) == expected


@pytest.mark.parametrize(
    "gpus, count, text",
    [
        (None, 0, "isn't known"),
        (None, 5, "needs 5 accelerators .* shows 4"),
        (None, 3, "accelerator 2 isn't there or doesn't answer"),
        ([2], 1, "accelerator 2 isn't there or doesn't answer"),
        ([-1], 1, "accelerator -1 isn't there"),
        ([4], 1, "accelerator 4 isn't there"),
        (["X"], 1, "no accelerator X"),
        ([0, "A"], 2, "twice"),
        ([0], 2, "names 1 accelerators, the model needs 2"),
        ([], 1, "names 0 accelerators"),
    ],
)
def test_what_cant_be_chosen_is_told(gpus: list[int | str] | None, count: int, text: str) -> None:
    with pytest.raises(UsageError, match=text) as raised:
        choose(FOUND, gpus, count)
    assert raised.value.hint


def test_the_hint_lists_what_is_there() -> None:
    with pytest.raises(UsageError) as raised:
        choose(FOUND, ["X"], 1)
    assert raised.value.hint == "this machine shows 0: A, 1: B, 2: no answer, 3: D"
    with pytest.raises(UsageError, match="X") as raised:
        choose([], ["X"], 1)
    assert raised.value.hint == "this machine shows none"


def test_a_driver_without_accelerators_is_told() -> None:
    with pytest.raises(UsageError, match="shows no accelerator"):
        choose([None], None, EVERY)
