"""A whole measurement whose load is played by two processes, after a self-test."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.program import run, write_spec
from tokenwatt_site import measure as conductor
from tokenwatt_site.documents.doors import load_spec
from tokenwatt_site.load import selftest
from tokenwatt_site.load.selftest import Step

STEP = Step(0, 300, 1.0, 0.0004, 0.0001, 0.0009, 17.0, 2, 0.0012)


def test_two_workers_measure_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """120 one-token answers a second, as if that were much."""

    async def try_rate(events_s: float, _: float) -> Step:
        return replace(STEP, asked_events_s=events_s)

    monkeypatch.setattr(selftest, "UNTESTED_EVENTS_S", 50)
    monkeypatch.setattr(selftest, "try_rate", try_rate)
    monkeypatch.setattr(conductor, "workers_for", lambda _: 2)
    monkeypatch.chdir(tmp_path)
    spec_file = write_spec(tmp_path / "s.yaml", measurement={"repeats": 1})
    spec = load_spec(spec_file)
    options = conductor.Options.of(
        spec, spec_file=spec_file, label="", role="baseline", out=Path("mine.json"), force=False
    )
    (config,) = conductor.measure(spec, options, lambda _: None).run.configs
    assert config.client is not None
    assert (config.client.workers, config.client.held_events_s) == (2, pytest.approx(150))
    assert config.counts is not None
    assert config.counts.sent == config.counts.ok > 100
    lines = (tmp_path / "mine" / "events.jsonl").read_text().splitlines()
    tests = [event for event in map(json.loads, lines) if event["event"] == "selftest"]
    assert [(test["held"], test["asked_events_s"]) for test in tests] == [
        (True, pytest.approx(150))
    ]
    assert run("verify", "mine.json", cwd=tmp_path)[0] == 0
