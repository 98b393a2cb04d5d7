"""The client over real sockets on 127.0.0.1, on both event loops."""

import asyncio
import gc
import socket
import ssl
import weakref
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.scripted import END, HEAD, Do, Script, ScriptedServer, chunk, event
from tests.unit.load.conftest import Certificates
from tokenwatt_site.load import connection
from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.connection import Connection, Pool
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.loop import new_loop
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_loop])
TOKEN = event({"choices": [{"index": 0, "text": "é", "finish_reason": None}]})
LAST = event({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})
USAGE = event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 3}})
WHOLE: Script = [
    (0, HEAD + chunk(TOKEN)),
    (0.01, chunk(TOKEN)),
    (0.02, chunk(TOKEN, LAST, USAGE) + END),
]


def load(
    server: ScriptedServer,
    loop: Callable[[], asyncio.AbstractEventLoop],
    arrivals: list[float],
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    **target: Any,
) -> Played:
    """Play three-token requests against a server of scripts that listens on a free port."""

    async def main() -> Played:
        running = asyncio.get_running_loop()
        place = host.strip("[]") if ":" in host else "127.0.0.1"
        listener = await running.create_server(server, place, 0, ssl=tls)
        port = listener.sockets[0].getsockname()[1]
        n = len(arrivals)
        schedule = Schedule(array("d", arrivals), array("q", [1] * n), array("q", [3] * n), 0, 1.0)
        aim = Target(f"http{'s' if tls else ''}://{host}:{port}/v1", "completions", "m", **target)
        clock = RealClock()
        async with listener:
            return await play(
                aim,
                schedule,
                lambda index: [index],
                clock,
                TcpConnector(aim),
                lambda *_: False,
                clock.now() + 0.02,
            )

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main())


def outcomes(played: Played) -> list[str]:
    return [trace.reason or trace.outcome for trace in played.traces]


def setting(event: asyncio.Event) -> Callable[[Stream], None]:
    return lambda _: event.set()


def in_turn(
    server: ScriptedServer,
    loop: Callable[[], asyncio.AbstractEventLoop],
    *,
    requests: int,
    until_lost: bool = False,
) -> list[str]:
    """Send each request when the one before has ended; return their outcomes.

    ``until_lost`` also waits until the server's end of the connection is seen.
    """

    async def main() -> list[str]:
        running = asyncio.get_running_loop()
        listener = await running.create_server(server, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        aim = Target(f"http://127.0.0.1:{port}/v1", "completions", "m")
        pool = Pool(TcpConnector(aim), RealClock(), 10)
        found = []
        async with listener:
            for index in range(requests):
                trace = RequestTrace(index, 0.0, 1, 3)
                body, ended = aim.body([1], 3), asyncio.Event()
                request = b"%b%d\r\n\r\n%b" % (aim.head(), len(body), body)
                spoken = dialect("completions")
                pool.send(Stream(trace, request, spoken, aim.asked, setting(ended)))
                await ended.wait()
                while until_lost and pool.connections:  # noqa: ASYNC110 - it sets no event
                    await asyncio.sleep(0.001)
                found.append(trace.reason or trace.outcome)
            await pool.close()
        return found

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main())


