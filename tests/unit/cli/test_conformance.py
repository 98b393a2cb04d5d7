"""``tokenwatt-site conformance``: the verdicts on a file, and the server by hand."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.program import COMMAND, environment
from tokenwatt_site.cli.conformance import conformance
from tokenwatt_site.errors import FindingsError
from tokenwatt_site.load.conformance.cases import rows


def truth_of_everybody() -> dict[str, Any]:
    """Return the file of a client that is always right."""

    def ms(seconds: float | None) -> float | None:
        return None if seconds is None else 1000 * seconds

    return {
        f"{api}/{case.name}": {
            "outcome": case.truth.outcome,
            "tokens": case.truth.tokens,
            "ttft_ms": ms(case.truth.ttft_s),
            "tpot_ms": ms(case.truth.tpot_s),
        }
        for case, api in rows()
    }


def judged(tmp_path: Path, results: dict[str, Any], *more: str) -> Result:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"client": "x", "results": results}), encoding="utf-8")
    return CliRunner().invoke(conformance, ["check", "--results", str(path), *more])


def test_a_client_that_is_right_passes(tmp_path: Path) -> None:
    result = judged(tmp_path, truth_of_everybody())
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert len(lines) == len(rows()) + 2
    assert lines[-1] == f"{len(rows())} of {len(rows())} rows are right"


def test_one_wrong_row_is_a_finding(tmp_path: Path) -> None:
    results = truth_of_everybody()
    results["chat/truncated"] = results["chat/plain"]
    result = judged(tmp_path, results, "--json")
    assert isinstance(result.exception, FindingsError)
    assert "1 of" in result.exception.what
    told = [json.loads(line) for line in result.output.splitlines()]
    assert [row["id"] for row in told if not row["green"]] == ["chat/truncated"]


def test_the_tolerance_is_the_callers(tmp_path: Path) -> None:
    results = truth_of_everybody()
    results["chat/plain"]["ttft_ms"] += 40
    assert judged(tmp_path, results).exception is not None
    assert judged(tmp_path, results, "--tolerance-ms", "45").exit_code == 0


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_server_says_where_it_is_and_ctrl_c_is_its_normal_end(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "conformance", "serve", "--port", "0", *more],
        cwd=tmp_path,
        env=environment(None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, error) == (0, "")
    url = json.loads(line)["url"] if more else line
    assert url.startswith("http://127.0.0.1:")
    assert more or line.rstrip().endswith("/cases lists the cases")
