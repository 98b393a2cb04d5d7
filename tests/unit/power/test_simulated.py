"""The embedded engine's meter against a page that the test writes."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.power_server import PowerServer, device, power_server
from tokenwatt_site.accelerators import identify
from tokenwatt_site.documents.spec import SpecHardware, SpecModel, SpecPower
from tokenwatt_site.drivers.power_page import PowerPage
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import Meter
from tokenwatt_site.power.simulated import SimulatedMeter

ASKED = SpecPower(source="simulated")


@pytest.fixture
def page() -> Iterator[PowerServer]:
    with power_server() as server:
        yield server


def opened(page: PowerServer, **more: Any) -> Meter:
    asked = {"gpus": None, "count": 4} | more
    return open_meter(ASKED, simulator_url=page.url, **asked)


def test_a_reading_has_all_that_the_page_tells(page: PowerServer) -> None:
    page.body["devices"][0] |= {"throttled": ["sw_power_cap"], "throttle_ns": {"sw_power_cap": 7}}
    meter = opened(page)
    first, *others = meter.read()
    meter.close()
    assert (first.device, first.power_w, first.energy_j, first.limit_w) == ("SIM-0", 500, 1000, 700)
    assert (first.throttle, first.throttle_ns) == (("sw_power_cap",), {"sw_power_cap": 7})
    assert [sample.power_w for sample in others] == [501, 502, 503]
    assert others[0].throttle == ()
    assert {sample.t_s for sample in others} == {first.t_s}
    assert (meter.scope, meter.devices) == ("board", ("SIM-0", "SIM-1", "SIM-2", "SIM-3"))


def test_the_connection_is_kept_and_the_page_lies_beside_v1(page: PowerServer) -> None:
    meter = opened(page)
    for _ in range(5):
        meter.read()
    meter.close()
    assert page.connections == 2  # one to find the devices, one for the thread that reads
    assert set(page.paths) == {"/power"}


def test_only_the_accelerators_under_test_are_read(page: PowerServer) -> None:
    meter = opened(page, gpus=[2, "SIM-1"], count=2)
    assert [sample.device for sample in meter.read()] == ["SIM-2", "SIM-1"]
    meter.close()


def test_the_stamp_is_the_middle_of_the_call_on_our_clock(page: PowerServer) -> None:
    times = iter([10.0, 14.0])
    meter = SimulatedMeter(PowerPage(page.url), ["SIM-0"], clock=lambda: next(times))
    assert meter.read()[0].t_s == 12
    meter.close()


def test_a_counter_that_is_hidden_is_none(page: PowerServer) -> None:
    for entry in page.body["devices"]:
        del entry["energy_j"]
    meter = opened(page)
    assert {sample.energy_j for sample in meter.read()} == {None}
    assert {sample.error for sample in meter.read()} == {None}
    meter.close()


def test_throttling_that_isnt_told_is_unknown(page: PowerServer) -> None:
    page.body["devices"] = [device(0)]
    del page.body["devices"][0]["throttled"]
    meter = opened(page, count=1)
    assert meter.read()[0].throttle is None
    meter.close()


@pytest.mark.parametrize(
    "status, body",
    [
        (404, {"devices": []}),
        (200, b"<html>hello</html>"),
        (200, b""),
        (200, {"devices": 4}),
        (200, {"devices": [{"name": "no uuid"}]}),
        (200, {"devices": [4]}),
        (200, {"devices": [device(0, power_w="500")]}),
        (200, {"devices": [device(0, power_w=True)]}),
        (200, {"devices": [device(0, throttle_ns=[1])]}),
        (200, [1, 2]),
        (200, b'{"devices": []}' + b" " * 1_000_001),
    ],
)
def test_a_bad_answer_is_a_gap_and_the_next_good_one_isnt(
    page: PowerServer, status: int, body: Any
) -> None:
    meter = opened(page, count=1)
    good, page.status, page.body = page.body, status, body
    (sample,) = meter.read()
    assert (sample.error, sample.power_w, sample.device) == ("bad_answer", None, "SIM-0")
    page.status, page.body = 200, good
    assert meter.read()[0].error is None
    meter.close()


def test_a_power_that_is_no_number_of_json_is_a_gap(page: PowerServer) -> None:
    page.body["devices"][0]["power_w"] = float("nan")
    meter = opened(page)
    assert (meter.read()[0].power_w, meter.read()[0].error) == (None, "not_supported")
    meter.close()


def test_a_device_that_leaves_the_page_is_a_gap_of_its_own(page: PowerServer) -> None:
    meter = opened(page)
    del page.body["devices"][1]
    assert [sample.error for sample in meter.read()] == [None, "device_missing", None, None]
    meter.close()


def test_a_page_that_doesnt_answer_is_a_gap_not_a_hang(page: PowerServer) -> None:
    meter = SimulatedMeter(PowerPage(page.url, timeout_s=0.05), ["SIM-0"])
    page.silent.set()
    assert meter.read()[0].error == "timeout"
    meter.close()


def test_a_server_that_is_gone_is_a_gap() -> None:
    with power_server() as server:
        meter = opened(server)
    assert {sample.error for sample in meter.read()} == {"unreachable"}
    meter.close()


def test_a_server_without_the_page_is_refused(page: PowerServer) -> None:
    page.status = 404
    with pytest.raises(RefusedError, match="has none at /power") as raised:
        opened(page)
    assert "`simulator:`" in raised.value.hint
    with pytest.raises(RefusedError, match="unreachable"):
        open_meter(ASKED, gpus=None, count=1, simulator_url="http://127.0.0.1:1/v1")
    with pytest.raises(RefusedError):
        open_meter(ASKED, gpus=None, count=1, simulator_url=None)


def test_more_accelerators_than_the_page_has_are_refused(page: PowerServer) -> None:
    with pytest.raises(UsageError, match="needs 5 accelerators"):
        opened(page, count=5)


def test_the_accelerators_are_named_from_the_page(page: PowerServer) -> None:
    hardware = SpecHardware(adapter="simulated")
    found = identify(hardware, SpecModel(name="m", tensor_parallel=4), page.url)
    assert (found.vendor, found.name, found.count) == ("simulated", "Simulated H200", 4)
    assert (found.uuids[:2], found.power_limit_w) == (("SIM-0", "SIM-1"), 700)
    assert found.rated_bw_tbs_per_gpu == 4.8
    given = SpecHardware(adapter="simulated", rated_bw_tbs_per_gpu=3.3, gpus=["SIM-1"])
    found = identify(given, SpecModel(name="m"), page.url)
    assert (found.uuids, found.rated_bw_tbs_per_gpu) == (("SIM-1",), 3.3)


def test_an_accelerator_left_out_by_count_would_halve_the_energy(page: PowerServer) -> None:
    """Two GPUs' work against one GPU's power: refused unless the spec names them."""
    with pytest.raises(UsageError, match="has 4 accelerators, the model is on 2"):
        identify(
            SpecHardware(adapter="simulated"), SpecModel(name="m", tensor_parallel=2), page.url
        )


def test_accelerators_of_two_kinds_are_refused(page: PowerServer) -> None:
    page.body["devices"][1]["name"] = "Another"
    hardware = SpecHardware(adapter="simulated")
    with pytest.raises(UsageError, match="of 2 kinds: Another, Simulated H200"):
        identify(hardware, SpecModel(name="m", tensor_parallel=4), page.url)


def test_another_server_is_not_the_embedded_engine(page: PowerServer) -> None:
    page.body = b"<html>"
    with pytest.raises(RefusedError, match=r"hardware\.adapter: simulated"):
        identify(SpecHardware(adapter="simulated"), SpecModel(name="m"), page.url)
