"""AMD's management library, opened, with its GPUs by UUID and its errors as codes.

Handles are in the library's own order, which HIP_VISIBLE_DEVICES doesn't change and HIP doesn't
always follow, so GPUs are pinned by UUID.
"""

import contextlib
import importlib
import io
import re
from collections.abc import Callable
from typing import Any

from tokenwatt_site.errors import RefusedError

_CODES = {
    2: "not_supported",
    3: "not_supported",
    8: "timeout",
    10: "no_permission",
    31: "gpu_is_lost",
    40: "no_data",
    49: "not_supported",
}
"""amdsmi_status_t by number."""
_NO_PERMISSION, _NOT_LOADED = 10, 34
_PACKAGE = "pip install 'amdsmi' of the installed ROCm's version, the extra `amd`"
_TWO_DIES = re.compile(r"MI250")
"""Boards whose two dies are two GPUs; the even one tells the power of both."""


def _library() -> Any:
    """Import amdsmi; where ROCm isn't, it prints, and raises whatever comes first.

    Raises:
        RefusedError: the package, ROCm's library, or a library of the package's version is missing.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module("amdsmi")
    except ModuleNotFoundError:
        raise RefusedError("the Python package amdsmi isn't installed", _PACKAGE) from None
    except (KeyError, OSError):
        raise RefusedError(
            "no ROCm on this machine: libamd_smi.so isn't there",
            "run this where the GPUs are with ROCM_PATH set, or set hardware.adapter and "
            "power.source to none",
        ) from None
    except AttributeError as error:
        raise RefusedError(
            f"libamd_smi.so and the package amdsmi are of two versions: {error}", _PACKAGE
        ) from None


class Amd:
    """The opened library. ``lib`` is amdsmi; ``close`` when done."""

    def __init__(self) -> None:
        """Open the library.

        Raises:
            RefusedError: no package, no ROCm, no driver, or no access.
        """
        self.lib: Any = _library()
        try:
            self.lib.amdsmi_init(self.lib.AmdSmiInitFlags.INIT_AMD_GPUS)
        except self.lib.AmdSmiException as error:
            raise _cant_open(error) from None
        handles: list[Any] = self.ask(self.lib.amdsmi_get_processor_handles)[0] or []
        self._uuids = [self.ask(self.lib.amdsmi_get_gpu_device_uuid, each)[0] for each in handles]
        self._handles = dict(zip(self._uuids, handles, strict=True))

    def close(self) -> None:
        """Let the library go."""
        self.ask(self.lib.amdsmi_shut_down)

    def ask(self, call: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
        """Return what a call gives and None, or None and the code of its failure."""
        try:
            return call(*arguments), None
        except self.lib.AmdSmiLibraryException as error:
            number = error.get_error_code()
            return None, _CODES.get(number, f"amdsmi_{number}")
        except (self.lib.AmdSmiException, ValueError):  # ValueError: bytes that are no text
            return None, "bad_answer"

    def driver(self, uuid: str) -> str:
        """The driver's version, empty where it isn't told."""
        told, _ = self.ask(self.lib.amdsmi_get_gpu_driver_info, self.handle(uuid))
        return known(told, "driver_version") or ""

    def uuids(self) -> list[str | None]:
        """Return the GPUs' UUIDs by index, None for one that doesn't answer."""
        return [uuid or None for uuid in self._uuids]

    def handle(self, uuid: str) -> Any:
        """Return the handle of a GPU that is there."""
        return self._handles[uuid]

    def name(self, uuid: str) -> str:
        """Return a GPU's name as AMD sells it, empty where it isn't told."""
        told, _ = self.ask(self.lib.amdsmi_get_gpu_asic_info, self.handle(uuid))
        return known(told, "market_name") or ""

    def limit_w(self, handle: Any) -> float | None:
        """Return a GPU's power limit, W."""
        told, _ = self.ask(self.lib.amdsmi_get_power_cap_info, handle)
        limit_uw = known(told, "power_cap")
        return limit_uw / 1e6 if limit_uw else None

    def boards(self) -> dict[str, tuple[str, ...]]:
        """Return the GPUs of every board, keyed by the one that tells the board's power.

        The two dies of an MI250 and the partitions of an MI300 are GPUs of one board: the first
        tells the power of all, the others none.
        """
        boards: dict[str, list[str]] = {}
        first = ""
        for index, uuid in enumerate(self.uuids()):
            if uuid is None:
                continue
            if first and self._follows(index, uuid):
                boards[first].append(uuid)
            else:
                first = uuid
                boards[first] = [uuid]
        return {first: tuple(uuids) for first, uuids in boards.items()}

    def _follows(self, index: int, uuid: str) -> bool:
        if _TWO_DIES.search(self.name(uuid)):
            return index % 2 == 1
        told, _ = self.ask(self.lib.amdsmi_get_gpu_kfd_info, self.handle(uuid))
        return bool(known(told, "current_partition_id"))


def known(told: Any, key: str) -> Any:
    """Return a value of an answer, None where the library has none: no answer, no key, "N/A"."""
    value = told.get(key) if isinstance(told, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return None if value == "N/A" else value  # pyright: ignore[reportUnknownVariableType]


def _cant_open(error: Any) -> RefusedError:
    number = getattr(error, "err_code", None)
    if number == _NO_PERMISSION:
        hint = "give the user the groups render and video"
        return RefusedError("the AMD driver refuses this user", hint)
    if number == _NOT_LOADED:
        return RefusedError("the AMD driver isn't loaded", "load amdgpu; `amd-smi` must work first")
    return RefusedError(f"the AMD driver fails: {error}", "`amd-smi` must work first")
