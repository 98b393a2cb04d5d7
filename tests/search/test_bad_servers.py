"""Servers that die, storm, hang, and what else goes wrong around a whole measurement.

Each ends in a verdict with its reasons, in a strict document whose every value the evidence gives.
"""

import asyncio
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted import Do, Script, ScriptedServer
from tests.support.virtual_loop import MemoryConnector, run_virtual
from tests.support.virtual_run import Formula, VirtualRun, spec_of
from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.window import WindowRecord
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.measure import exit_code
from tokenwatt_site.session import Session
from tokenwatt_site.store import RunStore
from tokenwatt_site.verify import verify

RATES = spec_of(
    sweep={"rates": [60, 80]}, measurement={"repeats": 1, "request_timeout_s": 2, "idle_s": 0}
)
"""Two windows, from about 0.7 s and from about 5.5 s of the run on, each two seconds long."""


def measured(out: Path, connect: Callable[[], Connector], spec: Spec = RATES) -> Session:
    return run_virtual(VirtualRun(out, spec, connect).measure())


def held(out: Path) -> Run:
    """Return the document: strict JSON, by the schema, and what the evidence says."""
    jsonfile.loads(out.read_bytes(), str(out))
    run, _ = load_run(out)
    result = verify(out)
    assert result.mismatches == []
    assert result.holds()
    for window in windows(run):
        counts = window.counts
        assert counts.sent == counts.ok + counts.failed + counts.unfinished
        assert counts.failed == sum(counts.reasons.values())
    return run


def windows(run: Run) -> list[WindowRecord]:
    config = run.configs[0]
    return sorted([*(config.windows or ()), *(config.sweep or ())], key=lambda each: each.index)


