"""A load over worker processes: the same load as one process sends, and nothing lost on the way."""

import asyncio
import errno
import os
import signal
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hostile import spoil
from tests.support.scripted import END, HEAD, Script, ScriptedServer, chunk, event
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.loop import new_loop
from tokenwatt_site.load.player import Played
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.target import Target
from tokenwatt_site.load.worker_wire import CHUNK, Changes, Mirror
from tokenwatt_site.load.workers import expected_events_s, staged, workers_for
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.workloads import Fixed, Lognormal, Workload

WORKLOAD = Workload("w", Lognormal(4, 8, 32), Lognormal(3, 6, 24))
EIGHT = Schedule(
    array("d", [i / 10 for i in range(8)]), array("q", [4] * 8), array("q", [8] * 8), 0, 10
)
TOKEN = event({"choices": [{"index": 0, "text": "x", "finish_reason": None}]})
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 30\r\n\r\n" + b'{"error": {"message": "busy"}}'


def answer(n: int) -> Script:
    """Return n tokens, each with the count so far."""
    payloads = [
        {
            "choices": [{"index": 0, "text": "x", "finish_reason": "length" if i == n else None}],
            "usage": {"prompt_tokens": 4, "completion_tokens": i},
        }
        for i in range(1, n + 1)
    ]
    return [(0, HEAD + chunk(*map(event, payloads), event("[DONE]")) + END)]


