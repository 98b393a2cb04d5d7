"""Debian's Prometheus with what its readers stumble over: repeats, dead targets, empty answers."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.prometheus import UUIDS, WATTS, Exporter, dcgm_page, exporter, prometheus, until
from tests.support.shared import require
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import Meter

HUNTER2 = "$2b$04$mlbi7iCHwEW8FfdvtVDLD.8/GtGyABvHaQiF5D34CC0T/ivC//QJO"
"""The password of the server with one, by bcrypt."""
SPLIT = "GPU-11111111-2222-3333-4444-555555555555"
BLANK = "GPU-99999999-2222-3333-4444-555555555555"
PDU: dict[str, Any] = {"source": "prometheus", "quantity": "power", "unit": "W", "scope": "node_ac"}


class Server:
    def __init__(self, url: str, pdu: Exporter) -> None:
        self.url = url
        self.pdu = pdu


def gpus_of_node() -> str:
    """A third GPU is split by MIG, a fourth tells DCGM's blanks."""
    more: dict[str, str] = {}
    for instance in (1, 2):
        labels = f'gpu="2",UUID="{SPLIT}",GPU_I_PROFILE="3g.40gb",GPU_I_ID="{instance}"'
        more[f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}"] = "300.5"
    labels = f'gpu="3",UUID="{BLANK}"'
    more[f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{labels}}}"] = "9223372036854775794"
    more[f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}"] = "140737488355328"
    return dcgm_page(lambda: more)


def other_node() -> str:
    """It shows the two GPUs as well, and its own of number 1."""
    uuid = "GPU-77777777-0000-0000-0000-000000000000"
    return dcgm_page(lambda: {f'DCGM_FI_DEV_POWER_USAGE{{gpu="1",UUID="{uuid}"}}': "99"})


def outlets() -> str:
    rows = ['outlet_watts{outlet="1"} 412', 'outlet_watts{outlet="2"} 390', "broken_watts NaN"]
    return "\n".join([*rows, "zero_watts 0", "negative_watts -3", "infinite_watts +Inf", ""])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with (
        exporter(gpus_of_node) as node,
        exporter(other_node) as other,
        exporter(outlets) as pdu,
        prometheus(node, other, pdu) as url,
    ):
        yield Server(url, pdu)


@contextmanager
def opened(
    server: Server, gpus: list[int | str] | None = None, count: int = 0, **more: object
) -> Iterator[Meter]:
    asked = SpecPower.model_validate({"source": "prometheus", "url": server.url} | more)
    meter = open_meter(asked, gpus=gpus, count=count, simulator_url=None)
    try:
        yield meter
    finally:
        meter.close()


def test_gpus_are_read_once_however_many_exporters_show_them(server: Server) -> None:
    with opened(server, gpus=list(UUIDS)) as meter:
        first, second = meter.read()
    assert [first.device, second.device] == list(UUIDS)
    assert [first.power_w, second.power_w] == [500, 600]
    assert meter.scope == "board"
    told = (
        r"GPU board power sum \(DCGM by Prometheus: energy counter and power, scraped every 0.+ s\)"
    )
    assert re.fullmatch(told, meter.source)


def test_a_reading_has_the_time_of_its_scrape_on_our_clock(server: Server) -> None:
    with opened(server, gpus=[UUIDS[1]]) as meter:
        (sample,) = meter.read()
    assert sample.energy_j is not None
    counted_s = sample.energy_j / WATTS[UUIDS[1]]  # the page counts by the clock that we read
    assert counted_s - sample.t_s == pytest.approx(0, abs=0.25)  # a scrape has 0.1 s


def test_a_gpu_split_by_mig_is_refused_or_its_board_is_read_once(server: Server) -> None:
    with pytest.raises(RefusedError, match="split by MIG"), opened(server, gpus=[SPLIT]):
        pass
    with opened(server, gpus=[SPLIT], scope="shared_board") as meter:
        (sample,) = meter.read()
    assert (sample.power_w, sample.energy_j, meter.scope) == (300.5, None, "shared_board")


def test_a_gpu_that_tells_blanks_is_refused(server: Server) -> None:
    with pytest.raises(RefusedError, match="not_supported"), opened(server, gpus=[BLANK]):
        pass


