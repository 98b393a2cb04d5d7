"""A meter's number: its unit by the spec, and whether it is a reading at all."""

import math
from typing import Literal

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import UsageError

Quantity = Literal["power", "energy"]
FACTORS: dict[Quantity, dict[str, float]] = {
    "power": {"W": 1.0, "mW": 1e-3, "kW": 1e3},
    "energy": {"J": 1.0, "mJ": 1e-3, "kJ": 1e3, "Wh": 3.6e3, "kWh": 3.6e6},
}
"""quantity -> unit -> factor to W or J."""
PLACEHOLDER = 65_535
"""What 16 bits hold where nothing was measured."""


def asked_for(power: SpecPower) -> tuple[Quantity, float]:
    """Return the quantity that a spec says it reads, and the factor of its unit to W or J.

    Raises:
        UsageError: one of them isn't given, or they don't go together.
    """
    source = power.source
    if power.quantity is None:
        raise UsageError(
            f"power.quantity: {source} doesn't say whether its readings are power or energy",
            "set power.quantity to power, or to energy for a running total",
        )
    factors = FACTORS[power.quantity]
    if power.unit not in factors:
        raise UsageError(
            f"power.unit: {power.unit or 'none'} is no unit of {power.quantity}",
            f"set power.unit to one of {', '.join(factors)}",
        )
    return power.quantity, factors[power.unit]


def checked(raw: float, quantity: Quantity) -> str | None:
    """Return the error's code of a number that is no reading, None of one that may be.

    ``raw`` is as the meter gave it, before its unit: NaN, infinite or negative is a bad_answer, and
    so is a power of 65,535; a power of 0 is zero_power.
    """
    if not math.isfinite(raw) or raw < 0:
        return "bad_answer"
    if quantity == "power" and raw == PLACEHOLDER:
        return "bad_answer"
    return "zero_power" if quantity == "power" and raw == 0 else None


def finite(value: object) -> bool:
    """Tell whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
