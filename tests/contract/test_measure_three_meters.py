"""Boards, a Redfish controller and an IPMI controller at once, beside a real load."""

import json
from pathlib import Path

import pytest

from tests.support.bmc import PASSWORD, bmc
from tests.support.program import run, write_spec
from tests.support.redfish import controller
from tests.support.site import entry_of, page_of

REDFISH_W, IPMI_W = 700, 900


def test_three_figures_stand_side_by_side_on_the_page(tmp_path: Path) -> None:
    with controller() as redfish, bmc(IPMI_W) as (address, _):
        redfish.power("1", {"PowerConsumedWatts": REDFISH_W})
        meters = [
            {"source": "simulated"},
            {"source": "redfish", "url": redfish.url, "scope": "node_dc", "sampling_hz": 5},
            {
                "source": "ipmi",
                "host": address,
                "username": "reader",
                "scope": "node_ac",
                "password_env": "TOKENWATT_TEST_BMC",
                "sampling_hz": 2,
            },
        ]
        write_spec(
            tmp_path / "s.yaml",
            power=meters,
            measurement={"repeats": 1, "idle_s": 2, "window_s": 3},
        )
        code, said = run(
            *("measure", "s.yaml", "--out", "a.json"),
            cwd=tmp_path,
            env={"TOKENWATT_TEST_BMC": PASSWORD},
        )
    assert code == 0, said
    assert run("verify", "a.json", cwd=tmp_path)[0] == 0
    text = (tmp_path / "a.json").read_text()
    assert f'"{PASSWORD}"' not in text
    document = json.loads(text)
    config = document["configs"][0]
    every = [config["energy"], *(meter["energy"] for meter in config["meters"])]
    assert [energy["scope"] for energy in every] == ["board", "node_dc", "node_ac"]
    watts = [energy["joules"] / energy["seconds"] for energy in every]
    assert watts[1:] == pytest.approx([REDFISH_W, IPMI_W])
    assert config["energy"]["node_minus_boards_w"] == pytest.approx(REDFISH_W - watts[0])
    page = page_of(entry_of(document))
    table = page.all("#power table")[-1]
    rows = [[cell.text() for cell in row.children] for row in table.all("tbody tr")]  # type: ignore[union-attr]
    assert [row[1] for row in rows] == ["GPU boards", "whole node, DC", "whole node, AC"]
    assert [row[3] for row in rows][1:] == ["700", "900"]
