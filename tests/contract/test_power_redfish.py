"""The Redfish meter: every vendor's dump gives its right answer, and no tree a wrong watt."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.redfish import Controller, controller, dump
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power import web
from tokenwatt_site.power.redfish import RedfishMeter, candidates, open_redfish
from tokenwatt_site.power.redfish_api import RedfishApi

PASSWORD = "correct horse"  # noqa: S105 - of these tests


def opened(url: str, **asked: Any) -> RedfishMeter:
    power = SpecPower.model_validate({"source": "redfish", "url": url} | asked)
    return open_redfish(power, gpus=None, count=0, simulator_url=None)


def read(meter: RedfishMeter) -> tuple[float | None, str | None]:
    try:
        (sample,) = meter.read()
        return sample.power_w, sample.error
    finally:
        meter.close()


@pytest.mark.parametrize(
    "name, chassis, watts, scope, place",
    [
        ("dell_poweredge_r750", "System.Embedded.1", 614.0, "node_ac", "PowerControl"),
        ("libredfish_dell", None, 614.0, "node_ac", "PowerControl"),
        ("libredfish_hpe", None, 531.0, "node_ac", "PowerControl"),
        ("lenovo_thinksystem_sr670", "1", 416.0, "node_ac", "PowerControl"),
        ("libredfish_lenovo", None, 708.0, "node_ac", "PowerControl"),
        ("libredfish_nvidia_viking", "DGX", 1989.0, "node_dc", "output of the power supplies"),
        (
            *("libredfish_nvidia_viking", "HGX_Chassis_0", 824.9, "module"),
            "sensor HGX_Chassis_0_TotalHSC_Power_0",
        ),
        (
            *("libredfish_nvidia_gb200", None, 1079.3, "node_dc"),
            "sensor Chassis_0_TotalHSC_Power_0",
        ),
        ("dmtf_public-rackmount1", None, 374.0, "node_ac", "sensor TotalPower"),
    ],
)
def test_a_vendors_controller_gives_its_right_answer(
    name: str, chassis: str | None, watts: float, scope: str, place: str
) -> None:
    with dump(name) as url:
        meter = opened(url, chassis=chassis)
        assert meter.scope == scope
        assert meter.source.endswith(f": {place}")
        assert read(meter) == (pytest.approx(watts, abs=0.05), None)


def test_a_baseboard_beside_its_server_is_never_added_up() -> None:
    with dump("libredfish_nvidia_viking") as url:
        with pytest.raises(RefusedError, match="DGX") as caught:
            opened(url)
        found = {each.chassis: each.place.scope for each in candidates(RedfishApi(_power(url)))}
    assert "DGX (1,989 W, node_dc" in caught.value.what
    assert "HGX_Chassis_0 (825 W, module" in caught.value.what
    assert found["DGX"] == "node_dc"
    assert {scope for name, scope in found.items() if name.startswith("HGX")} == {"module"}


def test_a_placeholder_in_every_chassis_is_shown_as_what_it_is() -> None:
    with dump("dmtf_public-telemetry") as url, pytest.raises(RefusedError) as caught:
        opened(url)
    assert caught.value.what.count("8,000 W") == 4


def test_a_tree_without_power_is_no_zero() -> None:
    shown = pytest.raises(RefusedError, match="shows no power")
    with dump("dmtf_public-power-shelf") as url, shown:
        opened(url)


def _power(url: str, **asked: Any) -> SpecPower:
    return SpecPower.model_validate({"source": "redfish", "url": url} | asked)


@pytest.fixture
def bmc() -> Iterator[Controller]:
    with controller() as told:
        yield told


def supplies(*watts: float | None, off: int = 0) -> list[dict[str, Any]]:
    there = [{"PowerInputWatts": each, "Status": {"State": "Enabled"}} for each in watts]
    return there + [{"PowerInputWatts": None, "Status": {"State": "Absent"}}] * off


@pytest.mark.parametrize(
    "controls, more, watts",
    [
        ([{"PowerConsumedWatts": 464}], {}, 464.0),  # without Status
        ([], {"PowerSupplies": supplies(200.0, 210.5)}, 410.5),
        ([], {"PowerSupplies": supplies(200.0, 0.0)}, 200.0),  # stands by
        ([], {"PowerSupplies": supplies(200.0, off=1)}, 200.0),  # an empty bay
        ([{"PowerConsumedWatts": 0}], {"PowerSupplies": supplies(150.0)}, 150.0),
        ([{"PowerConsumedWatts": None}], {"PowerSupplies": supplies(150.0)}, 150.0),
        (
            [
                {"PowerConsumedWatts": 99, "PhysicalContext": "CPUSubsystem"},
                {"PowerConsumedWatts": 708, "PhysicalContext": "Chassis"},
            ],
            {},
            708.0,
        ),
    ],
)
def test_the_places_of_a_chassis(
    bmc: Controller, controls: list[dict[str, Any]], more: dict[str, Any], watts: float
) -> None:
    bmc.power("1", *controls, **more)
    assert read(opened(bmc.url)) == (watts, None)


@pytest.mark.parametrize(
    "controls, more",
    [
        ([{"PowerConsumedWatts": 0}], {}),
        ([{"PowerConsumedWatts": 65535}], {}),
        ([{"PowerConsumedWatts": -5}], {}),
        ([{"PowerConsumedWatts": "614"}], {}),
        ([{"PowerConsumedWatts": True}], {}),
        ([{}], {}),
        ([], {"PowerSupplies": supplies(200.0, None)}),  # one is missing in the sum
        ([{"PowerConsumedWatts": 5}, {"PowerConsumedWatts": 7}], {}),  # which is the whole?
    ],
)
def test_what_is_no_power_is_not_read(
    bmc: Controller, controls: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    bmc.power("1", *controls, **more)
    with pytest.raises(RefusedError, match="shows no power"):
        opened(bmc.url)


def test_two_nodes_that_share_their_supplies_are_not_added_up(bmc: Controller) -> None:
    for name in ("a", "b"):
        bmc.power(name, {"PowerConsumedWatts": 297})
    with pytest.raises(RefusedError, match="several chassis"):
        opened(bmc.url)
    assert read(opened(bmc.url, chassis="b")) == (297.0, None)
    with pytest.raises(UsageError, match="c shows no power") as caught:
        opened(bmc.url, chassis="c")
    assert "a (297 W" in caught.value.hint


def test_only_a_power_subsystem(bmc: Controller) -> None:
    base = "/redfish/v1/Chassis/1"
    bmc.chassis("1", Power=f"{base}/Power", PowerSubsystem=f"{base}/PowerSubsystem")
    bmc.tree[f"{base}/PowerSubsystem"] = {"PowerSupplies": {"@odata.id": f"{base}/PSUs"}}
    bmc.tree[f"{base}/PSUs"] = {"Members": [{"@odata.id": f"{base}/PSUs/{k}"} for k in range(2)]}
    for k in range(2):
        bmc.tree[f"{base}/PSUs/{k}"] = {"Metrics": {"@odata.id": f"{base}/PSUs/{k}/Metrics"}}
        bmc.tree[f"{base}/PSUs/{k}/Metrics"] = {"InputPowerWatts": {"Reading": 100.0 + k}}
    meter = opened(bmc.url)
    assert (meter.scope, meter.source) == (
        "node_ac",
        "Redfish, chassis 1: input of the power supplies",
    )
    assert read(meter) == (201.0, None)


def test_a_session_is_opened_once_and_ended(
    bmc: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENWATT_TEST_BMC", PASSWORD)
    bmc.user = ("admin", PASSWORD)
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url, username="admin", password_env="TOKENWATT_TEST_BMC")  # noqa: S106
    assert meter.read()[0].power_w == 464.0
    bmc.open.clear()  # the controller ended it
    assert meter.read()[0].power_w == 464.0
    assert len(bmc.open) == 1
    meter.close()
    assert bmc.open == set()
    assert [method for method, _ in bmc.asked].count("POST") == 2


def test_a_controller_that_lets_nobody_in_any_more_keeps_no_session(
    bmc: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Controllers allow 4 to 16 of them: more would lock their owner out."""
    monkeypatch.setenv("TOKENWATT_TEST_BMC", PASSWORD)
    bmc.user = ("admin", PASSWORD)
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url, username="admin", password_env="TOKENWATT_TEST_BMC")  # noqa: S106
    bmc.deny = True
    for _ in range(10):
        assert meter.read()[0].error == "unauthorized"
        assert len(bmc.open) <= 1
    meter.close()
    assert bmc.open == set()


