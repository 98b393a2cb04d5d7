"""A stub of AMD's library behind AMD's own Python package, in child processes alone."""

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nvml_stub import Answer, ask, start
from tests.support.shared import require

SOURCE = Path(__file__).with_name("amd_stub.c")


def uuid(index: int) -> str:
    """Return the UUID of the stub's GPU of an index."""
    return f"{index:08x}ff-74a1-0000-1000-00000000000"


class AmdStub:
    """The compiled library, and a process that sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._child: subprocess.Popen[str] | None = None

    def ask(self, state: str = "", **request: Any) -> Answer:
        """Have the child of the other stub answer a request; see there."""
        self._child = self._child or start(environment(self.folder))
        return ask(self._child, stub="amd", state=state, **request)

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.communicate(timeout=10)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that finds the library in a folder, and no other."""
    kept = {
        key: value for key, value in os.environ.items() if key not in {"ROCM_HOME", "ROCM_PATH"}
    }
    return kept | {"LD_LIBRARY_PATH": str(folder)}


def build(folder: Path) -> Path:
    """Compile the stub into a folder, with every name that the package looks up when imported."""
    found = importlib.util.find_spec("amdsmi")
    assert found is not None
    assert found.origin is not None
    wrapper = Path(found.origin).with_name("amdsmi_wrapper.py").read_text()
    wanted = set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", wrapper))
    source = SOURCE.read_text()
    written = set(re.findall(r"^int (\w+)\(", source, re.MULTILINE))
    rest = "".join(f"int {name}(void) {{ return 2; }}\n" for name in sorted(wanted - written))
    (folder / "amd_stub.c").write_text(f"{source}\n{rest}")
    command = [require("gcc", "cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += ["-o", str(folder / "libamd_smi.so"), str(folder / "amd_stub.c"), "-lm"]
    subprocess.run(command, check=True, timeout=60)
    return folder


@pytest.fixture(scope="session")
def amd_stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmdStub]:
    """Return the compiled stub."""
    stub = AmdStub(build(tmp_path_factory.mktemp("amd")))
    yield stub
    stub.close()
