"""Power meters: one file a meter, opened by the name that a spec gives as ``power.source``."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.power.meter import Meter

# source -> module:function. Strings, so that no driver is imported until it is named.
METERS: dict[str, str] = {
    "board": "tokenwatt_site.power.nvml:open_nvml",
    "amd": "tokenwatt_site.power.amd:open_amd",
    "prometheus": "tokenwatt_site.power.prometheus:open_prometheus",
    "rapl": "tokenwatt_site.power.rapl:open_rapl",
    "hwmon": "tokenwatt_site.power.hwmon:open_hwmon",
    "redfish": "tokenwatt_site.power.redfish:open_redfish",
    "ipmi": "tokenwatt_site.power.ipmi:open_ipmi",
    "command": "tokenwatt_site.power.command:open_command",
    "replay": "tokenwatt_site.power.replay:open_replay",
    "simulated": "tokenwatt_site.power.simulated:open_simulated",
}
Opener = Callable[..., Meter]


def open_meter(
    power: SpecPower,
    *,
    gpus: Sequence[int | str] | None,
    count: int,
    simulator_url: str | None,
    folder: Path | None = None,
) -> Meter:
    """Open a meter.

    Args:
        power: what the spec says of it; ``none`` is for the caller, it is no meter.
        gpus: ``hardware.gpus`` of the spec.
        count: accelerators that the engine uses; 0 where that isn't known.
        simulator_url: base URL of the server under test, for the embedded engine's own meter.
        folder: the spec's, where a recorded log lies; None is the one that the program runs in.

    Raises:
        RefusedError: this version or this machine doesn't have it.
        UsageError: the accelerators asked for aren't there.
    """
    if power.source not in METERS:
        raise RefusedError(
            f"power.source: {power.source} isn't read by this version",
            f"known meters: {', '.join(METERS)}",
        )
    module, function = METERS[power.source].split(":")
    opener: Opener = getattr(importlib.import_module(module), function)
    placed = {"folder": folder} if power.source == "replay" else {}
    return opener(power, gpus=gpus, count=count, simulator_url=simulator_url, **placed)