def test_a_chassis_that_this_user_may_not_see_hides_no_other(bmc: Controller) -> None:
    bmc.power("a", {"PowerConsumedWatts": 297})
    bmc.power("b", {"PowerConsumedWatts": 464})
    bmc.forbidden.add("/redfish/v1/Chassis/a")
    assert read(opened(bmc.url)) == (464.0, None)


def test_a_certificate_of_ones_own_can_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with controller(file) as bmc:
        bmc.power("1", {"PowerConsumedWatts": 464})
        assert read(opened(bmc.url)) == (464.0, None)


def certificate(folder: Path) -> Path:
    """Return a file with a key and a certificate of 127.0.0.1 that nobody else signed."""
    key, signed, both = (folder / name for name in ("key", "certificate", "both"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", signed], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + signed.read_bytes())
    return both


def test_a_reading_is_one_question(bmc: Controller) -> None:
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url)
    bmc.asked.clear()
    meter.read()
    assert bmc.asked == [("GET", "/redfish/v1/Chassis/1/Power")]
    meter.close()


def test_a_controller_without_sessions_gets_the_password_each_time(
    bmc: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENWATT_TEST_BMC", PASSWORD)
    bmc.user, bmc.sessions = ("admin", PASSWORD), False
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url, username="admin", password_env="TOKENWATT_TEST_BMC")  # noqa: S106
    assert read(meter) == (464.0, None)


def test_a_wrong_password_is_told_and_never_shown(
    bmc: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENWATT_TEST_BMC", "wrong battery")
    bmc.user = ("admin", PASSWORD)
    with pytest.raises(RefusedError, match="unauthorized") as caught:
        opened(bmc.url, username="admin", password_env="TOKENWATT_TEST_BMC")  # noqa: S106
    assert "battery" not in str(caught.value)
    monkeypatch.delenv("TOKENWATT_TEST_BMC")
    with pytest.raises(UsageError, match="TOKENWATT_TEST_BMC isn't set"):
        opened(bmc.url, username="admin", password_env="TOKENWATT_TEST_BMC")  # noqa: S106


@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest",
        "//other.example/redfish/v1/x",
        "/redfish/v1/../../etc/passwd",
        "/redfish/v1/x?y=1",
        "/admin",
        "/redfish/v1/a b",
        7,
        None,
    ],
)
def test_a_link_never_leaves_the_tree(bmc: Controller, place: Any) -> None:
    bmc.chassis("1", Power=place)
    bmc.asked.clear()
    with pytest.raises(RefusedError, match="shows no power"):
        opened(bmc.url)
    assert {path for _, path in bmc.asked} == {
        *("/redfish/v1", "/redfish/v1/Chassis", "/redfish/v1/Chassis/1")
    }


