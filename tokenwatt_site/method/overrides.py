"""Changes to a shape by name, from a spec or a command line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.shape import Shape

Value = int | float | bool


@dataclass(frozen=True, slots=True)
class Meter:
    """How the simulated meter is made wrong, to see whether a measurement notices."""

    meter_gain: float = 1.0
    """Factor on the power and on the energy counter."""
    meter_counter: bool = True
    """Whether there is an energy counter."""


@dataclass(frozen=True, slots=True)
class Split:
    """Overrides of the two things that a spec's ``engine.simulator.overrides`` may change."""

    shape: dict[str, Any]
    """Values of :class:`Shape` by name, of the right type."""
    meter: Meter


_SHAPE_TYPES: dict[str, Any] = {f.name: f.type for f in fields(Shape) if f.type is not str}
_METER_TYPES: dict[str, Any] = {f.name: f.type for f in fields(Meter)}
_TYPES = _SHAPE_TYPES | _METER_TYPES
_LARGEST = 1e300
_SHOWN = 40
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def split(overrides: Mapping[str, Value]) -> Split:
    """Check overrides and sort them by what they change.

    Raises:
        UsageError: an unknown key, with the nearest known one, or a value of the wrong kind.
    """
    values: dict[str, Any] = {key: _typed(key, value) for key, value in overrides.items()}
    return Split(
        {key: value for key, value in values.items() if key in _SHAPE_TYPES},
        Meter(**{key: value for key, value in values.items() if key in _METER_TYPES}),
    )


def values_of(shape: Shape) -> dict[str, Value]:
    """Return what an override may name, with the values of a shape and of a meter that is right."""
    known = {key: getattr(shape, key) for key in _SHAPE_TYPES}
    return known | {key: getattr(Meter(), key) for key in _METER_TYPES}


def parse(pairs: Iterable[str]) -> dict[str, Value]:
    """Return overrides given as ``key=value`` texts.

    Raises:
        UsageError: a text without "=", or a value that is no number, true or false.
    """
    overrides: dict[str, Value] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"override {pair!r} has no '='", "write it as key=value")
        try:
            value = _WORDS.get(text.strip().lower())
            overrides[key.strip()] = float(text) if value is None else value
        except ValueError:
            raise UsageError(
                f"override {key.strip()}: {text!r} is no number", "give a number, true or false"
            ) from None
    return overrides


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint that names the known word nearest to ``name``, or ``otherwise``."""
    near = get_close_matches(name, list(known), 1, 0.5)
    return f"did you mean {near[0]}?" if near else otherwise


def _typed(key: str, value: Value) -> Value:
    if key not in _TYPES:
        otherwise = "`tokenwatt-site simulate --list` names them all"
        raise UsageError(f"unknown simulator override {key!r}", nearest(key, _TYPES, otherwise))
    kind = _TYPES[key]
    if kind is bool and value in (0, 1):
        return bool(value)
    if kind is not bool and not isinstance(value, bool) and abs(value) <= _LARGEST:
        if kind is float:
            return float(value)
        if float(value).is_integer():
            return int(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a finite number"}[kind]
    raise UsageError(f"simulator override {key} is {str(value)[:_SHOWN]}", f"give {wanted}")