@dataclass
class Load:
    """A load that is played against a server of scripts in this process."""

    schedule: Schedule
    stop: Callable[[list[RequestTrace], float], bool] = lambda *_: False
    script: Callable[[int, dict[str, Any]], Script] = lambda _, body: answer(body["max_tokens"])
    target: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.server = ScriptedServer(self.script)
        self.prompts = PromptMaker(seed=0, vocab_size=32_000)
        self.prompts.begin(0, self.schedule.input_tokens)

    async def play(self, workers: int) -> Played:
        listener = await asyncio.get_running_loop().create_server(self.server, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        target = Target(f"http://127.0.0.1:{port}/v1", "completions", "m", **self.target)
        clock = RealClock()
        async with (
            listener,
            staged(
                target, self.schedule, self.prompts.prompt, clock, TcpConnector(target), workers
            ) as playing,
        ):
            return await playing(self.stop, clock.now() + 0.2)

    def run(self, workers: int) -> Played:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(self.play(workers))


def poisson(rate_rps: float = 150, horizon_s: float = 0.8) -> Schedule:
    return poisson_schedule(WORKLOAD, rate_rps, horizon_s, 7)


def test_the_load_is_the_same_for_any_number_of_workers() -> None:
    schedule = poisson()
    sent, traced = [], []
    for workers in (1, 2, 3):
        load = Load(schedule)
        played = load.run(workers)
        seen = load.server.seen
        sent.append(
            sorted((request.body["prompt"], request.body["max_tokens"]) for request in seen)
        )
        traced.append([facts(trace, played.t0_s) for trace in played.traces])
        assert {trace.outcome for trace in played.traces} == {"ok"}
        assert all(t.t_send_s is not None and t.t_send_s >= t.t_sched_s for t in played.traces)
        assert played.t_end_s >= max(t.t_end_s or 0 for t in played.traces)
        assert played.cpu_s > 0
        assert len(load.server.connections) < len(seen)
    assert len(schedule) == len(sent[0]) == len(traced[0]) > 80
    assert sent[0] == sent[1] == sent[2]
    assert traced[0] == traced[1] == traced[2]
    tokens = sum(len(trace.events_s) for trace in played.traces)
    assert tokens == sum(schedule.output_tokens) == sum(t.n_output or 0 for t in played.traces)


def test_stop_cuts_every_worker_off_and_sees_the_requests_in_order() -> None:
    looks: list[list[int]] = []

    def stop(traces: list[RequestTrace], _: float) -> bool:
        looks.append([trace.index for trace in traces])
        return sum(len(trace.events_s) for trace in traces) >= 40

    load = Load(
        poisson(horizon_s=60),
        stop,
        lambda *_: [(0, HEAD), *[(0.01 * i, chunk(TOKEN)) for i in range(1000)]],
    )
    played = load.run(2)
    assert all(look == list(range(len(look))) for look in looks)
    assert {trace.outcome for trace in played.traces} == {"running"}
    assert all(trace.t_end_s is not None for trace in played.traces)
    assert sum(len(trace.events_s) for trace in played.traces) >= 40
    sent = [trace for trace in played.traces if trace.t_send_s is not None]
    assert len(sent) == len(load.server.seen) < len(load.schedule)
    assert [trace.index for trace in played.traces] == list(range(len(played.traces)))


def test_messages_and_the_limit_on_concurrency_come_from_all_workers() -> None:
    """Three may be in flight: two of the first worker's, one of the second's."""
    schedule = Schedule(array("d", [0.0] * 6), array("q", [4] * 6), array("q", [8] * 6), 0, 1)
    load = Load(schedule, script=lambda *_: [(0.3, BUSY)], target={"max_concurrency": 3})
    played = load.run(2)
    assert sorted(t.reason for t in played.traces) == ["client_limit"] * 3 + ["http_503"] * 3
    assert played.messages["http_503"] == "busy"


def test_a_worker_that_dies_is_an_error_and_the_others_end() -> None:
    killed: list[int] = []

    def stop(traces: list[RequestTrace], _: float) -> bool:
        if traces and not killed:
            killed.append(min(workers_of_this_process()))
            os.kill(killed[0], signal.SIGKILL)
        return False

    with pytest.raises(TokenwattError, match=r"load worker . of 2 was ended by signal 9") as lost:
        Load(poisson(horizon_s=60), stop).run(2)
    assert "memory" in lost.value.hint
    assert workers_of_this_process() == {}


def test_a_worker_that_fails_says_why() -> None:
    load = Load(poisson())
    load.prompts.begin(0, [1])  # there is no second prompt
    with pytest.raises(TokenwattError, match=r"load worker . of 2 IndexError"):
        load.run(2)
    assert workers_of_this_process() == {}


def test_a_worker_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", full)
    with pytest.raises(TokenwattError, match=r"load worker 1 of 2 can't be started: Resource"):
        Load(poisson()).run(2)


def test_a_worker_runs_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(tmp_path, "httptools", "struct", "uvloop")
    monkeypatch.chdir(tmp_path)
    played = Load(poisson(50)).run(2)
    assert {trace.outcome for trace in played.traces} == {"ok"}
    assert not (tmp_path / "ran").exists()


def test_an_error_of_stop_comes_out_and_ends_the_workers() -> None:
    def broken(*_: Any) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Load(poisson(horizon_s=60), broken).run(2)
    assert workers_of_this_process() == {}


def test_an_interrupted_load_ends_its_workers_and_their_key_is_in_no_argument() -> None:
    load = Load(
        poisson(horizon_s=60),
        script=lambda *_: [],
        target={"headers": {"Authorization": "Bearer sesame"}},
    )

    async def interrupted() -> None:
        playing = asyncio.create_task(load.play(2))
        while len(load.server.seen) < 2:  # noqa: ASYNC110 - the server sets no event
            await asyncio.sleep(0.01)
        found = workers_of_this_process()
        assert len(found) == 2
        assert not any(b"sesame" in about for about in found.values())
        used = load.server.connections[load.server.seen[0].connection]
        assert used.headers["authorization"] == "Bearer sesame"
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(interrupted())
    assert workers_of_this_process() == {}


def test_workers_are_for_loads_above_the_limit_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)})
    workload = Workload("w", Fixed(4), Fixed(500))
    rates = {49: 1, 51: 2, 101: 3, 1000: 8}
    for rate_rps, workers in rates.items():
        schedule = poisson_schedule(workload, rate_rps, 10, 0)
        assert expected_events_s(schedule) == 500 * rate_rps
        assert workers_for(schedule) == workers
    injected = replace(schedule, injected=len(schedule))
    assert (expected_events_s(injected), workers_for(injected)) == (0, 1)


def test_a_stripe_is_every_nth_request() -> None:
    schedule = replace(poisson(), injected=5)
    stripes = [schedule.stripe(i, 3) for i in range(3)]
    assert sum(map(len, stripes)) == len(schedule)
    assert [stripe.injected for stripe in stripes] == [2, 2, 1]
    for i, stripe in enumerate(stripes):
        assert list(stripe.arrival_s) == list(schedule.arrival_s[i::3])
        assert list(stripe.output_tokens) == list(schedule.output_tokens[i::3])


