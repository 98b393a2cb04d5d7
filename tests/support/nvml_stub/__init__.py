"""A stub of NVIDIA's library: compiled once a session, loaded by child processes alone.

``LD_LIBRARY_PATH`` is read when a process starts, so a test that wants NVML starts one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.shared import ROOT, require
from tokenwatt_site.method.samples import PowerSample

SOURCE = Path(__file__).with_name("nvml_stub.c")
CHILD = Path(__file__).with_name("child.py")


def uuid(index: int) -> str:
    """Return the UUID of the stub's GPU of an index."""
    return f"GPU-00000000-0000-0000-0000-{index:012}"


@dataclass(frozen=True)
class Answer:
    """What a child said: its result, or the error that a user would have read."""

    result: dict[str, Any]
    error: str
    hint: str
    kind: str

    @property
    def samples(self) -> list[PowerSample]:
        """The samples that it took."""
        rows = [dict(row) for row in self.result["samples"]]
        for row in rows:
            row["throttle"] = None if row["throttle"] is None else tuple(row["throttle"])
        return [PowerSample(**row) for row in rows]


class NvmlStub:
    """The compiled library, and a process that sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._child: subprocess.Popen[str] | None = None

    def environment(self, state: str = "", file: Path | None = None) -> dict[str, str]:
        """Return the environment of a process that sees the stub in a state of key=value words."""
        extra = {"LD_LIBRARY_PATH": str(self.folder), "NVML_STUB": state}
        return os.environ | extra | ({"NVML_STUB_FILE": str(file)} if file else {})

    def ask(self, state: str = "", **request: Any) -> Answer:
        """Have ``child.py`` answer a request; see there."""
        self._child = self._child or start(self.environment())
        return ask(self._child, state=state, **request)

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.communicate(timeout=10)


def start(environment: dict[str, str]) -> "subprocess.Popen[str]":
    """Start ``child.py`` in an environment of the caller's; it ends with its standard input."""
    return subprocess.Popen(
        [sys.executable, str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
    )


def ask(child: "subprocess.Popen[str]", **request: Any) -> Answer:
    """Have a child answer one request."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(request) + "\n")
    child.stdin.flush()
    line = child.stdout.readline()
    assert line, "the child failed: its traceback is above"
    said = json.loads(line)
    return Answer(*(said.get(key, default) for key, default in _PARTS))


_PARTS: tuple[tuple[str, Any], ...] = (("result", {}), ("error", ""), ("hint", ""), ("kind", ""))


def build(folder: Path, options: Sequence[str] = ()) -> NvmlStub:
    """Compile the stub into a folder."""
    library = folder / "libnvidia-ml.so.1"
    command = [require("gcc", "cc"), "-shared", "-fPIC", "-O1", *options, "-o", str(library)]
    subprocess.run([*command, str(SOURCE), "-lm"], check=True, timeout=60)
    return NvmlStub(folder)


@pytest.fixture(scope="session")
def nvml_stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NvmlStub]:
    """Return the compiled stub."""
    stub = build(tmp_path_factory.mktemp("nvml"), ["-Wall", "-Wextra", "-Werror"])
    yield stub
    stub.close()
