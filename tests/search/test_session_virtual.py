"""A whole measurement in virtual time: our client, HTTP and SSE, the embedded engine, no socket."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_loop import run_virtual
from tests.support.virtual_session import session_of
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.draw import tail_s
from tokenwatt_site.method.ladder import next_probe
from tokenwatt_site.method.probe import Done, Measured
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.virtual import trace
from tokenwatt_site.method.window import Window, judge
from tokenwatt_site.method.workloads import workload_of
from tokenwatt_site.session import Session

OVERRIDES = {"noise_sd": 0.0}


def spec_of(seed: int) -> Spec:
    return Spec.model_validate(
        {
            "name": "virtual",
            "engine": {"endpoint": "http://127.0.0.1:1/v1", "name": "embedded engine"},
            "model": {"name": "step model", "vocab_size": 32_000},
            "slo": {"ttft_p99_ms": 1000, "tpot_p99_ms": 40},
            "workload": {
                "trace": None,
                "input_tokens": {"fixed": 64},
                "output_tokens": {"fixed": 16},
                "seed": seed,
            },
            "measurement": {"warmup_s": 2, "window_s": 6, "search_window_s": 3, "repeats": 1},
            "sweep": {"start_rps": 20, "growth": 2, "bisect_steps": 2, "backoff": 0.9},
        }
    )


async def session_in_virtual_time(spec: Spec, out: Path) -> Session:
    session = session_of(spec, out, OVERRIDES)
    await session.run()
    return session


def rates_on_the_model(spec: Spec) -> tuple[list[tuple[str, float]], Done]:
    """Run the same search on the step model alone: no client, no HTTP."""
    history: list[Measured] = []
    workload = workload_of(spec.workload)
    while True:
        probe = next_probe(history, spec.sweep, spec.measurement)
        if isinstance(probe, Done):
            return [(m.probe.phase, m.probe.rate_rps) for m in history], probe
        seed = derive_seed(spec.workload.seed, "schedule", probe.index)
        horizon_s = probe.warmup_s + probe.window_s + tail_s(spec)
        schedule = poisson_schedule(workload, probe.rate_rps, horizon_s, seed)
        w1_s = probe.warmup_s + probe.window_s
        window = Window(
            probe.index, probe.phase, probe.rate_rps, probe.warmup_s, w1_s, probe.warmup_s
        )
        traces = trace(StepModel(shape_of("demo", OVERRIDES)), schedule, horizon_s)
        stats = judge(traces, window, spec.slo, horizon_s)
        history.append(Measured(probe, stats.passed, stats.valid, stats.undecided_n))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_client_chooses_the_rates_that_the_model_alone_gives(tmp_path: Path, seed: int) -> None:
    spec = spec_of(seed)
    session = run_virtual(session_in_virtual_time(spec, tmp_path / "run.json"))
    expected, done = rates_on_the_model(spec)
    chosen = [(m.probe.phase, m.probe.rate_rps) for m in session.history]
    assert chosen == expected
    assert session.done == done
    assert done.word == "met"


def test_the_document_and_its_evidence_are_the_same_every_time(tmp_path: Path) -> None:
    documents: list[dict[str, Any]] = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        run_virtual(session_in_virtual_time(spec_of(3), folder / "run.json"))
        run, _ = load_run(folder / "run.json")
        documents.append(_steady(run))
    assert documents[0] == documents[1]
    assert (tmp_path / "a/run/requests.jsonl.gz").read_bytes() == (
        tmp_path / "b/run/requests.jsonl.gz"
    ).read_bytes()


def _steady(run: Run) -> dict[str, Any]:
    """Return a document without what is CPU time and not virtual, nor the file that holds it."""
    document = run.model_dump(mode="json")
    document["evidence"] = [each for each in document["evidence"] if "events" not in each["path"]]
    config = document["configs"][0]
    for place in (config, *config["windows"], *config["sweep"]):
        place["client"]["cpu_share"] = 0
    return document


def test_a_cancelled_session_leaves_a_draft_of_its_windows(tmp_path: Path) -> None:
    out = tmp_path / "run.json"

    async def interrupted() -> None:
        task = asyncio.create_task(session_in_virtual_time(spec_of(1), out))
        await asyncio.sleep(20)  # virtual seconds: in the third window
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run_virtual(interrupted())
    run, _ = load_run(out)
    assert run.status == "draft"
    assert run.verdict is not None
    assert run.verdict.word == "undecided"
    assert run.configs[0].sweep is not None
    assert len(run.configs[0].sweep) >= 1
    assert run.verdict.code == "INTERRUPTED"
    assert '"INTERRUPTED"' in (tmp_path / "run/events.jsonl").read_text(encoding="utf-8")