@LOOPS
def test_requests_keep_their_connection(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    server = ScriptedServer(lambda *_: WHOLE)
    assert in_turn(server, loop, requests=3) == ["ok"] * 3
    assert [seen.connection for seen in server.seen] == [0, 0, 0]


@LOOPS
def test_an_idle_connection_that_the_server_drops_costs_no_request(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    server = ScriptedServer(lambda *_: [*WHOLE, (0.03, Do.HANG_UP)])
    assert in_turn(server, loop, requests=2, until_lost=True) == ["ok", "ok"]
    assert [seen.connection for seen in server.seen] == [0, 1]


@LOOPS
def test_a_lost_connection_is_gone_without_the_garbage_collector(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a load plays it takes no full rounds, and a server may close every connection."""
    made: list[weakref.ref[Connection]] = []

    class Noted(Connection):
        def __init__(self, pool: Pool) -> None:
            super().__init__(pool)
            made.append(weakref.ref(self))

    monkeypatch.setattr(connection, "Connection", Noted)
    server = ScriptedServer(lambda *_: [*WHOLE, (0.03, Do.HANG_UP)])
    gc.disable()
    try:
        in_turn(server, loop, requests=2, until_lost=True)
        assert [each() for each in made] == [None, None]
    finally:
        gc.enable()


@LOOPS
def test_stamps_lie_between_sending_and_the_end(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    (trace,) = load(ScriptedServer(lambda *_: WHOLE), loop, [0.0]).traces
    assert trace.t_send_s is not None
    assert trace.t_end_s is not None
    stamps = [trace.t_sched_s, trace.t_send_s, *trace.events_s, trace.t_end_s]
    assert stamps == sorted(stamps)
    assert len(trace.events_s) == 3


@LOOPS
def test_a_reset_is_a_reset(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    script: Script = [(0, HEAD + chunk(TOKEN)), (0.05, Do.RESET)]
    played = load(ScriptedServer(lambda *_: script), loop, [0.0])
    assert outcomes(played) == ["reset"]
    assert len(played.traces[0].events_s) == 1


@LOOPS
def test_an_early_end_is_a_truncation(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    script: Script = [(0, HEAD + chunk(TOKEN)), (0.05, Do.HANG_UP)]
    assert outcomes(load(ScriptedServer(lambda *_: script), loop, [0.0])) == ["truncated"]


@LOOPS
def test_a_silent_server_times_out(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    played = load(ScriptedServer(lambda *_: []), loop, [0.0], timeout_s=0.1)
    assert outcomes(played) == ["timeout"]


@LOOPS
def test_a_server_slower_than_every_timeout_fails_each_request_in_its_time(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """No token for one, no end for the other."""
    scripts: list[Script] = [[], [(0, HEAD + chunk(TOKEN)), *((9 * i, TOKEN) for i in (1, 2))]]
    server = ScriptedServer(lambda number, _: scripts[number])
    played = load(server, loop, [0.0, 0.01], timeout_s=0.2)
    assert outcomes(played) == ["timeout", "timeout"]
    took_s = [(t.t_end_s or 0) - (t.t_send_s or 0) for t in played.traces]
    assert min(took_s) > 0.19  # a loop's timers count in milliseconds


@LOOPS
def test_an_ipv6_endpoint(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return  # this machine has no IPv6, not even to itself
    server = ScriptedServer(lambda *_: WHOLE)
    played = load(server, loop, [0.0], host="[::1]")
    assert outcomes(played) == ["ok"]
    assert server.connections[0].headers["host"].startswith("[::1]:")


@LOOPS
def test_a_dead_port_fails_each_request_with_its_words(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    aim = Target("http://127.0.0.1:9/v1", "completions", "m")
    schedule = Schedule(array("d", [0.0]), array("q", [1]), array("q", [3]), 0, 1.0)

    async def main() -> Played:
        clock = RealClock()
        never = TcpConnector(aim)
        return await play(aim, schedule, lambda _: [1], clock, never, lambda *_: False, clock.now())

    with asyncio.Runner(loop_factory=loop) as runner:
        played = runner.run(main())
    assert outcomes(played) == ["connect"]
    assert "refused" in played.messages["connect"].lower()


@LOOPS
def test_a_long_prompt_and_a_long_read_pass(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """More than a socket's buffers hold in either direction."""
    tokens = b"".join([TOKEN] * 5000) + LAST
    many = event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 3}})
    server = ScriptedServer(lambda *_: [(0, HEAD + chunk(tokens, many) + END)])
    padding = {"pad": "x" * 3_000_000}
    (trace,) = load(server, loop, [0.0], extra_body=padding).traces
    assert server.seen[0].body["pad"] == padding["pad"]
    assert len(trace.events_s) == 5000


@LOOPS
def test_tls_is_verified(
    loop: Callable[[], asyncio.AbstractEventLoop],
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    server = ScriptedServer(lambda *_: WHOLE)
    refused = load(server, loop, [0.0], tls=context, host="localhost")
    assert outcomes(refused) == ["connect"]
    assert "CERTIFICATE_VERIFY_FAILED" in refused.messages["connect"]
    known = {"ca_file": str(certificates.authority)}
    assert outcomes(load(server, loop, [0.0], tls=context, host="localhost", **known)) == ["ok"]
    wrong_name = load(server, loop, [0.0], tls=context, host="127.0.0.1", **known)
    assert outcomes(wrong_name) == ["connect"]
    assert "mismatch" in wrong_name.messages["connect"]
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    assert outcomes(load(server, loop, [0.0], tls=context, host="localhost")) == ["ok"]
