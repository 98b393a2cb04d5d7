"""GPU boards through NVIDIA's management library: energy counter, power, limits, throttling."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.drivers.choice import choose
from tokenwatt_site.drivers.nvml import Nvml
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.nvml_board import Board, probe, read_fields

REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
}
"""Bits that are throttling; idle (0x1) and clocks that somebody set (0x2, 0x100) aren't."""


class NvmlMeter:
    """The boards of the GPUs under test, each with power and energy counter."""

    name = "nvml"
    gain_pct = 5.0
    """NVIDIA states ± 5 % for Fermi and Kepler (nvmlDeviceGetPowerUsage) and nothing since.

    Yang, Adamek and Armour held 70 boards of all generations against external meters (SC24,
    arXiv 2312.02741); of it the abstract alone was checked, which names no figure for a board.
    """

    def __init__(self, nvml: Nvml, boards: Sequence[Board], scope: Scope, clock: Now = now) -> None:
        self._nvml = nvml
        self._boards = tuple(boards)
        self._clock = clock
        self._reasons: Callable[..., Any] = _reasons_call(nvml, boards[0])
        self.scope = scope
        self.devices = tuple(board.uuid for board in boards)
        counter = "energy counter and " if all(board.counter for board in boards) else ""
        power = boards[0].power_words
        self.averaged_s = max(board.averaged_s for board in boards)
        self.source = f"GPU {scope.replace('_', ' ')} power sum (NVIDIA: {counter}{power})"

    def read(self) -> list[PowerSample]:
        """Return one sample a GPU, stamped at the middle of its power and energy calls."""
        return [self._sample(board) for board in self._boards]

    def close(self) -> None:
        """Let the library go."""
        self._nvml.close()

    def _sample(self, board: Board) -> PowerSample:
        ask, lib = self._nvml.ask, self._nvml.lib
        began_s = self._clock()
        values, error = read_fields(self._nvml, board.handle, board.fields)
        power_mw, error = _power_mw(self._nvml, board, values, error)
        energy_mj = None
        if board.counter:
            energy_mj, _ = ask(lib.nvmlDeviceGetTotalEnergyConsumption, board.handle)
        t_s = (began_s + self._clock()) / 2
        if error is not None and energy_mj is None:
            return PowerSample(t_s, board.uuid, error=error)
        reasons, _ = ask(self._reasons, board.handle)
        limit_mw, _ = ask(lib.nvmlDeviceGetEnforcedPowerLimit, board.handle)
        clock_mhz, _ = ask(lib.nvmlDeviceGetClockInfo, board.handle, lib.NVML_CLOCK_SM)
        return PowerSample(
            t_s=t_s,
            device=board.uuid,
            power_w=_thousandth(power_mw),
            energy_j=_thousandth(energy_mj),
            throttle=None if reasons is None else _names(reasons),
            throttle_ns={
                name: int(values[field])
                for field, name in board.throttled_ns.items()
                if field in values
            },
            limit_w=_thousandth(limit_mw),
            clock_mhz=clock_mhz,
            temperature_c=self._temperature_c(board),
            error=error,
        )

    def _temperature_c(self, board: Board) -> float | None:
        ask, lib = self._nvml.ask, self._nvml.lib
        for call in (lib.nvmlDeviceGetTemperatureV, lib.nvmlDeviceGetTemperature):
            celsius, code = ask(call, board.handle, lib.NVML_TEMPERATURE_GPU)
            if code != "not_supported":
                return cast("float | None", celsius)
        return None


def open_nvml(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> NvmlMeter:
    """Open the boards of the GPUs under test; ``simulator_url`` is of no use here.

    Raises:
        RefusedError: no driver, a GPU that doesn't tell its power, or MIG without the spec's word.
        UsageError: the GPUs asked for aren't there.
    """
    del simulator_url
    nvml = Nvml()
    try:
        uuids = choose(nvml.uuids(), gpus, count)
        boards = [probe(nvml, uuid) for uuid in uuids]
        return NvmlMeter(nvml, boards, _scope(nvml, boards, power))
    except BaseException:
        nvml.close()
        raise


def _scope(nvml: Nvml, boards: Sequence[Board], power: SpecPower) -> Scope:
    for board in boards:
        modes, _ = nvml.ask(nvml.lib.nvmlDeviceGetMigMode, board.handle)
        if modes and modes[0] == nvml.lib.NVML_DEVICE_MIG_ENABLE and power.scope != "shared_board":
            raise RefusedError(
                f"GPU {board.uuid} is split by MIG: its power is that of the whole board, whoever "
                "uses the other parts",
                "turn MIG off, or set power.scope: shared_board to publish it as that",
            )
    scopes: set[Scope] = {board.scope for board in boards}
    if len(scopes) > 1:
        raise RefusedError(
            "some of the GPUs tell their board's power, others their module's: no sum of one scope",
            "name GPUs of one kind in hardware.gpus",
        )
    return "shared_board" if power.scope == "shared_board" else scopes.pop()


def _power_mw(
    nvml: Nvml, board: Board, values: dict[int, float], code: str | None
) -> tuple[float | None, str | None]:
    if board.power is None:
        return nvml.ask(nvml.lib.nvmlDeviceGetPowerUsage, board.handle)
    power_mw = values.get(board.power[0])
    return power_mw, None if power_mw is not None else code or "no_data"


def _reasons_call(nvml: Nvml, board: Board) -> Callable[..., Any]:
    """Return the call for throttle reasons: the name of driver 535 and later, else the old one."""
    call: Callable[..., Any] = nvml.lib.nvmlDeviceGetCurrentClocksEventReasons
    older: Callable[..., Any] = nvml.lib.nvmlDeviceGetCurrentClocksThrottleReasons
    return older if nvml.ask(call, board.handle)[1] == "not_supported" else call


def _names(reasons: int) -> tuple[str, ...]:
    return tuple(name for bit, name in REASONS.items() if reasons & bit)


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000
