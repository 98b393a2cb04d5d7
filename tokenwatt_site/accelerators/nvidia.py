"""NVIDIA GPUs by the word of their driver."""

import os
from collections.abc import Sequence

from tokenwatt_site.accelerators.identity import Accelerators, limits_note, one_kind
from tokenwatt_site.drivers.choice import choose
from tokenwatt_site.drivers.nvml import Nvml


def find_nvidia(
    *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> Accelerators:
    """Return the GPUs under test: ``gpus`` by index in PCI order or UUID, else the first ``count``.

    Raises:
        RefusedError: no driver, or a GPU that doesn't answer.
        UsageError: the GPUs aren't there, or not as many, or of several kinds.
    """
    del simulator_url
    nvml = Nvml()
    try:
        uuids = choose(nvml.uuids(), gpus, count)
        handles = [nvml.handle(uuid) for uuid in uuids]
        names = [nvml.ask(nvml.lib.nvmlDeviceGetName, handle)[0] or "" for handle in handles]
        limits_mw = [
            nvml.ask(nvml.lib.nvmlDeviceGetEnforcedPowerLimit, handle)[0] for handle in handles
        ]
        known_w = [limit_mw / 1000 for limit_mw in limits_mw if limit_mw]
        return Accelerators(
            vendor="NVIDIA",
            name=one_kind(names),
            count=len(uuids),
            driver=nvml.driver,
            uuids=tuple(uuids),
            power_limit_w=max(known_w, default=None),
            notes=limits_note(known_w) + _order_note(gpus),
        )
    finally:
        nvml.close()


def _order_note(gpus: Sequence[int | str] | None) -> tuple[str, ...]:
    """Tell that CUDA's choice of GPUs isn't the driver's order."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if gpus is not None or not visible:
        return ()
    note = (
        "CUDA_VISIBLE_DEVICES is set and hardware.gpus isn't: the first GPUs in PCI order are "
        "read, whatever CUDA shows; name those under test by UUID in hardware.gpus"
    )
    return (note,)
