"""The player and its connections in virtual time: when requests go out, over what, until when."""

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from tests.support.scripted import END, HEAD, Do, Script, ScriptedServer, chunk, event
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.workloads import Fixed, Workload

REFUSED = b"HTTP/1.1 503 Busy\r\nContent-Length: 33\r\n\r\n"


def answer(n: int, *, ttft_s: float = 0.2, gap_s: float = 0.05) -> Script:
    """Return n tokens and a usage."""
    tokens = [
        event({"choices": [{"index": 0, "text": "x", "finish_reason": "length" if last else None}]})
        for last in [False] * (n - 1) + [True]
    ]
    steps: list[tuple[float, bytes | Do]] = [(0, HEAD)]
    steps += [(ttft_s + gap_s * i, chunk(token)) for i, token in enumerate(tokens)]
    usage = event({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": n}})
    return [*steps, (steps[-1][0], chunk(usage, event("[DONE]")) + END)]


@dataclass
class Load:
    """A load to play, and what it is played with."""

    arrivals: Sequence[float] = (0.0,)
    script: Callable[[int, dict[str, Any]], Script] = lambda _, body: answer(body["max_tokens"])
    stop: Callable[[list[RequestTrace], float], bool] = lambda *_: False
    connector: Connector | None = None
    target: dict[str, Any] = field(default_factory=dict[str, Any])
    injected: int = 0
    prompted: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.server = ScriptedServer(self.script)
        self.memory = MemoryConnector(self.server)

    def prompt(self, index: int) -> list[int]:
        self.prompted.append(index)
        return [index] * 4

    async def play(self) -> Played:
        clock = VirtualClock()
        n = len(self.arrivals)
        schedule = Schedule(
            array("d", self.arrivals), array("q", [4] * n), array("q", [8] * n), 0, 1, self.injected
        )
        return await play(
            Target("http://server/v1", "completions", "m", **self.target),
            schedule,
            self.prompt,
            clock,
            self.connector or self.memory,
            self.stop,
            clock.now() + 1.0,
        )

    def run(self) -> Played:
        return run_virtual(self.play())


def outcomes(played: Played) -> list[str]:
    return [trace.reason or trace.outcome for trace in played.traces]


def test_requests_go_out_at_their_absolute_times() -> None:
    load = Load(arrivals=[0.0, 0.001, 0.5, 0.5, 7.25])
    played = load.run()
    assert played.t0_s == pytest.approx(1001.0)
    sent = [trace.t_send_s for trace in played.traces]
    assert sent == pytest.approx([1001.0, 1001.001, 1001.5, 1001.5, 1008.25])
    assert [seen.t_s for seen in load.server.seen] == pytest.approx(sent)
    assert [seen.body["prompt"] for seen in load.server.seen] == [[i] * 4 for i in range(5)]


def test_the_first_requests_are_marked_as_injected() -> None:
    played = Load(arrivals=[0.0, 0.0, 0.5], injected=2).run()
    assert [trace.injected for trace in played.traces] == [True, True, False]


def test_a_poisson_load_has_exact_latencies() -> None:
    workload = Workload("w", Fixed(4), Fixed(8))
    schedule = poisson_schedule(workload, 40, 30, 7)
    load = Load(arrivals=list(schedule.arrival_s))
    played = load.run()
    assert len(played.traces) == len(schedule) > 1000
    assert {*outcomes(played)} == {"ok"}
    for trace in played.traces:
        assert trace.events_s[0] - trace.t_sched_s == pytest.approx(0.2, abs=1e-6)
        assert (trace.events_s[-1] - trace.events_s[0]) / 7 == pytest.approx(0.05, abs=1e-6)


def test_prompts_are_asked_for_once_in_order() -> None:
    load = Load(arrivals=[0.01 * i for i in range(40)])
    load.run()
    assert load.prompted == list(range(40))


def test_answers_wait_for_nobody() -> None:
    """An open loop: a server that never answers gets every request in time."""
    load = Load(
        arrivals=[0.1 * i for i in range(50)], script=lambda *_: [], target={"timeout_s": 60}
    )
    played = load.run()
    assert [seen.t_s for seen in load.server.seen] == pytest.approx(
        [1001 + 0.1 * i for i in range(50)]
    )
    assert outcomes(played) == ["timeout"] * 50


def test_idle_connections_are_used_again() -> None:
    load = Load(arrivals=[0.0, 0.1, 2.0, 2.1, 2.2, 9.0])
    load.run()
    assert load.memory.opened == 3
    assert [seen.connection for seen in load.server.seen[:2]] == [0, 1]
    assert len({seen.connection for seen in load.server.seen}) == 3


def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    def closing(_: int, body: dict[str, Any]) -> Script:
        head = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        return [(0, head), *answer(body["max_tokens"])[1:]]

    load = Load(arrivals=[0.0, 2.0, 4.0], script=closing)
    assert outcomes(load.run()) == ["ok"] * 3
    assert load.memory.opened == 3


def test_a_request_on_a_connection_that_was_just_closed_goes_out_again() -> None:
    """A server may close an idle connection at the very moment of a request: that is no failure."""

    def script(number: int, body: dict[str, Any]) -> Script:
        return [(0, Do.RESET)] if number == 1 else answer(body["max_tokens"])

    load = Load(arrivals=[0.0, 2.0], script=script)
    played = load.run()
    assert outcomes(played) == ["ok", "ok"]
    assert played.traces[1].t_send_s == pytest.approx(1003.0)
    assert [seen.connection for seen in load.server.seen] == [0, 0, 1]


def test_a_new_connection_that_is_reset_is_a_failure() -> None:
    load = Load(script=lambda *_: [(0, Do.RESET)])
    assert outcomes(load.run()) == ["reset"]
    assert load.memory.opened == 1


def test_a_request_is_sent_again_only_while_nothing_has_come() -> None:
    def script(number: int, body: dict[str, Any]) -> Script:
        return [(0, HEAD), (0.1, Do.RESET)] if number else answer(body["max_tokens"])

    load = Load(arrivals=[0.0, 2.0], script=script)
    assert outcomes(load.run()) == ["ok", "reset"]
    assert len(load.server.seen) == 2


def test_an_unasked_answer_on_an_idle_connection_gives_it_up() -> None:
    late = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    load = Load(
        arrivals=[0.0, 5.0],
        script=lambda _, body: [*answer(body["max_tokens"]), (3.0, late)],
    )
    assert outcomes(load.run()) == ["ok", "ok"]
    assert load.memory.opened == 2


def test_bytes_after_an_answer_give_the_connection_up() -> None:
    def script(_: int, body: dict[str, Any]) -> Script:
        steps = answer(body["max_tokens"])
        last = steps[-1][1]
        assert isinstance(last, bytes)
        return [*steps[:-1], (steps[-1][0], last + b"HTTP/1.1 200 OK\r\nX-More")]

    load = Load(arrivals=[0.0, 2.0], script=script)
    assert outcomes(load.run()) == ["ok", "ok"]
    assert load.memory.opened == 2


def test_a_connection_closed_as_soon_as_it_is_open_is_a_failure() -> None:
    class Shut:
        async def connect(self, factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
            transport = await load.memory.connect(factory)
            transport.close()
            return transport

    load = Load()
    load.connector = Shut()
    played = load.run()
    assert outcomes(played) == ["reset"]
    assert played.messages == {"reset": "closed as soon as it was open"}


def test_a_fault_of_the_client_is_not_put_down_to_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    faults: list[BaseException] = []

    async def watched() -> Played:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
        return await load.play()

    monkeypatch.setattr(Stream, "head", broken)
    load = Load(target={"timeout_s": 5})
    played = run_virtual(watched())
    assert outcomes(played) == ["timeout"]
    assert isinstance(faults[0].__context__, ZeroDivisionError)


def test_the_limit_on_concurrency_fails_requests_instead_of_delaying_them() -> None:
    load = Load(
        arrivals=[0.0, 0.01, 0.02, 0.03, 2.0],
        target={"max_concurrency": 2},
    )
    played = load.run()
    assert outcomes(played) == ["ok", "ok", "client_limit", "client_limit", "ok"]
    limited = played.traces[2]
    assert (limited.t_send_s, limited.status, limited.n_output) == (None, None, None)
    assert limited.t_end_s == pytest.approx(1001.02)


def test_a_refused_connection_is_a_failure_with_its_words() -> None:
    class Dead:
        async def connect(self, _: Any) -> asyncio.Transport:
            raise ConnectionRefusedError(111, "Connection refused")

    played = Load(connector=Dead()).run()
    assert outcomes(played) == ["connect"]
    assert played.messages == {"connect": "ConnectionRefusedError: [Errno 111] Connection refused"}
    assert played.traces[0].t_send_s is None


def test_a_connection_that_never_opens_is_given_up_after_the_timeout() -> None:
    class Silent:
        async def connect(self, _: Any) -> asyncio.Transport:
            await asyncio.sleep(1e6)
            raise AssertionError

    played = Load(connector=Silent(), target={"timeout_s": 5}).run()
    assert outcomes(played) == ["connect"]
    assert played.t_end_s == pytest.approx(1006.0)


def test_stop_cuts_off_what_is_in_flight_and_leaves_it_undecided() -> None:
    load = Load(
        arrivals=[0.0, 1.9, 5.0],
        script=lambda _, body: answer(body["max_tokens"], gap_s=0.1),
        stop=lambda _, now_s: now_s >= 1003.2,
    )
    played = load.run()
    assert outcomes(played) == ["ok", "running"]
    assert played.t_end_s == pytest.approx(1003.2, abs=0.1)
    cut = played.traces[1]
    assert cut.t_end_s == played.t_end_s
    assert 0 < len(cut.events_s) < 8
    assert all(handler.lost for handler in load.server.connections)


def test_stop_gives_up_connections_that_are_still_opening() -> None:
    class Silent:
        async def connect(self, _: Any) -> asyncio.Transport:
            await asyncio.sleep(1e6)
            raise AssertionError

    load = Load(arrivals=[0.0, 9.0], connector=Silent(), stop=lambda _, now_s: now_s > 1002)
    played = load.run()
    assert outcomes(played) == ["running"]
    assert played.t_end_s == pytest.approx(1002, abs=0.2)


def test_stop_is_asked_ten_times_a_second_with_the_traces_so_far() -> None:
    asked: list[tuple[int, float]] = []

    def stop(traces: list[RequestTrace], now_s: float) -> bool:
        asked.append((len(traces), now_s))
        return now_s > 1002.95

    Load(arrivals=[0.0, 0.5, 1.5, 100.0], stop=stop).run()
    gaps = [after - before for (_, before), (_, after) in pairwise(asked)]
    assert gaps == pytest.approx([0.1] * len(gaps))
    assert asked[0][0] == 0
    assert asked[-1][0] == 3


def test_an_error_in_stop_or_a_prompt_comes_out() -> None:
    def broken(*_: Any) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Load(arrivals=[0.0, 100.0], stop=broken).run()
    load = Load(arrivals=[0.0, 100.0])
    load.prompt = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(ZeroDivisionError):
        load.run()


def test_an_interrupted_load_closes_its_connections() -> None:
    load = Load(arrivals=[0.0, 100.0], script=lambda *_: [])

    async def interrupted() -> None:
        playing = asyncio.create_task(load.play())
        await asyncio.sleep(3)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    run_virtual(interrupted())
    assert all(handler.lost for handler in load.server.connections)


def test_a_refusal_keeps_the_first_words_of_each_reason() -> None:
    def script(number: int, _: dict[str, Any]) -> Script:
        return [(0, REFUSED + b'{"error": {"message": "queue %d"}}' % number)]

    load = Load(arrivals=[0.0, 0.1], script=script)
    played = load.run()
    assert outcomes(played) == ["http_503", "http_503"]
    assert played.messages == {"http_503": "queue 0"}
    assert load.memory.opened == 1


def test_the_key_goes_to_the_server_and_into_no_message() -> None:
    words = b'{"error": {"message": "bad sesame"}}'
    head = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(words)
    load = Load(
        script=lambda *_: [(0, head + words)],
        target={"headers": {"Authorization": "Bearer sesame"}},
    )
    played = load.run()
    assert load.server.connections[0].headers["authorization"] == "Bearer sesame"
    assert played.messages == {"http_400": "bad …"}


def test_a_line_without_end_ends_the_request() -> None:
    load = Load(script=lambda *_: [(0, HEAD), *[(0.1 * i, chunk(b"x" * 2**20)) for i in range(20)]])
    played = load.run()
    assert outcomes(played) == ["malformed"]
    assert load.server.connections[0].lost


def test_an_empty_schedule_is_over_at_once() -> None:
    played = Load(arrivals=[]).run()
    assert (played.traces, played.messages) == ([], {})


def test_a_loop_that_is_held_up_shows() -> None:
    def slow_stop(_: list[RequestTrace], now_s: float) -> bool:
        loop: Any = asyncio.get_running_loop()
        loop._times.now_s += 0.25  # what a slow computation does to the real clock
        return now_s > 1003

    assert Load(arrivals=[0.0], stop=slow_stop).run().loop_stall_max_s == pytest.approx(0.25)
    assert Load(arrivals=[0.0]).run().loop_stall_max_s == pytest.approx(0.0, abs=1e-9)
