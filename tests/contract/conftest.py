"""Fixtures of the contracts: what stands in for hardware."""

from tests.support.nvml_stub import nvml_stub

__all__ = ["nvml_stub"]
