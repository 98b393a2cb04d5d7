"""What the meters read while the server is up and has nothing to do: before the load and after it.

Efficiency is ranked on gross energy. What a machine draws anyway is published beside it, so that a
reader can tell what the tokens themselves cost.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tokenwatt_site.method.energy import EnergyWindow, energy_window
from tokenwatt_site.method.evidence import sample_of
from tokenwatt_site.method.meters import MeterFacts

BEFORE, AFTER = -1, -2
"""Numbers of the stretches in the evidence: no window has a negative one."""

Rows = Iterable[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Idle:
    """One stretch without load."""

    index: int
    """BEFORE or AFTER."""
    seconds: float
    meters: tuple[EnergyWindow, ...]
    """By meter, in the spec's order."""


def idle_stretch(index: int, seconds: float, power: Sequence[tuple[MeterFacts, Rows]]) -> Idle:
    """Return what the meters say of a stretch; the times of their rows start with it."""
    meters = tuple(
        energy_window([sample_of(row) for row in rows], meter.devices, 0.0, seconds, meter.hz)
        for meter, rows in power
    )
    return Idle(index, seconds, meters)


def idle_of(
    stretches: Sequence[Idle], number: int, joules: float | None, seconds: float, tokens: float
) -> dict[str, Any]:
    """Return the keys of ``documents.run.Energy`` that one meter's idle power gives.

    Args:
        stretches: those that were measured.
        number: the meter's.
        joules: its energy under load, None where it is invalid.
        seconds: how long that was.
        tokens: output tokens in that time.
    """
    means_w = {
        each.index: power.mean_w
        for each in stretches
        if (power := each.meters[number]).valid and power.mean_w is not None
    }
    if not means_w:
        return {}
    idle_w = math.fsum(means_w.values()) / len(means_w)
    keys: dict[str, Any] = {
        "idle_w": idle_w,
        "idle_s": math.fsum(each.seconds for each in stretches if each.index in means_w),
    }
    if BEFORE in means_w and AFTER in means_w:
        keys["idle_drift_w"] = means_w[AFTER] - means_w[BEFORE]
    above_j = None if joules is None else joules - idle_w * seconds
    if above_j is not None and above_j >= 0 and tokens:
        keys["net_j_per_output_token"] = above_j / tokens
    return keys