def test_an_index_that_two_hosts_have_names_no_gpu(server: Server) -> None:
    with pytest.raises(UsageError, match="several of them as number 1"), opened(server, gpus=[1]):
        pass
    with pytest.raises(UsageError, match="several of them as number 1"), opened(server, count=2):
        pass


def test_every_series_of_a_query_is_a_device(server: Server) -> None:
    with opened(server, query="outlet_watts", **PDU) as meter:
        samples = meter.read()
    assert meter.devices == ("outlet=1", "outlet=2")
    assert [sample.power_w for sample in samples] == [412, 390]
    assert (meter.scope, meter.gain_pct) == ("node_ac", None)


def test_a_steady_power_is_a_fresh_reading_every_scrape(server: Server) -> None:
    with opened(server, query="outlet_watts", **PDU) as meter:
        begun_s = meter.read()[0].t_s
        until(lambda: meter.read()[0].t_s > begun_s, "no fresh reading of a steady power")


@pytest.mark.parametrize("query", ["sum(outlet_watts)", "scalar(sum(outlet_watts))", "802 # W"])
def test_an_expression_has_no_time_of_its_own(server: Server, query: str) -> None:
    with opened(server, query=query, **PDU) as meter:
        first, again = meter.read()[0], meter.read()[0]
    assert (first.device, first.power_w) == ("query", 802)
    assert again == first
    assert "age of a value unknown" in meter.source


def test_a_dead_target_is_missing_and_not_its_last_value(server: Server) -> None:
    with opened(server, query='outlet_watts{outlet="1"}', **PDU) as meter:
        assert meter.read()[0].power_w == 412
        server.pdu.up = False
        try:
            until(lambda: meter.read()[0].error == "device_missing", "a dead target still reads")
        finally:
            server.pdu.up = True
        until(lambda: meter.read()[0].power_w == 412, "a target that is up again doesn't read")


@pytest.mark.parametrize(
    "query, words",
    [
        ("absent_watts", "the answer is empty"),
        ("outlet_watts[1m]", "a range, not the values of one instant"),
        ("sum(", "bad_data"),
        ("last_over_time(outlet_watts[5m])", "a target that is dead still reads"),
        ("broken_watts", "bad_answer"),
        ("infinite_watts", "bad_answer"),
        ("negative_watts", "bad_answer"),
        ("zero_watts", "zero_power"),
        ("scalar(absent_watts)", "bad_answer"),
    ],
)
def test_a_query_without_a_reading_is_refused(server: Server, query: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words), opened(server, query=query, **PDU):
        pass


def test_sampling_faster_than_the_scrapes_is_refused(server: Server) -> None:
    with (
        pytest.raises(UsageError, match="which is too seldom for 20 readings") as refused,
        opened(server, query="outlet_watts", sampling_hz=20, **PDU),
    ):
        pass
    assert re.search(r"sampling_hz: (8|9)", refused.value.hint)


def test_a_server_with_its_own_certificate_and_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")}
    make = [require("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    make += ["ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost"]
    make += ["-out", files["cert_file"], "-keyout", files["key_file"]]
    subprocess.run(make, check=True, capture_output=True)
    web = tmp_path / "web.yml"
    web.write_text(
        json.dumps({"tls_server_config": files, "basic_auth_users": {"reader": HUNTER2}})
    )
    monkeypatch.setenv("PROM_PASSWORD", "hunter2")
    rights = {"username": "reader", "password_env": "PROM_PASSWORD"}
    with prometheus(web=web) as url:
        server = Server(url, Exporter(""))
        asked = {"query": "vector(802)", **PDU}
        with (
            pytest.raises(RefusedError, match="CERTIFICATE_VERIFY_FAILED") as refused,
            opened(server, **asked, **rights),
        ):
            pass
        assert "verify_tls" in refused.value.hint
        with (
            pytest.raises(RefusedError, match="unauthorized"),
            opened(server, verify_tls=False, **asked),
        ):
            pass
        with opened(server, verify_tls=False, **asked, **rights) as meter:
            assert meter.read()[0].power_w == 802
