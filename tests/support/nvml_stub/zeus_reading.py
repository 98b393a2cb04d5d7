"""Reads the stub by Zeus, an independent client; run by hand, in an environment of Zeus' own.

``python -m venv zeus; zeus/bin/pip install zeus==0.16.0``, then with the folder of the compiled
stub in LD_LIBRARY_PATH and STATE of tests/contract/test_power_zeus.py in NVML_STUB:
``zeus/bin/python tests/support/nvml_stub/zeus_reading.py``. It prints the joules of each window.
"""

import ctypes
import json
import sys

from zeus.monitor import ZeusMonitor  # type: ignore[import-not-found]

WINDOWS = ((105.0, 125.0), (107.25, 123.75))


def main() -> None:
    stub = ctypes.CDLL("libnvidia-ml.so.1")

    def at(time_s: float) -> None:
        stub.nvml_stub_set(f"now_s={time_s:.9f}".encode())

    at(100.0)
    monitor = ZeusMonitor(gpu_indices=[0, 1, 2, 3], cpu_indices=[], approx_instant_energy=False)
    for begin_s, end_s in WINDOWS:
        at(begin_s)
        monitor.begin_window("w", sync_execution=False)
        at(end_s)
        read = monitor.end_window("w", sync_execution=False)
        sys.stdout.write(json.dumps([begin_s, end_s, list(read.gpu_energy.values())]) + "\n")


if __name__ == "__main__":
    main()
