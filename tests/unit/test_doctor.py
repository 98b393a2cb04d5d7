import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.power_server import PowerServer, device, power_server
from tokenwatt_site.cli.doctor import doctor
from tokenwatt_site.doctor import NEEDS, Examination, MeterLook, examine
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import FindingsError
from tokenwatt_site.power import METERS

READINGS = 8
LONGEST_S = 20.0


def spec(url: str, **power: object) -> Spec:
    return Spec.model_validate(
        {
            "name": "x",
            "engine": {"endpoint": url},
            "model": {"name": "m", "tensor_parallel": 4},
            "hardware": {"adapter": "simulated"},
            "power": {"source": "simulated", **power},
        }
    )


def examined(page: PowerServer, asked: Spec) -> Examination:
    """Look until the page was read some times, each time with new counters."""

    def wait(_: float) -> None:
        deadline = threading.Event()
        timer = threading.Timer(LONGEST_S, deadline.set)
        timer.start()
        while page.paths.count("/power") < READINGS and not deadline.wait(0.005):
            for entry in page.body["devices"]:
                if entry["energy_j"] is not None:
                    entry["energy_j"] += 1.0
        timer.cancel()

    return examine(asked, None, 1.0, wait)


def look(found: Examination, source: str) -> MeterLook:
    return next(each for each in found.meters if each.source == source)


def test_a_meter_is_read_and_says_what_it_is() -> None:
    with power_server() as page:
        found = look(examined(page, spec(page.url, gain_pct=1.5)), "simulated")
    assert (found.state, found.scope, found.devices) == ("read", "board", 4)
    assert found.power_w == pytest.approx(2006.0)
    assert found.counter
    assert found.gain_pct == 1.5
    assert found.update is not None
    assert found.update.at_most


def test_a_meter_whose_readings_fail_is_no_meter_of_zero_watts() -> None:
    with power_server() as page:
        page.body["devices"] = [device(k, power_w=None, energy_j=None) for k in range(4)]
        found = examined(page, spec(page.url))
    failing = look(found, "simulated")
    assert (failing.state, failing.power_w) == ("failing", None)
    assert failing.errors == ("not_supported",)
    assert "power.source simulated" in found.lacking()


def test_every_meter_has_a_line_and_every_refusal_a_next_step() -> None:
    found = examine(None, None, 0.0, lambda _: None)
    assert {each.source for each in found.meters} == set(METERS)
    for each in found.meters:
        assert each.hint or each.state == "read", each
    assert {each.source for each in found.meters if each.state == "unnamed"} == set(NEEDS) & set(
        METERS
    )
    assert found.lacking() == []  # nobody asked


def test_what_a_spec_asks_for_and_cannot_have_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "x.spec.yaml"
    file.write_text(
        "name: x\nengine: {endpoint: 'http://127.0.0.1:9/v1'}\nmodel: {name: m}\n"
        "hardware: {adapter: simulated}\npower: {source: simulated}\n"
    )
    result = CliRunner().invoke(doctor, [str(file), "--seconds", "0.5"])
    assert isinstance(result.exception, FindingsError)
    lacking = "power.source simulated, engine.endpoint"
    assert lacking in str(result.exception)
    assert "no: nothing answers at http://127.0.0.1:9/v1" in result.output


def test_json_is_strict_and_whole() -> None:
    result = CliRunner().invoke(doctor, ["--json", "--seconds", "0.5"])
    assert result.exit_code == 0
    assert '"meters": [{"source": ' in result.output
    assert "NaN" not in result.output
