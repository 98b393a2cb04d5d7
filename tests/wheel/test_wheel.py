"""The wheel holds what the program needs and works where no checkout is beside it."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.checkout import copy_to, tracked
from tests.support.shared import ROOT
from tokenwatt_site import __version__

SEED = "content/runs/h200x4-deepseek-v4.1-flash-fp8-vllm.json"
SHIPPED = ("templates", "schemas", "specs", "content/hardware")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the checkout, with the backend that is installed."""
    copy = copy_to(tmp_path_factory.mktemp("checkout"))
    call = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(call, cwd=copy, check=True, capture_output=True)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a fresh environment, without network; return its program.

    Its dependencies are lent by this environment through a path line, which doesn't process the
    path files there: the checkout stays out of sight.
    """
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    call = [python, "-m", "pip", "install", "-qq", "--no-deps", "--no-index", wheel]
    subprocess.run(call, check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin" / "tokenwatt-site"


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    call = [program, *arguments]
    return subprocess.run(call, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_wheel_holds_the_tracked_files_and_no_others(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {path for path in archive.namelist() if ".dist-info/" not in path}
    shipped = {
        f"tokenwatt_site/{path}"
        for path in tracked()
        if path.startswith(tuple(f"{s}/" for s in SHIPPED))
    }
    package = {path for path in tracked() if path.startswith("tokenwatt_site/")}
    assert held == package | shipped


def test_both_programs_tell_the_version(program: Path, tmp_path: Path) -> None:
    for name in ("tokenwatt-site", "tokenwatt"):
        done = run(program.with_name(name), "--version", cwd=tmp_path)
        assert done.stdout == f"tokenwatt-site, version {__version__}\n", done.stderr


def test_program_is_the_installed_one(program: Path, tmp_path: Path) -> None:
    ask = "from tokenwatt_site.resources import resource as r; print(r('templates'), r('schemas'))"
    done = run(program.with_name("python"), "-c", ask, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(ROOT) not in done.stdout
    assert len(done.stdout.split()) == 2


def test_installed_program_validates_a_document(program: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / SEED, tmp_path / "run.json")
    done = run(program, "validate", "run.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "QUICK_PUBLISHED" in done.stdout


def test_installed_program_builds_a_site(program: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "content", tmp_path / "content")
    done = run(program, "build", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    page = tmp_path / "site" / "runs" / json.loads((ROOT / SEED).read_bytes())["id"] / "index.html"
    assert "DeepSeek-V4.1-Flash" in page.read_text(encoding="utf-8")
