"""Several meters on a run's page, and idle power."""

import copy
from typing import Any

import pytest

from tests.support.demo_run import demo_document
from tests.support.dom import Node
from tests.support.site import entry_of, page_of


def page(**energy: Any) -> Node:
    """Return the page of a run whose node meters stand beside the boards."""
    document = demo_document()
    config = document["configs"][0]
    first = config["energy"]
    first |= {"idle_w": 455.0, "idle_s": 120.0, "idle_drift_w": -3.0} | energy
    first["net_j_per_output_token"] = 0.6
    dc, ac = copy.deepcopy(first), copy.deepcopy(first)
    dc |= {"scope": "node_dc", "joules": first["joules"] * 1.4, "idle_w": 900.0}
    ac |= {"scope": "node_ac", "joules": None, "j_per_output_token": None, "valid": False}
    ac["reasons"] = ["gap", "timeout"]
    config["meters"] = [
        {
            "name": "redfish",
            "source": "Redfish",
            "scope": "node_dc",
            "sampling_hz": 1,
            "energy": dc,
        },
        {"name": "ipmi", "source": "<b>IPMI", "scope": "node_ac", "sampling_hz": 0.5, "energy": ac},
    ]
    return page_of(entry_of(document))


def rows(node: Node) -> list[list[str]]:
    table = node.all("#power table")[-1]
    return [[cell.text() for cell in row.children] for row in table.all("tbody tr")]


def test_three_meters_stand_side_by_side() -> None:
    primary, dc, ac = rows(page())
    assert primary[1:] == ["GPU boards", "10", "2,179", "0.793", "455", "0 / 60,000", "primary"]
    assert dc[0] == "Redfish"
    assert dc[1:4] == ["whole node, DC", "1", "3,051"]
    assert dc[5] == "900"
    assert dc[-1] == "another scope"
    assert ac[0] == "<b>IPMI"
    assert ac[3:5] == ["not recorded", "not recorded"]
    assert ac[-1] == "invalid: gap, timeout"


@pytest.mark.parametrize(
    "text",
    [
        "455 W (2 min without load, before and after: −3 W between them)",
        "0.600 J/token (ranked is the gross figure)",
    ],
)
def test_idle_power_says_how_it_was_read(text: str) -> None:
    assert text in page().one("#power").text()


def test_one_meter_has_no_table_of_meters() -> None:
    node = page_of(entry_of(demo_document()))
    assert "Every meter" not in node.one("#power").text()
