"""Whole measurements of shared and recorded prompts, against a cache that forgets nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted import END, Script, chunk, event
from tests.support.virtual_loop import MemoryConnector, run_virtual
from tests.support.virtual_run import Formula, VirtualRun, spec_of
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.method.recorded import with_recorded_rate
from tokenwatt_site.method.replay import Trace, trace_of
from tokenwatt_site.session import Session
from tokenwatt_site.store import RunStore
from tokenwatt_site.verify import verify


class Caching(Formula):
    """Remembers every prompt and says how much of each it knew, and ``more`` on top."""

    def __init__(self, more: int = 0) -> None:
        super().__init__()
        self._more = more
        self._known: dict[int, Any] = {}
        """A tree: what was seen after each token."""

    def script(self, number: int, body: dict[str, Any]) -> Script:
        """Return the formula's answer with the cached tokens in its usage."""
        prompt = body["prompt"]
        cached, node = 0, self._known
        for token in prompt:
            cached += token in node
            node = node.setdefault(token, {})
        *stream, (end_s, _) = super().script(number, body)
        usage = {
            "prompt_tokens": len(prompt),
            "completion_tokens": body["max_tokens"],
            "prompt_tokens_details": {"cached_tokens": min(len(prompt), cached + self._more)},
        }
        last = {"choices": [{"index": 0, "text": "", "finish_reason": "length"}], "usage": usage}
        return [*stream, (end_s, chunk(event(last), event("[DONE]")) + END)]


class Replayed(VirtualRun):
    """A measurement in virtual time that may have a recorded trace."""

    trace: Trace | None = None

    def session(self, store: RunStore) -> Session:
        """Return the session with its trace."""
        session = VirtualRun.session(self, store)
        session.setup.trace = self.trace
        return session


def measured(out: Path, workload: dict[str, Any], trace: Trace | None = None, more: int = 0) -> Run:
    spec = spec_of(
        workload=workload,
        sweep={"rates": [60 if trace is None else 50]},
        measurement={"repeats": 1},
    )
    run = Replayed(
        out,
        with_recorded_rate(spec, trace),
        connect=lambda: MemoryConnector(Caching(more).server),
    )
    run.trace = trace
    run_virtual(run.measure())
    return load_run(out)[0]


def test_what_is_cached_is_what_was_planned(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    run = measured(out, {"shared_prefix": {"tokens": 4}})
    config = run.configs[0]
    assert config.realised is not None
    assert config.client is not None
    assert config.windows is not None
    assert [window.valid for window in config.windows] == [True]
    assert config.realised.planned_cached_pct == pytest.approx(config.client.cached_pct)
    assert 30 < (config.client.cached_pct or 0) < 80
    assert verify(out).holds()


def test_what_is_cached_beyond_the_plan_makes_the_window_invalid(tmp_path: Path) -> None:
    run = measured(tmp_path / "run.json", {"shared_prefix": {"tokens": 4}}, more=1)
    assert run.configs[0].sweep is not None
    assert {tuple(window.reasons) for window in run.configs[0].sweep} == {("CACHED",)}


def test_fresh_prompts_are_never_cached(tmp_path: Path) -> None:
    run = measured(tmp_path / "run.json", {"input_tokens": {"fixed": 8}})
    assert run.configs[0].client is not None
    assert run.configs[0].client.cached_pct == 0


def mooncake() -> Trace:
    """Thirty conversations of four turns, each a block longer than the one before."""
    rows = [
        {
            "timestamp": 20 * (30 * turn + chat),
            "input_length": 512 * turn + 100 + chat,
            "output_length": 2,
            "hash_ids": [100 * chat + block for block in range(turn + 1)],
        }
        for turn in range(4)
        for chat in range(30)
    ]
    trace = trace_of(TraceFile("chats.jsonl", "\n".join(map(json.dumps, rows)).encode()))
    assert trace is not None
    return trace


LENGTHS = {"input_tokens": None, "output_tokens": None}


def test_a_kept_trace_finds_its_history_in_the_cache(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    trace = mooncake()
    asked = LENGTHS | {"trace": "chats.jsonl", "timestamps": "kept"}
    run = measured(out, asked, trace)
    config = run.configs[0]
    assert config.rate_rps == trace.rate_rps
    assert (run.workload.trace, run.workload.sha256) == ("chats.jsonl", trace.sha256)
    assert run.workload.arrival == "As recorded, at the recorded times"
    assert config.realised is not None
    assert config.client is not None
    assert config.realised.planned_cached_pct == pytest.approx(config.client.cached_pct)
    assert (config.client.cached_pct or 0) > 40
    assert verify(out).holds()


def test_a_changed_trace_is_found(tmp_path: Path) -> None:
    """Its loads aren't those of the schedule; the hash of the file would tell it first."""
    out = tmp_path / "run.json"
    asked = LENGTHS | {"trace": "chats.jsonl", "timestamps": "rescaled"}
    measured(out, asked, mooncake())
    requests = out.with_suffix("") / "trace.jsonl.gz"
    data = bytearray(requests.read_bytes())
    data[len(data) // 2] ^= 1
    requests.write_bytes(data)
    assert not verify(out).holds()
