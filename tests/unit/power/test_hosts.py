"""Several hosts: real agents on 127.0.0.1, asked by the meter that adds them up."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.power_server import power_server
from tokenwatt_site.documents.spec import Scope, SpecHost
from tokenwatt_site.drivers.agent import HEADER, AgentClient
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power import hosts as module
from tokenwatt_site.power.agent import Agent
from tokenwatt_site.power.hosts import HostsMeter, RemotePart, open_hosts
from tokenwatt_site.power.sampler import Sampler

TOKEN = "0123456789abcdef0123"  # noqa: S105 - of these tests

SET, UNSET = {"token_env": "TOKENWATT_TEST_TOKEN"}, {"token_env": "TOKENWATT_UNSET"}


@dataclass
class Constant:
    """A meter of two devices that draw the same all the time."""

    watts: float
    scope: Scope = "board"
    name: str = "constant"
    source: str = "Two boards"
    devices: tuple[str, ...] = ("a", "b")
    gain_pct: float | None = 2.0

    def read(self) -> list[PowerSample]:
        return [PowerSample(module.now(), device, power_w=self.watts) for device in self.devices]

    def close(self) -> None:
        pass


@contextmanager
def agent(host: str, meter: Constant, token: str = TOKEN) -> Iterator[Agent]:
    sampler = Sampler(meter, 50)
    sampler.start()
    with Agent(("127.0.0.1", 0), host, [sampler], token) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            sampler.stop()


def url(server: Agent) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def host(name: str, server: Agent | None = None, **changes: Any) -> SpecHost:
    asked: dict[str, Any] = {"name": name, "power": [{"source": "simulated"}]} | changes
    if server is not None:
        asked |= {"agent": url(server), "token_env": "TOKENWATT_TEST_TOKEN"}
    return SpecHost.model_validate(asked)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENWATT_TEST_TOKEN", TOKEN)
    monkeypatch.setattr(module, "POLL_S", 0.0)


def read_until(meter: HostsMeter, seconds: float) -> list[PowerSample]:
    """Read until readings of so many seconds have come, of those hosts that answer."""
    samples: list[PowerSample] = []
    begun_s = module.now()
    while (
        module.now() < begun_s + 20 and len({s.t_s for s in samples if not s.error}) < 50 * seconds
    ):
        samples += meter.read()
        threading.Event().wait(0.01)
    return samples


def test_the_hosts_of_a_deployment_are_one_meter() -> None:
    with agent("node0", Constant(100.0)) as one, agent("node1", Constant(300.0)) as two:
        meter = open_hosts([host("node0", one, role="prefill"), host("node1", two)], 0)
        samples = read_until(meter, 2)
        meter.close()
    assert meter.devices == ("node0/a", "node0/b", "node1/a", "node1/b")
    assert (meter.scope, meter.gain_pct) == ("board", 2.0)
    assert meter.source == "Sum over 2 hosts: Two boards"
    by_host = {
        name: {s.power_w for s in samples if s.device.startswith(name)}
        for name in ("node0", "node1")
    }
    assert by_host == {"node0": {100.0}, "node1": {300.0}}
    for facts in meter.hosts:
        assert facts.clock_error_ms is not None
        assert facts.clock_offset_ms is not None
        assert 0 <= facts.clock_error_ms < 1000
        assert abs(facts.clock_offset_ms) <= facts.clock_error_ms + 50  # one clock in truth
    assert [facts.role for facts in meter.hosts] == ["prefill", ""]


def test_energy_is_the_sum_of_all_hosts() -> None:
    with agent("node0", Constant(100.0)) as one, agent("node1", Constant(300.0)) as two:
        meter = open_hosts([host("node0", one), host("node1", two)], 0)
        samples = read_until(meter, 2)
        meter.close()
    times_s = sorted(s.t_s for s in samples)
    w0_s = times_s[len(times_s) // 4]
    window = energy_window(samples, meter.devices, w0_s, w0_s + 0.3, 10)
    assert window.mean_w == pytest.approx(800.0)


def test_a_host_that_goes_away_leaves_errors_and_no_energy() -> None:
    with ExitStack() as stack:
        one = stack.enter_context(agent("node0", Constant(100.0)))
        with agent("node1", Constant(300.0)) as two:
            meter = open_hosts([host("node0", one), host("node1", two)], 0)
            before = read_until(meter, 1)
        gone_s = module.now()
        gone = meter.parts[1]
        assert isinstance(gone, RemotePart)
        gone._pool.submit(gone._client.close).result()  # the kept one outlives the listener
        after = read_until(meter, 1)
        while not any(s.error for s in after):
            after += read_until(meter, 1)
        meter.close()
    codes = {s.error for s in after if s.device.startswith("node1/") and s.t_s > gone_s + 0.5}
    assert codes == {"unreachable"}
    window = energy_window([*before, *after], meter.devices, gone_s, gone_s + 0.5, 10)
    assert not window.valid
    assert "unreachable" in window.reasons


def test_who_does_not_know_the_token_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with agent("node0", Constant(100.0)) as server:
        client = AgentClient(url(server), "another token of length")
        assert client.ask("/v1/facts").code == "unauthorized"
        client.close()
        monkeypatch.setenv("TOKENWATT_TEST_TOKEN", "another token of length")
        with pytest.raises(RefusedError, match=r"node0 can't be asked \(unauthorized\)") as caught:
            open_hosts([host("node0", server)], 0)
    assert "another token" not in str(caught.value)


def test_an_answer_that_is_not_proved_is_not_believed() -> None:
    with power_server() as page:
        page.body = {"host": "node0", "meters": [], "now_s": 1.0, "wall_s": 1.0}
        client = AgentClient(page.url.removesuffix("/v1"), TOKEN)
        assert client.ask("/v1/facts").code == "unauthorized"
        page.status = 500
        assert client.ask("/v1/facts").code == "bad_answer"
        client.close()
    assert client.ask("/v1/facts").code == "unreachable"
    assert HEADER not in str(page.paths)


def test_a_path_that_is_not_known_and_a_meter_that_is_not_there() -> None:
    with agent("node0", Constant(100.0)) as server:
        client = AgentClient(url(server), TOKEN)
        for target in ("/", "/v1/readings?meter=7&after=0", "/v1/readings?meter=x&after=0"):
            assert client.ask(target).code == "bad_answer"
        client.close()


def two(**changes: Any) -> Sequence[SpecHost]:
    return [host("a"), host("b", **changes)]


@pytest.mark.parametrize(
    "hosts, said",
    [
        ([host("a"), host("a")], "given twice"),
        ([host("a/b")], "has a slash"),
        (two(power=[{"source": "board"}]), "needs the same meters"),
        ([host("a", agent="http://127.0.0.1:1")], "needs token_env"),
        ([host("a", agent="http://127.0.0.1:1", **UNSET)], "holds no token"),
        (
            [host("a", agent="http://u:p@127.0.0.1:1", **SET)],
            "no agent's address",
        ),
    ],
)
def test_what_can_not_be_is_told(hosts: Sequence[SpecHost], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_hosts(hosts, 0)


def test_hosts_whose_meters_include_different_things_are_refused() -> None:
    with agent("a", Constant(1.0)) as one, agent("b", Constant(1.0, scope="node_ac")) as other:
        with pytest.raises(RefusedError, match="include different things: board, node_ac"):
            open_hosts([host("a", one), host("b", other)], 0)
        with pytest.raises(RefusedError, match="is that of another host"):
            open_hosts([host("c", one)], 0)


@pytest.mark.parametrize(
    "change",
    [
        {"power_w": float("nan")},
        {"power_w": "abc"},
        {"power_w": [1]},
        {"power_w": 1e300},
        {"power_w": 65535},
        {"power_w": -1},
        {"energy_j": "9"},
        {"t_us": float("inf")},
        {"t_us": None},
        {"error": "\x1b[2J"},
        {"throttle": [7]},
        {"throttle_ns": {"a": "b"}},
    ],
)
def test_what_an_agent_makes_up_is_never_a_watt(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent knows the token, so its answers are proved; they may still be broken."""
    with agent("node0", Constant(100.0)) as server:
        meter = open_hosts([host("node0", server)], 0)
        sound = server.answer

        def broken(target: str) -> dict[str, Any] | None:
            found = sound(target)
            if found and "rows" in found:
                found["rows"] = [{**row, **change} for row in found["rows"]]
            return found

        monkeypatch.setattr(server, "answer", broken)
        sampler = Sampler(meter, 50)
        sampler.start()
        wait = threading.Event()
        for _ in range(400):
            if len(sampler.recent()) >= 2:
                break
            wait.wait(0.01)
        samples = sampler.stop()
        meter.close()
    assert samples
    assert {sample.power_w for sample in samples} <= {None, 100.0}
    assert all(sample.error for sample in samples)


@pytest.mark.parametrize(
    "change",
    [
        {"now_s": None},
        {"now_s": "abc"},
        {"wall_s": [1]},
        {"meters": []},
        {"meters": [{"scope": "banana", "devices": ["a"], "hz": 1}]},
        {"meters": [{"scope": "board", "devices": [], "hz": 1}]},
        {"meters": [{"scope": "board", "devices": ["a", "a"], "hz": 1}]},
        {"meters": [{"scope": "board", "devices": ["\x1b"], "hz": 1}]},
        {"meters": [{"scope": "board", "devices": ["a"], "hz": 1, "gain_pct": "a"}]},
    ],
)
def test_facts_that_can_not_be_are_refused(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent("node0", Constant(100.0)) as server:
        sound = server.answer
        monkeypatch.setattr(server, "answer", lambda target: {**(sound(target) or {}), **change})
        with pytest.raises(RefusedError, match="other meters, or says what can't be"):
            open_hosts([host("node0", server)], 0)
