"""Named shapes, and changes to them by name."""

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.support.steps import plain
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.overrides import Meter, parse, split, values_of
from tokenwatt_site.method.profiles import PROFILES, shape_of
from tokenwatt_site.method.shape import Shape

NAMES = ("demo", "cal", "d8", "d70", "pref", "hard", "drift", "b2k", "stall", "jit", "excl")


def test_the_profiles_have_the_names_that_the_docs_give_them() -> None:
    assert tuple(PROFILES) == NAMES
    assert [shape.name for shape in PROFILES.values()] == list(NAMES)


@pytest.mark.parametrize(
    "name,difference",
    [
        ("hard", {"max_sequences": 48}),
        ("drift", {"drift_speed": 0.9, "drift_after_s": 600.0}),
        ("b2k", {"budget_tokens": 2048}),
        ("stall", {"stalls_per_s": 0.1, "stall_s": 0.2}),
        ("jit", {"noise_sd": 0.08}),
        ("excl", {"exclusive_prefill": True}),
        ("pref", {}),
    ],
)
def test_the_stress_shapes_differ_from_cal_in_one_thing(
    name: str, difference: dict[str, Any]
) -> None:
    shape = PROFILES[name]
    assert replace(PROFILES["cal"], name=name, about=shape.about, **difference) == shape


def test_cal_has_the_published_bandwidth() -> None:
    assert PROFILES["cal"].bandwidth_bytes_s == pytest.approx(0.71 * 19.2e12)


def test_experts_read_grow_with_the_tokens_of_a_step() -> None:
    """8 GB and 276 of 256 experts: 6 of them for a token, all in the end."""
    shape = PROFILES["cal"]
    assert shape.weight_bytes(1) == pytest.approx(8e9 + 276e9 * 6 / 256)
    assert shape.weight_bytes(64) == pytest.approx(8e9 + 276e9 * 0.7806, rel=1e-3)
    assert shape.weight_bytes(10**6) == 284e9


def test_overrides_change_the_shape_and_no_other_profile() -> None:
    shape = shape_of("cal", {"max_sequences": 8, "noise_sd": 0, "exclusive_prefill": True})
    assert (shape.max_sequences, shape.noise_sd, shape.exclusive_prefill) == (8, 0.0, True)
    assert PROFILES["cal"].max_sequences == 1024


def test_overrides_of_the_meter_leave_the_shape_alone() -> None:
    overrides = {"meter_gain": 1.1, "meter_counter": 0}
    assert shape_of("cal", overrides) == PROFILES["cal"]
    assert split(overrides).meter == Meter(meter_gain=1.1, meter_counter=False)


def test_numbers_take_the_type_of_their_field() -> None:
    """A command line gives floats, YAML gives ints and bools."""
    shape = shape_of("cal", {"max_sequences": 8.0, "fixed_s": 1, "exclusive_prefill": 1.0})
    assert [type(v) for v in (shape.max_sequences, shape.fixed_s, shape.exclusive_prefill)] == [
        int,
        float,
        bool,
    ]


@pytest.mark.parametrize(
    "name,hint",
    [("dem", "did you mean demo?"), ("d7", "did you mean d70?"), ("xyz", "known: demo, cal, d8")],
)
def test_an_unknown_profile_names_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"unknown simulator profile '{name}'") as caught:
        shape_of(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "overrides,what,hint",
    [
        ({"max_sequnces": 8}, "unknown simulator override 'max_sequnces'", "max_sequences"),
        ({"meter_gains": 8}, "unknown simulator override 'meter_gains'", "meter_gain"),
        ({"name": 8}, "unknown simulator override 'name'", "--list"),
        ({"max_sequences": 1.5}, "max_sequences is 1.5", "a whole number"),
        ({"max_sequences": True}, "max_sequences is True", "a whole number"),
        ({"fixed_s": float("nan")}, "fixed_s is nan", "a finite number"),
        ({"fixed_s": float("inf")}, "fixed_s is inf", "a finite number"),
        ({"exclusive_prefill": 2}, "exclusive_prefill is 2", "true or false"),
        ({"max_sequences": 0}, "max_sequences is 0", "above 0"),
        ({"fixed_s": -1}, "fixed_s is -1", "0 or more"),
        ({"experts": 2}, "experts_per_token is over experts", "lower it"),
        ({"idle_w": 700}, "limit_w is not over idle_w", "raise the limit"),
        ({"fixed_s": 0, "dense_bytes": 0, "expert_bytes": 0}, "no time", "fixed_s"),
    ],
)
def test_what_makes_no_server_is_refused_by_name(
    overrides: dict[str, Any], what: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        shape_of("cal", overrides)
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_pairs_of_a_command_line() -> None:
    found = parse(["max_sequences=8", " noise_sd = 1e-2", "meter_counter=false", "x=Yes"])
    assert found == {"max_sequences": 8.0, "noise_sd": 0.01, "meter_counter": False, "x": True}


@pytest.mark.parametrize("pair", ["max_sequences", "max_sequences=", "max_sequences=eight"])
def test_a_pair_that_is_none_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="max_sequences"):
        parse([pair])


def test_every_number_of_a_shape_can_be_changed() -> None:
    known = {f.name for f in fields(Shape)} - {"name", "about", "accelerator"}
    values = values_of(plain())
    assert set(values) == known | {"meter_gain", "meter_counter"}
    assert values["budget_tokens"] == 1000


@pytest.mark.parametrize("key", ["fixed_s", "max_sequences", "exclusive_prefill"])
def test_a_number_too_large_for_any_field_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match=key) as caught:
        shape_of("cal", {key: 10**400})
    assert len(caught.value.what) < 100
