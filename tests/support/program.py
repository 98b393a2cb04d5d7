"""The program as a child process, the way a user starts it, with specs small enough for a test."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.shared import ROOT
from tokenwatt_site.documents.specfile import commented

COMMAND = [sys.executable, "-m", "tokenwatt_site"]

# One token at a high rate: a window holds its requests within three seconds. The limits are wide,
# and with them the lag that a window may have, since a machine may be busy with anything.
SPEC: dict[str, Any] = {
    "name": "small",
    "hardware": {"adapter": "simulated"},
    "engine": {
        "endpoint": "simulator:",
        "name": "embedded engine",
        "simulator": {"profile": "demo", "overrides": {"noise_sd": 0}},
    },
    "model": {"name": "step model", "vocab_size": 32_000, "tensor_parallel": 2},
    "slo": {"ttft_p99_ms": 100_000, "tpot_p99_ms": 50_000},
    "workload": {
        "trace": None,
        "input_tokens": {"fixed": 16},
        "output_tokens": {"fixed": 1},
        "seed": 0,
    },
    "measurement": {
        "warmup_s": 0.2,
        "window_s": 1,
        "search_window_s": 1,
        "repeats": 3,
        "request_timeout_s": 30,
    },
    "sweep": {"rates": [120]},
    "power": {"source": "none"},
}


def spec_with(**sections: Any) -> dict[str, Any]:
    """Return the small spec with keys of its sections changed."""
    values = {
        name: dict(value) if isinstance(value, dict) else value for name, value in SPEC.items()
    }
    for name, change in sections.items():
        values[name] = values[name] | change if isinstance(change, dict) else change
    return values


def write_spec(path: Path, **sections: Any) -> Path:
    """Write the small spec with changes as a file."""
    path.write_text(commented(spec_with(**sections), "a test's spec"), encoding="utf-8")
    return path


def run(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the program to its end; return its exit code and everything it printed."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout


@contextmanager
def started(*arguments: str | Path, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start the program; it is gone at the end, however the test ends."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """Yield the events of a measurement that runs with ``--json``, as they come."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def environment(more: dict[str, str] | None) -> dict[str, str]:
    """Return this process's environment with the checkout importable from anywhere."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | (more or {})
