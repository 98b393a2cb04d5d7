"""One NVIDIA GPU: what its driver tells of it differs by driver and by board, so it is probed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenwatt_site.documents.spec import Scope
from tokenwatt_site.drivers.nvml import Nvml, code_of
from tokenwatt_site.errors import RefusedError

THROTTLED_NS = {
    74: "sw_power_cap",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "hw_power_brake",
}
"""Fields that count throttled nanoseconds."""
THERMAL_NS = 75
"""Thermal throttling of any kind, on drivers without fields 269 and 270."""
_AVERAGE, _INSTANT = 185, 186
_GPU, _MODULE = 0, 1
_POWER_FIELDS: tuple[tuple[int, int, str], ...] = (
    (_INSTANT, _GPU, "instant power"),
    (_AVERAGE, _GPU, "1 s average power"),
    (_INSTANT, _MODULE, "instant power of the module"),
    (_AVERAGE, _MODULE, "1 s average power of the module"),
)
_AVERAGED_S = 1.0
_AMPERE = 7
_GA100 = re.compile(r"\bA(30|100|800)X?\b")
"""GPUs of Ampere whose power usage is of the moment, by name: the architecture doesn't tell."""
_DOUBLE, _UINT, _ULONG, _ULONGLONG, _SLONGLONG, _SINT, _USHORT = range(7)
_MEMBERS = {
    _DOUBLE: "dVal", _UINT: "uiVal", _ULONG: "ulVal", _ULONGLONG: "ullVal",
    _SLONGLONG: "sllVal", _SINT: "siVal", _USHORT: "usVal",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Board:
    """One GPU and what its driver was found to tell of it."""

    uuid: str
    handle: Any
    power: tuple[int, int, str] | None
    """Field, NVML scope and words of its power; None uses nvmlDeviceGetPowerUsage."""
    counter: bool
    """It has an energy counter."""
    throttled_ns: dict[int, str]
    """Fields of throttled time that it has."""
    usage_averaged: bool = True
    """nvmlDeviceGetPowerUsage is a mean of 1 s: on Ampere and newer, but for GA100."""

    @property
    def fields(self) -> list[tuple[int, int]]:
        """The fields that a reading asks for, its power first."""
        power = [] if self.power is None else [self.power[:2]]
        return [*power, *((field, _GPU) for field in self.throttled_ns)]

    @property
    def power_words(self) -> str:
        """Its power in words."""
        if self.power is not None:
            return self.power[2]
        return "power usage, a 1 s average" if self.usage_averaged else "power usage"

    @property
    def averaged_s(self) -> float:
        """Over how long each reading of its power is a mean, s; 0 where it is of the moment."""
        averaged = self.usage_averaged if self.power is None else self.power[0] == _AVERAGE
        return _AVERAGED_S if averaged else 0.0

    @property
    def scope(self) -> Scope:
        """What its power includes."""
        return "module" if self.power is not None and self.power[1] == _MODULE else "board"


def probe(nvml: Nvml, uuid: str) -> Board:
    """Find out what a GPU's driver tells of it.

    Raises:
        RefusedError: not its power, by any call.
    """
    handle = nvml.handle(uuid)
    power = None
    for field, scope, words in _POWER_FIELDS:
        if field in read_fields(nvml, handle, [(field, scope)])[0]:
            power = (field, scope, words)
            break
    if power is None:
        _, code = nvml.ask(nvml.lib.nvmlDeviceGetPowerUsage, handle)
        if code is not None:
            raise RefusedError(
                f"GPU {uuid} doesn't tell its power ({code})",
                "a virtual GPU has none: measure on the host, or set power.source to none",
            )
    energy_mj, _ = nvml.ask(nvml.lib.nvmlDeviceGetTotalEnergyConsumption, handle)
    timed = THROTTLED_NS | {THERMAL_NS: "thermal"}
    told = read_fields(nvml, handle, [(field, _GPU) for field in timed])[0]
    throttled_ns = {field: name for field, name in timed.items() if field in told}
    if {"sw_thermal", "hw_thermal"} & set(throttled_ns.values()):
        throttled_ns.pop(THERMAL_NS, None)
    averaged = _usage_averaged(nvml, handle)
    return Board(uuid, handle, power, energy_mj is not None, throttled_ns, averaged)


def _usage_averaged(nvml: Nvml, handle: Any) -> bool:
    """Tell what nvmlDeviceGetPowerUsage gives of a GPU; an unknown one is taken for a new one."""
    architecture, _ = nvml.ask(nvml.lib.nvmlDeviceGetArchitecture, handle)
    name, _ = nvml.ask(nvml.lib.nvmlDeviceGetName, handle)
    if architecture == _AMPERE:
        return _GA100.search(name or "") is None
    return architecture is None or architecture > _AMPERE


def read_fields(
    nvml: Nvml, handle: Any, fields: Sequence[tuple[int, int]]
) -> tuple[dict[int, float], str | None]:
    """Return the values of (field, scope) pairs by field, and the code where the call failed.

    The call succeeds when a field fails, and leaves its value at 0: each field's own return code
    is looked at. A field that fails is left out, its code is returned where it is the first.
    """
    answers, code = nvml.ask(nvml.lib.nvmlDeviceGetFieldValues, handle, fields)
    values: dict[int, float] = {}
    for answer in answers or ():
        if answer.nvmlReturn == 0 and answer.valueType in _MEMBERS:
            values[int(answer.fieldId)] = getattr(answer.value, _MEMBERS[answer.valueType])
    if answers and answers[0].nvmlReturn != 0:
        code = code_of(answers[0].nvmlReturn)
    return values, code