@pytest.mark.parametrize(
    "answer, code",
    [
        (b"<html>sign in</html>", "bad_answer"),
        (b"[]", "bad_answer"),
        (b"{" * 100_000, "bad_answer"),
        (b'{"PowerControl": 7}', "bad_answer"),
        (b'{"PowerControl": [{"PowerConsumedWatts": 0}]}', "zero_power"),
        (b'{"PowerControl": [{"PowerConsumedWatts": 1e999}]}', "bad_answer"),
        (b'{"PowerControl": [{"PowerConsumedWatts": null}]}', "no_data"),
        (b" " * (web.MOST_BYTES + 1), "bad_answer"),
    ],
)
def test_what_a_controller_answers_later_is_never_a_wrong_watt(
    bmc: Controller, answer: bytes, code: str
) -> None:
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url)
    bmc.raw["/redfish/v1/Chassis/1/Power"] = answer
    assert read(meter) == (None, code)


def test_a_redirect_is_not_followed(bmc: Controller) -> None:
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url)
    bmc.redirects["/redfish/v1/Chassis/1/Power"] = "http://other.example/"
    assert read(meter) == (None, "redirected")


def test_a_controller_that_stalls_is_a_timeout(
    bmc: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "CALL_S", 0.2)
    bmc.power("1", {"PowerConsumedWatts": 464})
    meter = opened(bmc.url)
    bmc.silent.set()
    assert read(meter) == (None, "timeout")


def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    with controller(file) as bmc:
        bmc.power("1", {"PowerConsumedWatts": 464})
        with pytest.raises(RefusedError, match="unreachable") as caught:
            opened(bmc.url)
        assert "power.verify_tls: false" in caught.value.hint
        assert read(opened(bmc.url, verify_tls=False)) == (464.0, None)
