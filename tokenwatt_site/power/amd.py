"""AMD GPUs through ROCm's management library: energy counter, power, limit, throttling."""

import threading
from collections.abc import Sequence

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.drivers.amd import Amd
from tokenwatt_site.drivers.choice import choose
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.amd_board import AVERAGE, AmdBoard, energy_j, power_w, probe
from tokenwatt_site.power.meter import Now, now


class AmdMeter:
    """The boards of the GPUs under test, each with power and energy counter."""

    name = "amdsmi"
    gain_pct = None
    """AMD names no bound."""

    def __init__(self, amd: Amd, boards: Sequence[AmdBoard], scope: Scope) -> None:
        self._amd = amd
        self._boards = tuple(boards)
        self._clock: Now = now
        self.scope = scope
        self.devices = tuple(board.uuid for board in boards)
        self.source = f"GPU {scope.replace('_', ' ')} power sum (AMD: {_words(boards)})"
        for board in boards:
            self._look(board, now())

    def read(self) -> list[PowerSample]:
        """Return one sample a board, stamped at the middle of its power and energy calls."""
        return [self._sample(board) for board in self._boards]

    def close(self) -> None:
        """Let the library go."""
        self._amd.close()

    def _sample(self, board: AmdBoard) -> PowerSample:
        began_s = self._clock()
        told, code = self._amd.ask(self._amd.lib.amdsmi_get_power_info, board.handle)
        watts, wrong = power_w(told, board.power)
        error = code or wrong
        joules = energy_j(self._amd, board.handle) if board.counter else None
        t_s = (began_s + self._clock()) / 2
        if error is not None and joules is None:
            return PowerSample(t_s, board.uuid, error=error)
        self._look(board, t_s)
        telemetry = board.telemetry
        return PowerSample(
            t_s=t_s,
            device=board.uuid,
            power_w=watts,
            energy_j=joules,
            throttle=telemetry.active,
            throttle_ns=dict(telemetry.throttled_ns),
            limit_w=self._amd.limit_w(board.handle),
            clock_mhz=telemetry.clock_mhz,
            temperature_c=telemetry.temperature_c,
            error=error,
        )

    def _look(self, board: AmdBoard, t_s: float) -> None:
        ask, call = self._amd.ask, self._amd.lib.amdsmi_get_gpu_metrics_info
        board.telemetry.look(t_s, lambda: ask(call, board.handle)[0])


def open_amd(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> AmdMeter:
    """Open the boards of the GPUs under test; ``simulator_url`` is of no use here.

    Raises:
        RefusedError: no driver, a GPU that doesn't tell its power, or a board of which only some
            GPUs are under test without the spec's word.
        UsageError: the GPUs asked for aren't there.
    """
    del simulator_url
    amd = Amd()
    try:
        chosen = choose(amd.uuids(), gpus, count)
        firsts = _boards(amd, chosen, power)
        wait = threading.Event().wait
        boards = [probe(amd, uuid, wait) for uuid in firsts]
        return AmdMeter(amd, boards, "shared_board" if power.scope == "shared_board" else "board")
    except BaseException:
        amd.close()
        raise


def _boards(amd: Amd, chosen: Sequence[str], power: SpecPower) -> list[str]:
    """Return the GPUs that tell the power of the chosen ones' boards, each board once."""
    firsts: dict[str, str] = {}
    for first, uuids in amd.boards().items():
        mine = set(uuids) & set(chosen)
        if mine and len(mine) < len(uuids) and power.scope != "shared_board":
            raise RefusedError(
                f"GPU {first} tells the power of its whole board, and {len(uuids) - len(mine)} of "
                f"the board's {len(uuids)} dies or partitions aren't under test",
                "test all of them, or set power.scope: shared_board to publish it as that",
            )
        firsts |= dict.fromkeys(uuids, first)
    return list(dict.fromkeys(firsts[uuid] for uuid in chosen))


def _words(boards: Sequence[AmdBoard]) -> str:
    power = "average power" if any(board.power == AVERAGE for board in boards) else "power"
    if all(board.counter for board in boards):
        return f"energy counter and {power}"
    frozen = any(board.frozen for board in boards)
    return f"{power}; an energy counter that stands still is left out" if frozen else power
