"""The embedded engine as a child: what it runs, and what is said where it can't."""

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile import spoil
from tokenwatt_site.documents.spec import SimulatorOptions
from tokenwatt_site.errors import ServerError
from tokenwatt_site.simulator.child import Child


def test_a_child_runs_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever unpacked a stranger's spec and measures in its folder has run no code of it."""
    spoil(tmp_path, "httptools", "argparse", "uvloop")
    monkeypatch.chdir(tmp_path)
    with Child(SimulatorOptions()) as engine:
        assert engine.url.startswith("http://127.0.0.1:")
    assert not (tmp_path / "ran").exists()


def test_a_machine_without_room_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(ServerError, match="can't be started: Cannot allocate memory"):
        Child(SimulatorOptions())
