"""``tokenwatt-site workload show``: names, specs, traces, and what is none."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from tests.support.dom import parse
from tests.support.program import write_spec
from tokenwatt_site.cli.workload import workload
from tokenwatt_site.errors import UsageError


def called(*arguments: str | Path) -> Result:
    given = ["show", *map(str, arguments), "--requests", "200"]
    return CliRunner().invoke(workload, given, catch_exceptions=False)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "<b>.jsonl"
    lines = (
        f'{{"timestamp": {1000 * i}, "input_length": {600 + i}, "output_length": {i % 7},'
        f' "hash_ids": [0, {i + 1}]}}'
        for i in range(200)
    )
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_name_is_drawn_and_told() -> None:
    text = called().output
    assert "chat-mix-v1: median 1,024 · p90 4,096 in" in text
    assert "arrivals: poisson at 1.00 requests/s, gap CV" in text.replace("\u00a0", " ")
    assert "0 % of their tokens shared by plan" in text
    assert "8,192 to    16,383" in text
    assert "#" * 40 in text


def test_a_trace_is_told_with_its_hash_and_what_its_prompts_share(trace: Path) -> None:
    found = json.loads(
        called(trace, "--timestamps", "kept", "--json").output, parse_constant=pytest.fail
    )
    assert (found["name"], found["arrivals"], found["rate_rps"]) == ("<b>.jsonl", "kept", 1.0)
    assert found["trace"]["requests"] == 200
    assert found["trace"]["raised"] == 29
    assert found["planned_cached_pct"] == pytest.approx(100 * 512 * 199 / (200 * 699.5), rel=0.01)
    assert found["sample"][1] == {"t_s": 1.0, "input_tokens": 601, "output_tokens": 1}
    text = called(trace, "--timestamps", "kept").output
    assert "29 lengths of 0 tokens raised to 1" in text


def test_a_spec_is_drawn_with_its_own_seed_and_first_rate(tmp_path: Path) -> None:
    spec = write_spec(
        tmp_path / "s.spec.yaml", workload={"seed": 5, "shared_prefix": {"tokens": 9}}
    )
    found = json.loads(called(spec, "--json").output)
    other = json.loads(called(spec, "--json", "--seed", "6", "--rate", "3").output)
    assert (found["seed"], other["seed"], other["rate_rps"]) == (5, 6, 3.0)
    assert found["schedule_sha256"] != other["schedule_sha256"]
    assert found["planned_cached_pct"] > 0


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_plot_is_a_file_of_its_own(trace: Path, tmp_path: Path, suffix: str) -> None:
    plot = tmp_path / f"plot.{suffix}"
    called(trace, "--timestamps", "rescaled", "--rate", "7", "--plot", plot)
    text = plot.read_text(encoding="utf-8")
    if suffix == "svg":
        root = ET.fromstring(text)  # noqa: S314 - ours
        assert "<b>.jsonl" in "".join(root.itertext())
    else:
        page = parse(text)
        assert len(page.all("svg")) == 1
        assert "p99" in page.text()
    assert "<b>" not in text
    assert 'href="http' not in text


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["chat-mix-v2"], "did you mean chat-mix-v1"),
        (["missing.csv"], "missing.csv: No such file"),
        (["--timestamps", "kept"], "chat-mix-v1 is no trace file"),
        (["s.spec.yaml", "--timestamps", "kept"], "a spec says so itself"),
        (["--rate", "nan"], "no load of nan requests/s"),
        (["--plot", "x.png"], "no .svg or .html"),
    ],
)
def test_what_is_no_workload_says_what_next(arguments: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        called(*arguments)
    assert says in str(caught.value)
