"""docs/conformance.md lists every case, as it is."""

from tests.support.shared import ROOT
from tokenwatt_site.load.conformance.case import ALL, Case
from tokenwatt_site.load.conformance.cases import CASES


def row(case: Case) -> str:
    """Return the line of the table; a case is told in more than one if its dialects differ."""
    where = "all" if case.apis == ALL else ", ".join(case.apis)
    truth = case.truth
    right = f"failed: {truth.reason}" if truth.reason else "ok"
    if not truth.reason and truth.tokens != 8:
        right += f", {truth.tokens} tokens"
    return f"| `{case.name}` | {where} | {case.about} | {right} |"


def test_the_table_of_cases_is_that_of_the_suite() -> None:
    """Where it differs, put the line that is printed here into its place."""
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8").splitlines()
    listed = [line for line in page if line.startswith("| `") and line.count("|") == 5]
    assert listed == [row(case) for case in CASES]
