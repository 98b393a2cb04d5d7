"""The adaptive search end to end in virtual time: client, HTTP, SSE, embedded engine, document."""

import asyncio
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_loop import run_virtual
from tests.support.virtual_session import session_of
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.probe import Cut, Done, Measured, Probe
from tokenwatt_site.method.rebuild import Rows, rebuild
from tokenwatt_site.method.replay import trace_of
from tokenwatt_site.restore import take_up
from tokenwatt_site.session import Session
from tokenwatt_site.verify import verify

# Slow steps: few tokens and thousands of requests; the boundary is near 10.5 requests/s.
ENGINE = {"noise_sd": 0.02, "fixed_s": 0.03, "sequence_s": 0.004}
SPEC: dict[str, Any] = {
    "name": "virtual",
    "engine": {
        "endpoint": "http://127.0.0.1:1/v1",
        "name": "embedded engine",
        "max_batched_tokens": 2048,
    },
    "model": {"name": "step model", "vocab_size": 32_000},
    "slo": {"ttft_p99_ms": 1000, "tpot_p99_ms": 90},
    "workload": {
        "trace": None,
        "input_tokens": {"fixed": 64},
        "output_tokens": {"median": 8, "p90": 16, "max": 40},
        "seed": 1,
    },
    "measurement": {"window_s": 30},
    "sweep": {"strategy": "adaptive", "mode": "quick", "start_rps": 4},
}


async def measured(out: Path) -> Session:
    session = session_of(Spec.model_validate(SPEC), out, ENGINE)
    await session.run()
    return session


