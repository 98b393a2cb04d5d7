"""Fixtures of the contracts: what stands in for hardware."""

from tests.support.amd_stub import amd_stub
from tests.support.nvml_stub import nvml_stub

__all__ = ["amd_stub", "nvml_stub"]
