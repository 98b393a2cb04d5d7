"""Which accelerators a measurement was made on."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site.errors import UsageError


@dataclass(frozen=True, slots=True)
class Accelerators:
    """The accelerators under test: all of one kind."""

    vendor: str
    name: str
    """Empty where no driver was asked."""
    count: int
    """0 where no driver was asked."""
    driver: str = ""
    uuids: tuple[str, ...] = ()
    power_limit_w: float | None = None
    """Enforced power limit of one: the highest, where they differ."""
    rated_bw_tbs_per_gpu: float | None = None
    """Rated memory bandwidth of one, TB/s, where the spec or the driver gives it."""
    notes: tuple[str, ...] = ()
    """What a user should know of them."""


def limits_note(limits_w: Sequence[float]) -> tuple[str, ...]:
    """Return a sentence where the power limits differ, W."""
    if len(set(limits_w)) < 2:  # noqa: PLR2004 - one limit for all
        return ()
    between = f"{min(limits_w):,.0f} to {max(limits_w):,.0f} W"
    return (f"power limits differ, {between}: the highest is published",)


def one_kind(names: Sequence[str]) -> str:
    """Return the name that all accelerators have.

    Raises:
        UsageError: they differ.
    """
    kinds = sorted(set(names))
    if len(kinds) > 1:
        raise UsageError(
            f"the accelerators under test are of {len(kinds)} kinds: {', '.join(kinds)}",
            "name those that the engine uses in hardware.gpus",
        )
    return kinds[0]
