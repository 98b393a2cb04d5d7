"""What README tells a reader to type runs, in its order, where a reader would stand."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.checkout import copy_to
from tests.support.shared import ROOT, require

README = (ROOT / "README.md").read_text(encoding="utf-8")
# bold title -> the commands below it
SLICES = dict(re.findall(r"^\*\*(.+?)\.\*\*.*?^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
ENGINE = "Measure a real server"  # tests/real runs its commands against the server that it starts
INVALID = 5  # the exit code of a measurement whose windows say nothing about the server
PATIENCE_S = 400  # a slice takes a minute where nothing else runs


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh checkout; later slices use what earlier ones wrote."""
    return copy_to(tmp_path_factory.mktemp("checkout"))


@pytest.mark.parametrize("title", [title for title in SLICES if title != ENGINE])
def test_slice_runs(title: str, checkout: Path) -> None:
    until_s = time.monotonic() + PATIENCE_S
    done = typed(title, checkout, until_s)
    while done.returncode == INVALID and "invalid (LAG" in done.stdout + done.stderr:
        shutil.rmtree(checkout / "runs")  # this machine was too busy to send: measure anew
        done = typed(title, checkout, until_s)
    assert done.returncode == 0, done.stdout + done.stderr


def typed(title: str, checkout: Path, until_s: float) -> "subprocess.CompletedProcess[str]":
    """Run a slice's commands in a shell, with the program on its path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [require("bash"), "-eu", "-c", SLICES[title]],
        cwd=checkout,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=max(0, until_s - time.monotonic()),
        check=False,
    )


def test_the_slices_left_a_site(checkout: Path) -> None:
    """Runs after them: the pages of the seed and of the embedded engine's run are there."""
    assert (checkout / "runs" / "demo.json").is_file()
    assert (checkout / "site" / "index.html").is_file()
    assert (checkout / "site" / "runs" / "h200x4-deepseek-v4.1-flash-fp8-vllm").is_dir()


def test_readme_has_the_five_slices() -> None:
    assert len(SLICES) == 5
    assert ENGINE in SLICES
