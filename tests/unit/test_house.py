"""The house rules: how large things may be, where they stand, what they load, what never leaks."""

import ast
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.checkout import tracked
from tests.support.shared import ROOT
from tokenwatt_site.cli import COMMANDS

PACKAGE = ROOT / "tokenwatt_site"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("httpx", "plotly", "numpy", "jsonschema")

TOP_LEVEL = {
    ".ci", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "README.md", "benchmarks", "content", "docs", "pyproject.toml", "requirements.lock", "schemas",
    "specs", "templates", "tests", "tokenwatt_site",
}  # fmt: skip
REQUIRED = TOP_LEVEL - {"benchmarks"}
ROOMS = {
    "accelerators", "accuracy", "cli", "documents", "drivers", "importers", "load", "method",
    "power", "publish", "simulator",
}  # fmt: skip


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name(path)}:{node.lineno} {node.name}", node


def test_no_module_is_longer_than_400_lines() -> None:
    assert {name(path): lines(path) for path in MODULES if lines(path) > 400} == {}


def test_the_median_module_has_at_most_150_lines() -> None:
    assert statistics.median(lines(path) for path in MODULES) <= 150


def test_no_function_is_longer_than_60_lines() -> None:
    """Its docstring counts: a function that needs more explaining does too much."""
    sizes = {at: (node.end_lineno or 0) - node.lineno + 1 for at, node in functions()}
    assert {at: size for at, size in sizes.items() if size > 60} == {}


def test_top_level_is_the_layout() -> None:
    found = {Path(path).parts[0] for path in tracked()}
    assert found <= TOP_LEVEL
    assert found >= REQUIRED


def test_every_module_stands_in_a_room() -> None:
    """At the package's top stand the conductors and what every room uses; the rest has a room."""
    folders = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    assert folders <= ROOMS


def test_a_unit_test_stands_where_its_module_does() -> None:
    rooms = {path.name for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir()}
    assert rooms - {"__pycache__"} <= ROOMS


def test_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_loads_nothing_heavy(command: str) -> None:
    """--help answers at once: a subprocess tells what it has loaded when it has printed it."""
    program = f"""
import sys
from tokenwatt_site.cli import main
sys.argv = ["tokenwatt-site", *sys.argv[1:], "--help"]
try:
    main()
except SystemExit as exit_:
    assert not exit_.code, exit_.code
print("LOADED", *sorted({set(HEAVY)} & sys.modules.keys()))
"""
    call = [sys.executable, "-c", program, *filter(None, [command])]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("LOADED")
    assert "Usage:" in done.stdout


LEAKS = {
    "a path of one machine": r"(?<![\w.])/(work|home/\w+|Users/\w+|root)/\w",
    "a package registry": r"\b(pythonhosted|pypi|npmjs|yarnpkg)\.(org|com)\b",
    "a key": r"\bsk-[A-Za-z0-9]{16,}|\bhf_[A-Za-z0-9]{20,}",
}
# the published contract keeps its publisher's own paths
LEAKS_ALLOWED = {
    "content/runs/h200x4-deepseek-v4.1-flash-fp8-vllm.json",
    "tests/unit/test_house.py",
}


@pytest.mark.parametrize("what", LEAKS)
def test_no_tracked_file_holds(what: str) -> None:
    pattern = re.compile(LEAKS[what])
    found = [
        f"{path}: {hit.group()}"
        for path in tracked()
        if path not in LEAKS_ALLOWED
        for hit in pattern.finditer((ROOT / path).read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []


def requirements() -> set[str]:
    """Return the names that pyproject.toml asks for, groups and extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [*project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        asked += extra
    for group in project["dependency-groups"].values():
        asked += [each for each in group if isinstance(each, str)]
    return {*asked}


def test_lock_satisfies_what_pyproject_asks_for() -> None:
    """Else run `make lock`."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", text, flags=re.MULTILINE)
    unmet = {
        asked
        for asked in requirements()
        for wanted in [Requirement(asked)]
        if not any(
            canonicalize_name(wanted.name) == pinned and wanted.specifier.contains(version)
            for pinned, version in locked
        )
    }
    assert unmet == set()


def test_lock_has_hashes_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^[\w.-]+==.*$", text, flags=re.MULTILINE)
    assert pins
    assert [pin for pin in pins if not pin.endswith("\\")] == []
    assert re.search(r"://|--index|--find-links|--extra", text) is None