@dataclass(slots=True)
class Mortal:
    """A server that is dead between two moments of the run: resets, then refuses connections."""

    from_s: float
    to_s: float
    connector: MemoryConnector = field(init=False)
    formula: Formula = field(default_factory=Formula)

    def __post_init__(self) -> None:
        self.connector = MemoryConnector(self.formula.server)
        loop = asyncio.get_running_loop()
        self._start_s = loop.time()
        loop.call_at(self._start_s + self.from_s, self.die)

    _start_s: float = 0.0

    def die(self) -> None:
        for connection in self.formula.server.connections:
            if not connection.lost:
                connection.reset()

    async def connect(self, protocol_factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        age_s = asyncio.get_running_loop().time() - self._start_s
        if self.from_s <= age_s < self.to_s:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return await self.connector.connect(protocol_factory)


def test_a_server_that_dies_and_comes_back_in_a_window_fails_that_window(tmp_path: Path) -> None:
    session = measured(tmp_path / "a.json", lambda: Mortal(1.2, 1.7))
    run = held(tmp_path / "a.json")
    first, second = windows(run)
    assert (first.passed, first.valid) == (False, True)
    assert first.counts.reasons.keys() == {"connect", "reset"}
    assert 10 < first.counts.failed < 60
    assert first.counts.ok > 50
    assert second.passed  # it is whole again, and above a rate that failed a pass is luck
    assert run.verdict is not None
    assert run.verdict.word == "failed"
    assert session.done is not None
    assert exit_code(session.done, session.windows) == 4


def answers(script: Callable[[float], Script]) -> Callable[[], Connector]:
    """Return the way to a server that answers by the seconds since it started."""

    def connect() -> Connector:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        server = ScriptedServer(lambda _number, _body: script(loop.time() - start_s))
        return MemoryConnector(server)

    return connect


def status(code: int) -> Script:
    body = b'{"error":{"message":"too many requests"}}'
    head = f"HTTP/1.1 {code} No\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    return [(0.001, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)]


@pytest.mark.parametrize("code", [429, 503])
def test_a_storm_of_refusals_is_misses_and_never_speed(tmp_path: Path, code: int) -> None:
    measured(tmp_path / "a.json", answers(lambda _: status(code)))
    run = held(tmp_path / "a.json")
    for window in windows(run):
        assert window.counts.reasons == {f"http_{code}": window.counts.sent}
        assert (window.passed, window.valid, window.goodput_tok_s) == (False, True, 0)
        assert window.ttft_p99_ms is None
    assert run.verdict is not None
    assert run.verdict.word == "failed"
    assert run.configs[0].goodput_tok_s is None


def test_a_storm_within_a_window_counts_as_what_it_is(tmp_path: Path) -> None:
    formula: list[Formula] = []

    def connect() -> Connector:
        formula.append(Formula())
        loop = asyncio.get_running_loop()
        start_s = loop.time()

        def script(number: int, body: dict[str, Any]) -> Script:
            storm = 1.5 <= loop.time() - start_s < 1.6
            return status(503) if storm else formula[0].script(number, body)

        return MemoryConnector(ScriptedServer(script))

    measured(tmp_path / "a.json", connect)
    first, second = windows(held(tmp_path / "a.json"))
    assert first.counts.reasons.keys() == {"http_503"}
    assert 1 < first.counts.failed < 20
    assert (first.passed, second.passed) == (False, True)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"])
def test_a_server_slower_than_every_timeout_has_no_rate(tmp_path: Path, said: bytes) -> None:
    """One that never answers, and one that never comes to the end of its headers."""
    measured(tmp_path / "a.json", answers(lambda _: [(0.1, said)] if said else []))
    run = held(tmp_path / "a.json")
    for window in windows(run):
        assert window.counts.ok == 0
        assert window.counts.reasons.keys() <= {"timeout"}
        assert window.counts.miss_ttft == window.counts.sent > 100
        assert not window.passed
    assert run.verdict is not None
    assert run.verdict.word == "failed"


def test_a_server_that_hangs_up_on_everything_has_no_rate(tmp_path: Path) -> None:
    """It is gone, as far as a client can tell: the run stops, and can be gone on with."""
    with pytest.raises(TokenwattError, match="reached the server"):
        measured(tmp_path / "a.json", answers(lambda _: [(0.01, Do.RESET)]))
    run = held(tmp_path / "a.json")
    assert run.verdict is not None
    assert (run.verdict.word, run.verdict.code) == ("undecided", "SERVER_GONE")
    assert [window.counts.reasons.keys() for window in windows(run)] == [{"reset"}]


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_clock_step_of_an_hour_makes_one_window_invalid(tmp_path: Path, step_s: float) -> None:
    session = stepped(tmp_path / "a.json", lambda age_s: step_s if age_s > 1.5 else 0.0)
    run = held(tmp_path / "a.json")
    assert [(w.valid, w.reasons) for w in windows(run)] == [
        (False, ["CLOCK"]),
        (True, []),
        (True, []),
    ]
    assert session.done is not None
    assert (session.done.word, session.done.rate_rps) == ("met", 80.0)


def test_a_clock_that_never_holds_still_ends_the_measurement(tmp_path: Path) -> None:
    session = stepped(tmp_path / "a.json", lambda age_s: 3600.0 * age_s)
    run = held(tmp_path / "a.json")
    assert run.verdict is not None
    assert (run.verdict.word, run.verdict.code) == ("undecided", "WINDOW_INVALID")
    assert [w.reasons for w in windows(run)] == [["CLOCK"], ["CLOCK"]]
    assert session.done is not None
    assert exit_code(session.done, session.windows) == 5


def stepped(out: Path, step_s: Callable[[float], float]) -> Session:
    """Measure beside a wall clock that is put forward or back by the age of the run."""

    async def main() -> Session:
        loop = asyncio.get_running_loop()
        start_s = loop.time()

        def wall() -> float:
            age_s = loop.time() - start_s
            return 1.8e9 + age_s + step_s(age_s)

        connect = MemoryConnector(Formula().server)
        return await VirtualRun(out, RATES, lambda: connect, wall=wall).measure()

    return run_virtual(main())


@dataclass(slots=True)
class Exhausted:
    """A way to a server on a machine that lets this process open few connections."""

    most: int
    several: bool
    opened: int = 0
    connector: MemoryConnector = field(default_factory=lambda: MemoryConnector(Formula().server))

    async def connect(self, protocol_factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        self.opened += 1
        if self.opened > self.most:
            error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            raise OSError(f"Multiple exceptions: {error}, {error}") if self.several else error
        return await self.connector.connect(protocol_factory)


@pytest.mark.parametrize("several", [False, True])
def test_a_client_out_of_descriptors_does_not_blame_the_server(
    tmp_path: Path, *, several: bool
) -> None:
    session = measured(tmp_path / "a.json", lambda: Exhausted(3, several))
    run = held(tmp_path / "a.json")
    for window in windows(run):
        assert (window.valid, window.reasons) == (False, ["CLIENT_LIMIT"])
        assert window.counts.reasons.keys() == {"client_limit"}
    assert run.verdict is not None
    assert (run.verdict.word, run.verdict.code) == ("undecided", "WINDOW_INVALID")
    assert session.done is not None
    assert exit_code(session.done, session.windows) == 5


@pytest.mark.parametrize("name", ["requests.jsonl.gz", "power.jsonl.gz", "events.jsonl"])
def test_a_full_disk_loses_nothing_that_was_measured(tmp_path: Path, name: str) -> None:
    """The disk is full in the second window, for real: /dev/full. Later there is space again."""
    out, evidence = tmp_path / "a.json", tmp_path / "a" / name
    kept: list[bytes] = []

    def tell(event: dict[str, Any]) -> None:
        full = event["event"] == "tick" and event["rate_rps"] == 80
        if full and not kept:
            kept.append(evidence.read_bytes())
            evidence.unlink()
            evidence.symlink_to("/dev/full")

    run = VirtualRun(out, RATES, tell=tell)
    with pytest.raises(TokenwattError, match="No space left on device") as caught:
        run_virtual(run.measure())
    assert "free space" in caught.value.hint
    evidence.unlink()
    evidence.write_bytes(kept[0])  # what fitted is on the disk
    document = held(out)
    assert [window.index for window in windows(document)] == [0]
    assert document.verdict is not None
    assert (document.verdict.word, document.verdict.code) == ("undecided", "UNFINISHED")

    session = run_virtual(VirtualRun(out, RATES).measure())
    assert session.done is not None
    assert session.done.word == "met"
    assert [window.index for window in windows(held(out))] == [0, 1]


def test_a_document_that_can_not_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    out = tmp_path / "a.json"

    stores: list[RunStore] = []

    class Full(RunStore):
        def save(self, run: Run) -> None:
            if len(run.configs[0].windows or ()) == 1:
                (out.parent / f".{out.name}.tmp").symlink_to("/dev/full")
            super().save(run)

    def full(store: RunStore) -> RunStore:
        store.close()
        stores.append(Full(out, force=True))
        return stores[0]

    with pytest.raises(TokenwattError, match="No space left on device"):
        run_virtual(VirtualRun(out, RATES).measure(full))
    stores[0].close()
    assert windows(held(out)) == []
    assert run_virtual(VirtualRun(out, RATES).measure()).done is not None
    assert len(windows(held(out))) == 2
