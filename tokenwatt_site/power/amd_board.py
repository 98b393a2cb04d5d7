"""One AMD board: what its driver tells of it differs by generation, so it is probed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenwatt_site.drivers.amd import Amd, known
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.power.reading import checked

CURRENT, AVERAGE = "current_socket_power", "average_socket_power"
_NO_VALUE = 0xFFFF_FFFF
RESIDENCIES = {
    "ppt_residency_acc": "sw_power_cap",
    "prochot_residency_acc": "prochot",
    "socket_thm_residency_acc": "thermal",
    "vr_thm_residency_acc": "vr_thermal",
    "hbm_thm_residency_acc": "hbm_thermal",
}
"""Counters of throttled time, of gpu_metrics 1.6 and later (MI300), in steps of
``accumulation_counter``."""
EVERY_S = 0.5
"""How often they are asked for: the Python package takes 0.8 ms for it, a reading without 0.02."""
PROBE_S, _LOOKS = 0.05, 6
"""An energy counter that stands still over the looks together is frozen; it should move each ms."""

Wait = Callable[[float], object]


@dataclass(slots=True)
class Telemetry:
    """What gpu_metrics tells of one board: clock, temperature, and running throttled time.

    The unit of the residencies isn't documented, their ratio to ``accumulation_counter`` is: a
    reason held for that share of the time between two looks.
    """

    throttled_ns: dict[str, int] = field(default_factory=dict)
    active: tuple[str, ...] | None = None
    """Reasons that held some of the time between the last two looks; None where it isn't told."""
    clock_mhz: float | None = None
    temperature_c: float | None = None
    _looked_s: float = -math.inf
    _last: tuple[float, Mapping[str, Any]] | None = None

    def look(self, t_s: float, ask: Callable[[], Mapping[str, Any] | None]) -> None:
        """Ask for the metrics if it is time to."""
        if 0 <= t_s - self._looked_s < EVERY_S:
            return
        self._looked_s = t_s
        metrics = ask()
        self.clock_mhz = _clock_mhz(metrics)
        self.temperature_c = known(metrics, "temperature_hotspot")
        steps = known(metrics, "accumulation_counter")
        if metrics is not None and steps is not None:
            self._throttling(t_s, steps, metrics)

    def _throttling(self, t_s: float, steps: int, metrics: Mapping[str, Any]) -> None:
        if self._last is None:
            self.active = ()
            told = [name for key, name in RESIDENCIES.items() if known(metrics, key) is not None]
            self.throttled_ns = dict.fromkeys(told, 0)
        else:
            before_s, before = self._last
            passed = steps - before["accumulation_counter"]
            if passed == 0:  # the same metrics again: the library keeps them for a while
                return
            if passed > 0:
                self._add(before, metrics, (t_s - before_s) / passed)
        self._last = (t_s, metrics)

    def _add(self, before: Mapping[str, Any], now: Mapping[str, Any], step_s: float) -> None:
        active: list[str] = []
        for key, name in RESIDENCIES.items():
            held = (known(now, key) or 0) - (known(before, key) or 0)
            if name in self.throttled_ns and held > 0:
                self.throttled_ns[name] += round(held * step_s * 1e9)
                active.append(name)
        self.active = tuple(active)


def _clock_mhz(metrics: Any) -> float | None:
    """Return the graphics clock, MHz: on MI300 the mean of those of its dies."""
    of_dies: list[Any] = known(metrics, "current_gfxclks") or []
    told = [clock for clock in of_dies if isinstance(clock, int) and clock]
    return sum(told) / len(told) if told else known(metrics, "current_gfxclk")


@dataclass(frozen=True, slots=True)
class AmdBoard:
    """One board and what its driver was found to tell of it."""

    uuid: str
    """Of the GPU that tells its power."""
    handle: Any
    power: str
    """The key of its power."""
    counter: bool
    """It has an energy counter that moves."""
    frozen: bool
    """It has one that doesn't."""
    telemetry: Telemetry


def probe(amd: Amd, uuid: str, wait: Wait) -> AmdBoard:
    """Find out what a board's driver tells of it; ``wait`` waits so many seconds.

    Raises:
        RefusedError: not its power.
    """
    handle = amd.handle(uuid)
    told, code = amd.ask(amd.lib.amdsmi_get_power_info, handle)
    power = next((key for key in (CURRENT, AVERAGE) if power_w(told, key)[0] is not None), None)
    if power is None:
        raise RefusedError(
            f"GPU {uuid} doesn't tell its power ({code or power_w(told, CURRENT)[1]})",
            "a virtual GPU has none, and of a board's dies and partitions only the first: measure "
            "on the host, or set power.source to none",
        )
    first_j = energy_j(amd, handle)
    moves = first_j is not None and _moves(amd, handle, first_j, wait)
    return AmdBoard(uuid, handle, power, moves, first_j is not None and not moves, Telemetry())


def _moves(amd: Amd, handle: Any, first_j: float, wait: Wait) -> bool:
    for _ in range(_LOOKS):
        wait(PROBE_S)
        if energy_j(amd, handle) != first_j:
            return True
    return False


def power_w(told: Any, key: str) -> tuple[float | None, str | None]:
    """Return the power of an answer, W, or the code of what is there instead."""
    raw = known(told, key)
    if not isinstance(raw, int) or raw == _NO_VALUE:
        return None, "no_data"
    code = checked(raw, "power")
    return (None, code) if code else (float(raw), None)


def energy_j(amd: Amd, handle: Any) -> float | None:
    """Return a board's running energy, J: the count times its resolution, which is in µJ."""
    told, _ = amd.ask(amd.lib.amdsmi_get_energy_count, handle)
    count, resolution_uj = known(told, "energy_accumulator"), known(told, "counter_resolution")
    return count * resolution_uj / 1e6 if count and resolution_uj else None
