import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.power_server import PowerServer, device, power_server
from tokenwatt_site.cli.power import power
from tokenwatt_site.errors import InvalidMeasurement, UsageError
from tokenwatt_site.method.evidence import sample_of
from tokenwatt_site.method.power_log import facts_of

SHORT = ["--seconds", "0.2"]


def spec_file(folder: Path, page: PowerServer, meters: int = 1) -> str:
    file = folder / "x.spec.yaml"
    asked = ", ".join(["{source: simulated, sampling_hz: 100}"] * meters)
    file.write_text(
        f"name: x\nengine: {{endpoint: '{page.url}'}}\nmodel: {{name: m, tensor_parallel: 4}}\n"
        f"hardware: {{adapter: simulated}}\npower: [{asked}]\n"
    )
    return str(file)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_a_log_says_what_was_read_and_holds_every_reading(tmp_path: Path) -> None:
    out = tmp_path / "idle.jsonl.gz"
    with power_server() as page:
        asked = ["record", spec_file(tmp_path, page, 2), "--out", str(out), *SHORT]
        result = CliRunner().invoke(power, asked, catch_exceptions=False)
    assert result.output.splitlines()[0].startswith(f"wrote {out}: ")
    for path in (out, tmp_path / "idle-2.jsonl.gz"):
        head, *rows = rows_of(path)
        facts = facts_of(head)
        assert (facts.name, facts.scope, facts.hz) == ("simulated", "board", 100)
        samples = [sample_of(row) for row in rows]
        assert {sample.device for sample in samples} == set(facts.devices)
        assert {sample.power_w for sample in samples} == {500.0, 501.0, 502.0, 503.0}
        times_s = [sample.t_s for sample in samples]
        assert times_s == sorted(times_s)
        assert len(set(times_s)) * 4 == len(times_s)  # each reading once, of all devices


def test_a_log_that_exists_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "idle.jsonl.gz"
    out.write_text("precious")
    with power_server() as page:
        asked = ["record", spec_file(tmp_path, page), "--out", str(out), *SHORT]
        result = CliRunner().invoke(power, asked)
    assert isinstance(result.exception, UsageError)
    assert out.read_text() == "precious"


def test_a_meter_without_a_reading_is_an_error(tmp_path: Path) -> None:
    with power_server() as page:
        asked = ["record", spec_file(tmp_path, page), "--out", str(tmp_path / "a.jsonl"), *SHORT]
        page.body["devices"] = [device(k, power_w=None, energy_j=None) for k in range(4)]
        result = CliRunner().invoke(power, asked)
    assert isinstance(result.exception, InvalidMeasurement)
    errors = [
        json.loads(line).get("error") for line in (tmp_path / "a.jsonl").read_text().splitlines()
    ]
    assert set(errors[1:]) == {"not_supported"}


def test_watching_shows_watts_and_what_is_wrong(tmp_path: Path) -> None:
    with power_server() as page:
        file = spec_file(tmp_path, page)
        shown = CliRunner().invoke(power, ["watch", file, *SHORT], catch_exceptions=False)
        page.body["devices"][0] = device(0, power_w=None)
        as_json = CliRunner().invoke(power, ["watch", file, "--json", *SHORT])
    assert "simulated 2,006.0 W" in shown.output
    row = json.loads(as_json.output.splitlines()[0])
    assert row["devices"] == {"SIM-0": None, "SIM-1": 501.0, "SIM-2": 502.0, "SIM-3": 503.0}
    assert row["errors"] == ["not_supported"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["watch"], "name a SPEC, or a meter by --source"),
        (["watch", "--source", "nope"], "there is no meter nope"),
    ],
)
def test_what_is_asked_for_wrongly_is_told(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(power, arguments)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