@settings(max_examples=50)
@given(st.data())
def test_a_mirror_shows_what_the_workers_have(data: st.DataObject) -> None:
    """Requests begin, stream, forget their tokens and end in any order, told at any time."""
    of, ours, mirror = 2, ([], []), Mirror(EIGHT)
    changes = [Changes(number, of) for number in range(of)]
    for _ in range(data.draw(st.integers(0, 30))):
        number = data.draw(st.integers(0, of - 1))
        traces: list[RequestTrace] = ours[number]
        change(data, traces)
        if data.draw(st.booleans()):
            for rows in changes[number].chunks(traces):
                mirror.take(rows)
    for number in range(of):
        for rows in changes[number].chunks(ours[number]):
            mirror.take(rows)
    whole = sorted(
        (replace(t, index=number + of * t.index) for number in range(of) for t in ours[number]),
        key=lambda t: t.index,
    )
    closed = mirror.close(0.0, 9.0)
    unsent = [trace for trace in closed if trace not in whole]
    assert [trace for trace in closed if trace in whole] == whole
    assert [trace.index for trace in closed] == list(range(len(closed)))
    assert {(t.t_send_s, t.outcome, t.t_end_s) for t in unsent} <= {(None, "running", 9.0)}
    assert mirror.traces == whole[: len(mirror.traces)]
    assert len(mirror.traces) >= of * min(map(len, ours))


def test_a_request_that_its_worker_was_cut_off_from_is_unsent() -> None:
    mirror = Mirror(replace(EIGHT, injected=1))
    changes = Changes(1, 2)
    for rows in changes.chunks([RequestTrace(0, 5.1, 4, 8), RequestTrace(1, 5.3, 4, 8)]):
        mirror.take(rows)
    closed = mirror.close(5.0, 6.0)
    assert [trace.index for trace in closed] == [0, 1, 2, 3]
    assert closed[0] == RequestTrace(0, 5.0, 4, 8, injected=True, t_end_s=6.0)
    assert closed[2] == RequestTrace(2, 5.2, 4, 8, t_end_s=6.0)
    assert mirror.traces == []


def test_rows_come_in_small_lots() -> None:
    traces = [RequestTrace(i, 0.0, 1, 1) for i in range(3 * CHUNK + 1)]
    changes = Changes(0, 1)
    assert [len(rows) for rows in changes.chunks(traces)] == [CHUNK, CHUNK, CHUNK, 1]
    assert list(changes.chunks(traces)) == [[]]
    traces[5].events_s.append(1.0)
    ((row,),) = changes.chunks(traces)
    assert row == (5, None, array("d", [1.0]).tobytes(), None)


def change(data: st.DataObject, traces: list[RequestTrace]) -> None:
    """Do one thing that happens to a worker's traces."""
    running = [trace for trace in traces if trace.t_end_s is None]
    what = data.draw(st.sampled_from(["begin", "token", "untold", "end"]))
    if what == "begin" and len(traces) < 4:
        told = data.draw(st.booleans())
        traces.append(RequestTrace(len(traces), 0.5, 1, 2, event_tokens=[] if told else None))
        return
    if not running:
        return
    trace = data.draw(st.sampled_from(running))
    if what == "token":
        trace.events_s.append(data.draw(st.floats(0, 9)))
        if trace.event_tokens is not None:
            trace.event_tokens.append(len(trace.events_s))
    elif what == "untold":
        trace.event_tokens = None
    elif what == "end":
        trace.outcome, trace.reason, trace.t_end_s = "failed", "reset", 9.0


def facts(trace: RequestTrace, t0_s: float) -> tuple[Any, ...]:
    """Return what a trace says apart from the moments of this run."""
    return (
        (trace.index, round(trace.t_sched_s - t0_s, 6), trace.input_tokens, trace.output_tokens),
        (trace.outcome, trace.reason, trace.status, trace.finish, trace.n_output, trace.n_source),
        (len(trace.events_s), trace.event_tokens, trace.n_first, trace.n_prompt),
    )


def workers_of_this_process() -> dict[int, bytes]:
    """Return arguments and environment of this process's load workers, by their ids."""
    found: dict[int, bytes] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            arguments = (stat.parent / "cmdline").read_bytes()
            environ = (stat.parent / "environ").read_bytes() if parent == os.getpid() else b""
        except OSError:
            continue
        if environ and b"tokenwatt_site.load.worker" in arguments:
            found[int(stat.parent.name)] = arguments + environ
    return found
