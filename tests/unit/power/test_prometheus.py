"""The Prometheus meter against a server that answers what the test says, and no sooner."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.power_server import PowerServer, power_server
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power import open_meter, web
from tokenwatt_site.power.prometheus_api import PrometheusApi
from tokenwatt_site.power.prometheus_meter import PrometheusMeter
from tokenwatt_site.power.prometheus_query import Part
from tokenwatt_site.power.web import UnansweredError

URL = "http://prometheus.example:9090/prom/"
AHEAD_S = 1000.0
"""How far the server's clock is ahead of ours."""


class Server:
    """One series, a counter of joules, on a server whose clock is ahead."""

    def __init__(self) -> None:
        self.now_s = 50.0
        self.rows: list[tuple[dict[str, str], str, float]] = [({"a": "1"}, "7000", 49.0)]
        self.raw: Any = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer ``time()``, or every row's value and the time of its scrape."""
        at_s = self.now_s + AHEAD_S
        query = request.url.params["query"]
        if query == "time()":
            return httpx.Response(200, json=answer("scalar", [at_s, str(at_s)]))
        if self.raw is not None:
            return httpx.Response(200, json=self.raw)
        result: list[dict[str, Any]] = []
        for labels, value, scraped_s in self.rows:
            for mark, text in (("value", value), ("stamp", str(scraped_s + AHEAD_S))):
                marked = labels | {"tokenwatt": f"{mark}_energy"}
                result.append({"metric": marked, "value": [at_s, text]})
        return httpx.Response(200, json=answer("vector", result))

    def clock(self) -> float:
        """Ours; the server's goes with it."""
        return self.now_s


def answer(kind: str, result: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def api(handler: Callable[[httpx.Request], httpx.Response], **more: object) -> PrometheusApi:
    asked = SpecPower.model_validate({"source": "prometheus", "url": URL} | more)
    return PrometheusApi(asked, httpx.MockTransport(handler))


def meter_of(server: Server, selector: str | None = "joules") -> PrometheusMeter:
    part = Part("energy", 1.0, "joules", "timestamp(joules)", selector)
    devices = {"one": frozenset({("a", "1")})}
    meter = PrometheusMeter(api(server), [part], devices, ("X", "board", None), 1, server.clock)
    meter.see_time()
    return meter


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_scrapes_time_is_put_on_our_clock(server: Server) -> None:
    (sample,) = meter_of(server).read()
    assert (sample.t_s, sample.energy_j, sample.error) == (49.0, 7000.0, None)


def test_the_same_scrape_read_twice_is_the_same_sample(server: Server) -> None:
    meter = meter_of(server)
    first = meter.read()
    server.now_s = 50.7
    assert meter.read() == first
    server.rows = [({"a": "1"}, "7000", 50.0)]
    assert [sample.t_s for sample in meter.read()] == [50.0]


def test_the_quickest_answer_tells_the_servers_clock(server: Server) -> None:
    meter = meter_of(server)
    times = iter([50.0, 54.0, 60.0, 60.0])  # the first answer took four seconds
    meter._clock = lambda: next(times)
    server.now_s, server.rows = 50.0, [({"a": "1"}, "7100", 50.0)]
    assert meter.read()[0].t_s == 50.0


def test_a_scrape_that_is_too_old_is_stale(server: Server) -> None:
    meter = meter_of(server)
    server.now_s = 52.0
    assert meter.read()[0].error is None
    server.now_s = 52.1
    (sample,) = meter.read()
    assert (sample.t_s, sample.energy_j, sample.error) == (52.1, None, "stale")


def test_an_expression_is_new_when_its_value_is(server: Server) -> None:
    meter = meter_of(server, selector=None)
    server.rows = [({"a": "1"}, "7000", 50.0)]
    first = meter.read()
    server.now_s, server.rows = 51.0, [({"a": "1"}, "7000", 51.0)]
    assert meter.read() == first
    server.now_s, server.rows = 52.0, [({"a": "1"}, "7500", 52.0)]
    assert [sample.t_s for sample in meter.read()] == [52.0]


def test_labels_that_change_are_another_device(server: Server) -> None:
    meter = meter_of(server)
    server.rows = [({"a": "2"}, "7000", 49.0)]
    assert meter.read()[0].error == "device_missing"
    server.rows = []
    assert meter.read()[0].error == "device_missing"


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "", "1,5", "null"])
def test_what_is_no_count_is_an_error(server: Server, value: str) -> None:
    server.rows = [({"a": "1"}, value, 49.0)]
    (sample,) = meter_of(server).read()
    assert (sample.energy_j, sample.error) == (None, "bad_answer")


