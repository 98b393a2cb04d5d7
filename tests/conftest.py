"""What holds for every test: one Hypothesis profile a place, no skip in CI, time by stage."""

import os
from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from tests.support.shared import REQUIRE_ALL, ROOT

# deadline=None: a shared machine may stall for a second, and no test here is about seconds.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") or REQUIRE_ALL else "dev")

# stage -> the folders of its tests and its budget in minutes on 2 cores
STAGES: dict[str, tuple[tuple[str, ...], int]] = {
    "unit, property": (("unit", "property", "golden", "contract"), 5),
    "search": (("search",), 4),
    "browser": (("browser",), 6),
    "real engine": (("real",), 3),
    "meters": (("meters",), 2),
    "docs and wheel": (("docs", "wheel"), 2),
}
BEFORE = {"set-up": 6, "lint and types": 2}
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
_METERS = ("power", "accelerators", "meter", "nvml")


def stage_of(path: str) -> str:
    """Return the stage that a test file, given below the root, is timed under."""
    parts = Path(path).parts
    if any(word in part for part in parts for word in _METERS):
        return "meters"
    folder = parts[1] if len(parts) > 1 else ""
    return next((name for name, (folders, _) in STAGES.items() if folder in folders), "other")


@pytest.fixture
def root() -> Path:
    """Return the root of the checkout."""
    return ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the browser's tests last: while Playwright lives, asyncio can't run in this thread."""
    items.sort(key=lambda item: stage_of(item.nodeid.split("::")[0]) == "browser")


@pytest.fixture(scope="module", autouse=True)
def _children_at_full_speed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the children of tests that measure in real time out of coverage: tracing is load."""
    with pytest.MonkeyPatch.context() as patch:
        if stage_of(request.node.nodeid) in {"real engine", "docs and wheel"}:
            patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure under ``TOKENWATT_REQUIRE_ALL=1``, however it was made."""
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a module that skips itself."""
    return _refuse_skip((yield))


def _refuse_skip(report: Report) -> Report:
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and TOKENWATT_REQUIRE_ALL=1 allows no skip: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long each stage took, beside its budget."""
    spent_s: dict[str, float] = defaultdict(float, _stages_before())
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent_s[stage_of(report.nodeid.split("::")[0])] += report.duration
    budget_min = BEFORE | {name: minutes for name, (_, minutes) in STAGES.items()}
    terminalreporter.section("time by stage")
    for name in [*budget_min, "other"]:
        if name in spent_s:
            budget = f"of {budget_min[name]} min" if name in budget_min else ""
            terminalreporter.write_line(f"{name:<16} {spent_s[name]:7.1f} s  {budget}")


def _stages_before() -> dict[str, float]:
    """Read the stages before pytest: lines of a name, a tab and the second it ended at."""
    file = os.environ.get("TOKENWATT_STAGES")
    if not file or not Path(file).is_file():
        return {}
    marks = [line.split("\t") for line in Path(file).read_text(encoding="utf-8").splitlines()]
    return {name: float(end) - float(start) for (_, start), (name, end) in pairwise(marks)}
