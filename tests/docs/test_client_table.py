"""The table of load generators is made from the results that lie beside it."""

import subprocess
import sys

from tests.support.shared import ROOT


def test_the_table_of_clients_is_that_of_the_results() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/client", "table"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    start = "<!-- made by `python benchmarks/client table` -->\n"
    assert page.partition(start)[2].partition("<!-- end -->")[0] == done.stdout