@pytest.mark.parametrize(
    "raw",
    [
        [],
        {},
        {"status": "success"},
        {"status": "error", "errorType": "timeout", "error": "query timed out"},
        answer("streams", []),
        answer("vector", {}),
        answer("vector", [{"metric": None, "value": [1, "2"]}]),
        answer("vector", [{"metric": {}, "value": 3}]),
        answer("vector", [{"metric": {}}]),
    ],
)
def test_an_answer_of_another_shape_is_a_gap(server: Server, raw: Any) -> None:
    meter = meter_of(server)
    server.raw = raw
    assert meter.read()[0].error in {"bad_answer", "device_missing"}
    assert meter.read()[0].energy_j is None


@pytest.mark.parametrize(
    "response, code",
    [
        (httpx.Response(200, text="<html>log in</html>"), "bad_answer"),
        (httpx.Response(200, content=b"[" * 100_000), "bad_answer"),
        (httpx.Response(503, text="overloaded"), "bad_answer"),
        (httpx.Response(401, text="no"), "unauthorized"),
        (httpx.Response(403, json={}), "unauthorized"),
        (httpx.Response(302, headers={"Location": "http://other.example/"}), "redirected"),
        (httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=b""), "bad_answer"),
        (httpx.Response(200, content=b" " * 4_000_001), "bad_answer"),
    ],
)
def test_what_is_no_answer_has_a_code(response: httpx.Response, code: str) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return response

    with pytest.raises(UnansweredError) as error:
        api(handler).ask("up")
    assert error.value.code == code
    assert asked == ["http://prometheus.example:9090/prom/api/v1/query?query=up"]


@pytest.fixture
def silent() -> Iterator[PowerServer]:
    with power_server() as page:
        page.silent.set()
        yield page


def test_a_server_that_says_nothing_is_a_timeout(
    silent: PowerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "CALL_S", 0.1)
    asked = SpecPower(source="prometheus", url=silent.url)
    with pytest.raises(RefusedError, match="timeout"):
        open_meter(asked, gpus=None, count=1, simulator_url=None)


def test_a_server_that_isnt_there_is_unreachable() -> None:
    asked = SpecPower(source="prometheus", url="http://127.0.0.1:9")
    with pytest.raises(RefusedError, match="unreachable"):
        open_meter(asked, gpus=None, count=1, simulator_url=None)


@pytest.mark.parametrize(
    "username, sent", [("reader", "Basic cmVhZGVyOnNlY3JldA=="), (None, "Bearer secret")]
)
def test_a_password_is_sent_with_its_user_or_as_a_token(
    username: str | None, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROM_PASSWORD", "secret")
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        return httpx.Response(200, content=json.dumps(answer("vector", [])))

    rights = {"username": username, "password_env": "PROM_PASSWORD"}
    api(handler, **rights).ask("up")
    assert seen == [sent]


@pytest.mark.parametrize(
    "more, words",
    [
        ({"url": None}, "power.url"),
        ({"url": "prometheus.example:9090"}, "power.url"),
        ({"url": "ftp://prometheus.example"}, "power.url"),
        ({"url": "http://[::1"}, "power.url"),
        ({"url": "http://prometheus.example/?x=1"}, "power.url"),
        ({"url": "http://me:hunter2@prometheus.example"}, "holds a user name or a password"),
        ({"username": "me"}, "without a password"),
        ({"password_env": "UNSET_PASSWORD"}, "UNSET_PASSWORD isn't set"),
        ({"password_env": "BROKEN_PASSWORD"}, "BROKEN_PASSWORD holds characters"),
    ],
)
def test_an_address_or_a_password_that_cant_be_used_is_refused_unseen(
    more: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN_PASSWORD", "hunter2\r\nX: y")
    asked = SpecPower.model_validate({"source": "prometheus", "url": URL} | more)
    with pytest.raises(UsageError, match=words) as refused:
        open_meter(asked, gpus=None, count=1, simulator_url=None)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "more, words",
    [
        ({}, "power.quantity"),
        ({"quantity": "power"}, "power.unit: none is no unit of power"),
        ({"quantity": "power", "unit": "J"}, "power.unit: J is no unit of power"),
        ({"quantity": "energy", "unit": "kWh"}, "power.scope"),
    ],
)
def test_a_query_needs_quantity_unit_and_scope(more: dict[str, Any], words: str) -> None:
    asked = SpecPower.model_validate({"source": "prometheus", "url": URL, "query": "x"} | more)
    with pytest.raises(UsageError, match=words):
        open_meter(asked, gpus=None, count=1, simulator_url=None)
