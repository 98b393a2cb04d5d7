"""Accelerators: one file a vendor, chosen by ``hardware.adapter`` of a spec."""

import importlib
from collections.abc import Callable
from dataclasses import replace

from tokenwatt_site.accelerators.identity import Accelerators
from tokenwatt_site.documents.spec import SpecHardware, SpecModel
from tokenwatt_site.drivers.choice import EVERY
from tokenwatt_site.errors import RefusedError

# adapter -> module:function. Strings, so that no driver is imported until it is named.
ADAPTERS: dict[str, str] = {
    "nvidia": "tokenwatt_site.accelerators.nvidia:find_nvidia",
    "amd": "tokenwatt_site.accelerators.amd:find_amd",
    "simulated": "tokenwatt_site.accelerators.simulated:find_simulated",
    "none": "tokenwatt_site.accelerators.none:find_none",
}

Finder = Callable[..., Accelerators]


def identify(
    hardware: SpecHardware, model: SpecModel | None, simulator_url: str | None = None
) -> Accelerators:
    """Return the accelerators that the spec is about, by the driver's own word.

    Args:
        hardware: adapter, and which accelerators.
        model: replicas × tensor_parallel × pipeline_parallel is how many there must be; None takes
            all that there are.
        simulator_url: base URL of the server under test, for the embedded engine.

    Raises:
        RefusedError: this version or this machine doesn't have the driver.
        UsageError: the accelerators aren't there, or not as many, or of several kinds.
    """
    if hardware.adapter not in ADAPTERS:
        raise RefusedError(
            f"hardware.adapter: {hardware.adapter} isn't read by this version",
            "set it to none and describe the accelerators in hardware.host; latency is measured, "
            "power isn't",
        )
    module, function = ADAPTERS[hardware.adapter].split(":")
    finder: Finder = getattr(importlib.import_module(module), function)
    count = EVERY if model is None else model.ranks
    found = finder(gpus=hardware.gpus, count=count, simulator_url=simulator_url)
    given = hardware.rated_bw_tbs_per_gpu
    return found if given is None else replace(found, rated_bw_tbs_per_gpu=given)