@pytest.fixture(scope="module", autouse=True)
def short_stream() -> Iterator[None]:
    """The twin's long run is of 4,000 requests instead of 40,000: coarser, a tenth of the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Setting.__init__.__kwdefaults__, "stream_requests", 4000)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Session, Path]]:
    """The same measurement twice."""
    found: list[tuple[Session, Path]] = []
    for name in ("a", "b"):
        out = tmp_path_factory.mktemp(name) / "run.json"
        found.append((run_virtual(measured(out)), out))
    return found


def test_the_search_finds_the_boundary_of_the_engine(runs: list[tuple[Session, Path]]) -> None:
    session, out = runs[0]
    run, _ = load_run(out)
    assert run.search is not None
    assert run.verdict is not None
    assert (run.verdict.word, run.quick) == ("met", True)
    rate = run.configs[0].rate_rps
    assert rate is not None
    assert session.done is not None
    assert rate == session.done.rate_rps
    assert 9.0 < rate < 11.0
    assert (run.search.strategy, run.search.mode, run.search.twin) == ("adaptive", "quick", "used")
    assert run.search.overrides == ["window_s"]
    assert run.search.est_rps is not None
    assert rate < run.search.est_rps < 1.1 * rate
    assert run.search.model is not None
    assert run.search.balanced is not None
    assert run.search.balanced[0].drawn == 16
    assert {w.phase for w in run.configs[0].windows or []} == {"confirm"}


def test_every_window_starts_stationary_and_is_told_whole(
    runs: list[tuple[Session, Path]],
) -> None:
    session, out = runs[0]
    for seen in session.history:
        injected = [record for record in seen.records if record.injected]
        assert len(injected) == seen.probe.inject > 0
        assert all(record.arrival_s == 0 for record in injected)
        cohort = [
            r for r in seen.records if seen.w0_s <= r.arrival_s < seen.w1_s and not r.injected
        ]
        assert len(cohort) == seen.n
    rows = [
        json.loads(line) for line in (out.parent / "run/schedule.jsonl").read_text().splitlines()
    ]
    assert [row["w"] for row in rows] == list(range(len(session.history)))


def test_a_row_that_hides_its_injection_is_noticed(runs: list[tuple[Session, Path]]) -> None:
    """Else a forger could move requests of the stationary start into the cohort."""
    folder = runs[0][1].parent / "run"
    lines = {
        "events": (folder / "events.jsonl").read_bytes(),
        "schedule": (folder / "schedule.jsonl").read_bytes(),
        "requests": gzip.decompress((folder / "requests.jsonl.gz").read_bytes()),
    }
    rows = {name: [json.loads(line) for line in text.splitlines()] for name, text in lines.items()}
    assert rows["requests"][0].pop("inj") is True
    found = rebuild(Rows(**rows))
    assert [fault.place for fault in found.faults][:1] == ["requests.jsonl.gz, window 0"]


def test_a_search_of_the_same_seed_is_the_same_document(
    runs: list[tuple[Session, Path]],
) -> None:
    (_, one), (_, two) = runs
    assert _steady(load_run(one)[0]) == _steady(load_run(two)[0])
    name = "run/requests.jsonl.gz"
    assert (one.parent / name).read_bytes() == (two.parent / name).read_bytes()


def _steady(run: Run) -> dict[str, Any]:
    """Return a document without what is CPU time and not virtual, nor the file that holds it."""
    document = run.model_dump(mode="json")
    document["evidence"] = [each for each in document["evidence"] if "events" not in each["path"]]
    config = document["configs"][0]
    for place in (config, *config["windows"], *config["sweep"]):
        place["client"]["cpu_share"] = 0
    return document


def test_the_boundary_over_a_recorded_trace_is_found_and_verified(tmp_path: Path) -> None:
    lengths = [(48 + 4 * n, 4 + n % 13) for n in range(24)]
    text = "\n".join(
        json.dumps({"t_s": n / 8, "input_tokens": inputs, "output_tokens": outputs})
        for n, (inputs, outputs) in enumerate(lengths)
    )
    recorded = trace_of(TraceFile("t.jsonl", text.encode()))
    spec = Spec.model_validate(SPEC | {"workload": {"trace": "t.jsonl", "seed": 1}})
    out = tmp_path / "run.json"

    async def measured_over() -> Session:
        session = session_of(spec, out, ENGINE, trace=recorded)
        await session.run()
        session.setup.store.close()
        return session

    done = run_virtual(measured_over()).done
    assert done is not None
    assert (done.word, done.rate_rps is not None) == ("met", True)
    lines = gzip.decompress((tmp_path / "run/requests.jsonl.gz").read_bytes()).splitlines()
    asked = [row for row in map(json.loads, lines) if not row.get("inj")]
    assert {(row["in"], row["out"]) for row in asked} == set(lengths)
    found = verify(out)
    assert found.holds(), found.mismatches


class Scripted:
    """A search that asks for given windows."""

    def __init__(self, *probes: Probe) -> None:
        self.facts = SearchFacts()
        self._probes = probes
        self.told: list[int] = []

    def next(self, history: Sequence[Measured]) -> Probe | Done:
        self.told.append(len(history))
        self.facts.restarts = int(len(history) > 1)
        if len(history) == len(self._probes):
            return Done("no_rate", None, None, None, "scripted")
        return self._probes[len(history)]


RUNG = Probe(8.0, "search", 20.0, 4.0, 0, 0, tail_s=3.0, inject=5, draw="balance/3")


async def scripted(out: Path, search: Scripted, told: list[dict[str, Any]]) -> Session:
    session = session_of(Spec.model_validate(SPEC), out, ENGINE, told.append)
    session.search = search
    await session.run()
    return session


def test_a_rung_ends_after_its_tail_and_one_that_fails_is_given_up(tmp_path: Path) -> None:
    hopeless = replace(RUNG, rate_rps=40.0, index=1, cut=Cut(over=8, share=0.1))
    told: list[dict[str, Any]] = []
    out = tmp_path / "run.json"
    session = run_virtual(scripted(out, Scripted(RUNG, hopeless), told))
    rung, given_up = session.history
    assert (rung.w0_s, rung.w1_s, rung.aborted) == (4.0, 24.0, False)
    assert 24.0 < rung.look_s < 27.2
    assert max(record.arrival_s for record in rung.records) < 27.0
    assert given_up.aborted
    assert not given_up.passed
    assert given_up.look_s == given_up.w1_s == pytest.approx(14.0, abs=0.2)
    run, _ = load_run(out)
    records = run.configs[0].sweep or []
    assert [(w.aborted, w.inject, w.tail_s) for w in records] == [(False, 5, 3), (True, 5, 3)]
    assert records[1].window_s == pytest.approx(10.0, abs=0.2)
    events = [json.loads(line) for line in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    assert [e["index"] for e in events if e["event"] == "judged" and e.get("aborted")] == [1]
    assert [e["windows"] for e in events if e["event"] == "drift"] == [2]
    assert any("speed has changed" in each.get("text", "") for each in told)
    assert run.verdict is not None
    assert run.verdict.word == "no_rate"


def test_a_search_that_thinks_for_long_is_talked_of(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []

    async def slow() -> None:
        session = session_of(Spec.model_validate(SPEC), tmp_path / "run.json", ENGINE, told.append)
        session.search = Scripted()

        async def think(call: Any) -> Any:
            await asyncio.sleep(5)
            return call()

        session.setup.think = think
        await session.run()

    run_virtual(slow())
    assert [each["text"] for each in told if each["event"] == "note"] == ["fitting the twin…"]


def test_a_search_that_was_interrupted_goes_on_where_it_stood(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    spec = Spec.model_validate(SPEC)

    async def interrupted() -> Session:
        session = session_of(spec, out, ENGINE)
        task = asyncio.create_task(session.run())
        await asyncio.sleep(100)  # virtual seconds: two rungs are done, the knee isn't
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        session.setup.store.close()
        return session

    async def resumed() -> Session:
        store, rebuilt = take_up(out)
        assert rebuilt.history == before.history
        session = session_of(spec, out, ENGINE, store=store)
        session.go_on(rebuilt)
        await session.run()
        store.close()
        return session

    before = run_virtual(interrupted())
    assert len(before.history) == 2
    after = run_virtual(resumed())
    assert after.history[:2] == before.history
    assert after.done is not None
    assert after.done.word == "met"
    found = verify(out)
    assert found.holds(), found.mismatches


def test_ctrl_c_while_the_search_thinks_saves_a_draft(tmp_path: Path) -> None:
    out = tmp_path / "run.json"

    async def interrupted() -> None:
        session = session_of(Spec.model_validate(SPEC), out, ENGINE)

        async def think(call: Any) -> Any:
            if session.history:
                await asyncio.sleep(3600)
            return call()

        session.search = Scripted(RUNG, RUNG)
        session.setup.think = think
        task = asyncio.create_task(session.run())
        await asyncio.sleep(60)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run_virtual(interrupted())
    run, _ = load_run(out)
    assert run.verdict is not None
    assert (run.verdict.word, run.verdict.code) == ("undecided", "INTERRUPTED")
    assert len(run.configs[0].sweep or []) == 1
