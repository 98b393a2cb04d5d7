"""``tokenwatt-site simulate``: lists, truths and the server by hand."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.program import COMMAND, environment, write_spec
from tokenwatt_site.cli.simulate import simulate
from tokenwatt_site.errors import RefusedError, UsageError

QUICK = ("--seeds", "2", "--requests", "1000")


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(simulate, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write_spec(
        tmp_path / "t.spec.yaml",
        slo={"ttft_p99_ms": 1000, "tpot_p99_ms": 20},
        workload={"output_tokens": {"fixed": 16}},
    )


def test_the_list_names_profiles_and_the_values_of_one() -> None:
    text = called("--list", "--profile", "hard", "--override", "noise_sd=0").output
    assert "demo   small and fast" in text
    assert "Values of hard" in text
    rows = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
    assert (rows["max_sequences"], rows["noise_sd"], rows["drift_after_s"]) == (
        "48",
        "0.0",
        "never",
    )
    assert rows["meter_gain"] == "1.0"


def test_the_list_as_json_is_strict() -> None:
    found = json.loads(called("--list", "--json").output, parse_constant=pytest.fail)
    assert found["profile"] == "demo"
    assert "cal" in found["profiles"]
    assert found["values"]["drift_after_s"] is None


def test_the_truth_in_words_and_as_json(spec: Path) -> None:
    text = called("--truth", spec, *QUICK)
    assert "true SLO boundary: " in text.stdout
    assert "over 2 seeds" in text.stdout
    assert "bound by TPOT p99 ≤ 20.0\u00a0ms" in text.stdout
    assert "seed 1 of 2: " in text.stderr
    found = json.loads(called("--truth", spec, *QUICK, "--json").stdout)
    low, high = found["interval_rps"]
    assert low < found["rate_rps"] < high
    assert len(found["seed_rates_rps"]) == 2
    assert found["bound_by"] == "tpot"


def test_a_truth_takes_its_shape_from_the_spec_alone(spec: Path) -> None:
    result = CliRunner().invoke(simulate, ["--truth", str(spec), "--override", "noise_sd=0"])
    assert result.exit_code == 2
    assert "takes profile and overrides from the spec" in result.output


@pytest.mark.parametrize(
    "arguments,error,what",
    [
        (("--profile", "nope"), UsageError, "unknown simulator profile 'nope'"),
        (("--override", "nope=1"), UsageError, "unknown simulator override 'nope'"),
        (("--host", "192.0.2.1"), RefusedError, "this machine only"),
        (("--truth", "nope.yaml"), UsageError, "nope.yaml"),
    ],
)
def test_what_can_t_be_served_is_said_with_the_next_step(
    arguments: tuple[str, ...], error: type[UsageError], what: str
) -> None:
    with pytest.raises(error, match=what) as caught:
        called(*arguments)
    assert caught.value.hint


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_server_says_where_it_is_and_ctrl_c_is_its_normal_end(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "simulate", *more],
        cwd=tmp_path,
        env=environment(None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(1 if more else 3)]
        os.kill(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, error) == (0, "")
    text = "".join(lines)
    assert "http://127.0.0.1:" in text
    url: Any = json.loads(text)["url"] if more else lines[1].split()[1]
    assert url.endswith("/v1")
    assert bool(more) or "Ctrl-C" in text
