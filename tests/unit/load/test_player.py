"""The player and its connections in virtual time: when requests go out, over what, until when."""

import asyncio
import gc
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from tests.support.scripted import END, HEAD, Do, Handler, Script, ScriptedServer, chunk, event
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load import player
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.shape import Shape
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
    assert {seen.connection for seen in load.server.seen[:2]} == {0, 1}
    assert len({seen.connection for seen in load.server.seen}) == 3


class Slow:
    """Connections take a while to open; counts the tries, and fails them where it shall."""

    def __init__(self, load: Load, takes_s: float, *, fails: bool = False) -> None:
        self.load, self.takes_s, self.fails = load, takes_s, fails
        self.tries = 0

    async def connect(self, factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        self.tries += 1
        await asyncio.sleep(self.takes_s)
        if self.fails:
            raise ConnectionRefusedError(111, "Connection refused")
        return await self.load.memory.connect(factory)


def test_no_request_waits_for_its_connection() -> None:
    load = Load(arrivals=[0.0, 0.0, 0.0, 0.001, 0.4, 7.0, 7.1, 7.2, 7.25])
    load.connector = Slow(load, 0.14)
    played = load.run()
    assert [trace.t_send_s for trace in played.traces] == pytest.approx(
        [trace.t_sched_s for trace in played.traces]
    )
    assert load.memory.opened == 5


def test_a_server_that_is_down_gets_one_connection_a_request() -> None:
    load = Load(arrivals=[0.1 * i for i in range(100)])
    load.connector = slow = Slow(load, 0.01, fails=True)
    assert outcomes(load.run()) == ["connect"] * 100
    assert slow.tries <= 100 + 3


def test_a_server_that_keeps_no_unused_connection_is_left_alone() -> None:
    class Hasty(ScriptedServer):
        def __call__(self) -> Any:
            handler = super().__call__()
            asyncio.get_running_loop().call_later(0.02, self.close_unused, handler)
            return handler

        def close_unused(self, handler: Handler) -> None:
            if self.connections.index(handler) not in {seen.connection for seen in self.seen}:
                handler.transport.close()

    load = Load(arrivals=[1.0 * i for i in range(20)])
    load.server = Hasty(load.script)
    load.memory = MemoryConnector(load.server)
    assert outcomes(load.run()) == ["ok"] * 20
    assert load.memory.opened <= 2 * 20


def test_no_more_connections_are_opened_ahead_than_requests_may_fly() -> None:
    load = Load(arrivals=[0.0] * 50, target={"max_concurrency": 5})
    load.run()
    assert load.memory.opened == 5


def test_a_connection_that_was_open_for_long_is_not_trusted() -> None:
    """Its server may have given it up: the request goes out again."""

    def script(number: int, body: dict[str, Any]) -> Script:
        return [(0, Do.RESET)] if number == 1 else answer(body["max_tokens"], ttft_s=0.01)

    load = Load(arrivals=[0.0, 0.0, 0.1, 5.0], script=script)
    assert outcomes(load.run()) == ["ok", "reset", "ok", "ok"]
    waiting = Load(
        arrivals=[0.0, 0.14, 5.0, 5.1],  # the second finds the first's connection
        script=lambda number, body: (
            [(0, Do.RESET)]
            if number == 3
            else answer(body["max_tokens"], ttft_s=0.01, gap_s=0.0 if number == 0 else 0.05)
        ),
    )
    assert outcomes(waiting.run()) == ["ok"] * 4
    assert waiting.server.seen[3].connection in {0, 1}
    assert len(waiting.server.seen) == 5


def takes(seconds: float) -> None:
    """What a computation does to the clock."""
    loop: Any = asyncio.get_running_loop()
    loop._times.now_s += seconds


def test_hundreds_at_once_go_out_at_once() -> None:
    load = Load(arrivals=[0.0] * 200, injected=200)
    write = load.prompt

    def slowly(index: int) -> list[int]:
        takes(0.001)
        return write(index)

    load.prompt = slowly  # type: ignore[method-assign]
    played = load.run()
    assert {trace.t_send_s for trace in played.traces} == {played.t0_s}
    assert load.memory.opened == 200
    assert played.loop_stall_max_s < 0.005


def test_requests_written_too_late_hold_up_no_token() -> None:
    load = Load(arrivals=[0.0] * 300)
    write = load.prompt

    def slowly(index: int) -> list[int]:
        takes(0.005)
        return write(index)

    load.prompt = slowly  # type: ignore[method-assign]
    played = load.run()
    assert played.traces[-1].t_send_s == pytest.approx(played.t0_s + 300 * 0.005 - 1, abs=0.1)
    assert played.loop_stall_max_s < 0.012


def test_what_is_overdue_goes_out_in_one_turn() -> None:
    def stop(_: list[RequestTrace], now_s: float) -> bool:
        if 1002 < now_s < 1002.11:
            takes(0.3)
        return False

    load = Load(arrivals=[0.01 * i for i in range(150)], stop=stop)
    played = load.run()
    late = [trace for trace in played.traces if (trace.t_send_s or 0) > trace.t_sched_s + 0.001]
    assert 25 <= len(late) <= 31
    assert len({trace.t_send_s for trace in late}) == 1


def test_what_is_written_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    load = Load(arrivals=[0.001 * i for i in range(100)] + [60.0])

    def stop(_: list[RequestTrace], now_s: float) -> bool:
        seen.append(len(load.prompted))
        return now_s > 1060

    load.stop = stop
    monkeypatch.setattr(player, "_AHEAD_BYTES", 2000)
    load.run()
    assert 5 < seen[0] < 20
    assert seen[20] == 101  # always the next one


def test_a_shape_that_misleads_is_found_by_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were every read taken for a token, the chunk that ends an answer would be one of them."""
    monkeypatch.setattr(Shape, "fits", lambda *_: True)
    played = Load(script=lambda *_: answer(65)).run()
    assert set(played.messages) == {"misread", "long"}
    assert len(played.traces[0].events_s) == 65


def test_the_collector_of_garbage_is_as_it_was() -> None:
    before = gc.get_threshold()
    during: list[int] = []

    def stop(*_: Any) -> bool:
        during.append(gc.get_threshold()[2])
        return False

    Load(stop=stop).run()
    assert gc.get_threshold() == before
    assert min(during) > 10**6


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

    load = Load(arrivals=[0.0, 0.5], script=script)
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
