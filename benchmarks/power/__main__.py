"""What reading eight GPUs ten times a second costs: ours beside others, on the stub of NVML.

The cost is the CPU time of the client and its processes a second of reading, by the scheduler's own
nanoseconds, from a second after it says that it reads.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STUB = ROOT / "tests/support/nvml_stub/nvml_stub.c"
START_S, READ_S = 1.0, 20.0
STATE = "gpus=8 high_w=794 low_w=394 period_s=0.37 reasons=4 cap_share=0.3"


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and those that it started, s."""
    used = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        used += int((thread / "schedstat").read_text().split()[0]) / 1e9
        used += sum(cpu_s(int(each)) for each in (thread / "children").read_text().split())
    return used


def core_pct(python: str, client: str, env: dict[str, str]) -> tuple[float, int]:
    """Return what a client uses, percent of a core, and the readings that it took in all."""
    seconds = START_S + READ_S + 1
    command = [python, str(HERE / "clients.py"), client, str(seconds)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as running:
        if running.stdout is None or running.stdout.readline() != "ready\n":
            raise RuntimeError(f"{client} didn't start")
        time.sleep(START_S)
        began_s, before_s = time.monotonic(), cpu_s(running.pid)
        time.sleep(READ_S)
        used_s, passed_s = cpu_s(running.pid) - before_s, time.monotonic() - began_s
        said, _ = running.communicate()
    return 100 * used_s / passed_s, int(said.split()[-1])


def main() -> None:
    """Measure every client in turn, as often as asked; print a line of JSON for each."""
    parser = argparse.ArgumentParser(prog="benchmarks.power", description=__doc__)
    parser.add_argument("--zeus", help="the Python of an environment that has Zeus")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    pythons = {"ours": sys.executable, "pynvml": sys.executable}
    pythons |= {"zeus": asked.zeus} if asked.zeus else {}
    costs: dict[str, list[float]] = {client: [] for client in pythons}
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/libnvidia-ml.so.1"
        build = ["cc", "-shared", "-fPIC", "-O1", "-o", library, str(STUB), "-lm"]
        subprocess.run(build, check=True)
        env = {"LD_LIBRARY_PATH": folder, "NVML_STUB": STATE, "PYTHONPATH": str(ROOT)}
        for client, python in list(pythons.items()) * asked.rounds:
            used, readings = core_pct(python, client, os.environ | env)
            costs[client].append(used)
            row = {"client": client, "core_pct": round(used, 3), "readings": readings}
            row["python"] = platform.python_version()
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
    ours = statistics.median(costs["ours"])
    for client, each in costs.items():
        median = statistics.median(each)
        line = f"{client}: {median:.2f} % of a core, ours ÷ it {ours / median:.2f}\n"
        sys.stderr.write(line)


if __name__ == "__main__":
    main()
