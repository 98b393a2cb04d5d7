"""NVIDIA's management library, opened, with its GPUs by UUID and its errors as codes.

A handle by index is in PCI order and knows nothing of CUDA_VISIBLE_DEVICES, so GPUs are pinned by
UUID.
"""

import importlib
from collections.abc import Callable
from typing import Any

from tokenwatt_site.errors import RefusedError

_CODES = {
    3: "not_supported",
    4: "no_permission",
    10: "timeout",
    13: "not_supported",
    15: "gpu_is_lost",
}
"""nvmlReturn_t by number; a function that an older driver lacks (13) isn't supported either."""
_CANT_OPEN = {
    4: ("the NVIDIA driver refuses this user", "give the user access to /dev/nvidia*"),
    9: ("the NVIDIA driver isn't loaded", "load it; `nvidia-smi` must work first"),
    12: (
        "no NVIDIA driver on this machine: libnvidia-ml.so.1 isn't there",
        "run this where the GPUs are, or set hardware.adapter and power.source to none",
    ),
    18: ("the NVIDIA driver and its library are of two versions", "reboot after the update"),
}


def code_of(number: int) -> str:
    """Return the code of an nvmlReturn_t that is a failure."""
    return _CODES.get(number, f"nvml_{number}")


class Nvml:
    """The opened library. ``lib`` is pynvml; ``close`` when done."""

    def __init__(self) -> None:
        """Open the library.

        Raises:
            RefusedError: no driver, no access, or a driver half updated.
        """
        self.lib: Any = importlib.import_module("pynvml")
        try:
            self.lib.nvmlInit()
        except self.lib.NVMLError as error:
            what, hint = _CANT_OPEN.get(
                error.value, (f"the NVIDIA driver fails: {error}", "`nvidia-smi` must work first")
            )
            raise RefusedError(what, hint) from None

    def close(self) -> None:
        """Let the library go."""
        self.ask(self.lib.nvmlShutdown)

    def ask(self, call: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
        """Return what a call gives and None, or None and the code of its failure."""
        try:
            return call(*arguments), None
        except self.lib.NVMLError as error:
            return None, code_of(error.value)

    @property
    def driver(self) -> str:
        """The driver's version, empty where it isn't told."""
        version, _ = self.ask(self.lib.nvmlSystemGetDriverVersion)
        return version or ""

    def uuids(self) -> list[str | None]:
        """Return the GPUs' UUIDs by index, None for one that doesn't answer."""
        count, _ = self.ask(self.lib.nvmlDeviceGetCount)
        return [self._uuid(index) for index in range(count or 0)]

    def _uuid(self, index: int) -> str | None:
        handle, _ = self.ask(self.lib.nvmlDeviceGetHandleByIndex, index)
        return None if handle is None else self.ask(self.lib.nvmlDeviceGetUUID, handle)[0]

    def handle(self, uuid: str) -> Any:
        """Return the handle of a GPU that is there.

        Raises:
            RefusedError: it no longer answers.
        """
        handle, code = self.ask(self.lib.nvmlDeviceGetHandleByUUID, uuid)
        if handle is None:
            raise RefusedError(f"GPU {uuid} doesn't answer ({code})", "`nvidia-smi` must show it")
        return handle
