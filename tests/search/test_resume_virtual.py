"""A measurement that is killed again and again gives the document of one that never was.

Kills come at random moments of virtual time, at random writes and in the middle of them. What a
kill does is done by the store: nothing is written any more, whatever the program still tries.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_loop import run_virtual
from tests.support.virtual_run import VirtualRun, spec_of
from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.method.rng import rng
from tokenwatt_site.store import RunStore
from tokenwatt_site.verify import verify

SPEC = spec_of(
    measurement={"repeats": 2},
    sweep={"start_rps": 90, "growth": 2, "bisect_steps": 0},
)
"""Four windows: 90/s passes, 180/s fails, two confirm windows at 90/s."""
WINDOW_S = 5.0
"""About what one takes, with warm-up and pauses."""
WRITES = 7
"""A window's: its load, four events, requests, power, the document."""
KILLS = 52
"""In each of four tests."""


@dataclass(slots=True)
class Mortal:
    """A store whose process is killed: at a moment, or when it has written a part of something."""

    store: RunStore
    at_s: float | None
    at_write: int | None
    part: float
    dead: bool = False

    def __post_init__(self) -> None:
        if self.at_s is not None:
            loop = asyncio.get_running_loop()
            loop.call_at(loop.time() + self.at_s, self.die)

    def die(self) -> None:
        self.dead = True
        raise SystemExit

    def due(self) -> bool:
        if self.at_write is None:
            return False
        self.at_write -= 1
        return self.at_write == 0

    def begin(self) -> None:
        self.store.begin()

    def append(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        if self.dead:
            return
        path = self.store.folder / name
        before = path.stat().st_size if path.exists() else 0
        self.store.append(name, rows)
        if self.due():
            os.truncate(path, before + round(self.part * (path.stat().st_size - before)))
            self.die()

    def evidence(self) -> list[Evidence]:
        return self.store.evidence()

    def save(self, run: Run) -> None:
        if self.dead:
            return
        if self.due():
            if self.part > 0.5:
                self.store.save(run)
            else:
                torn = self.store.out.with_name(f".{self.store.out.name}.tmp")
                torn.write_bytes(jsonfile.dumps(run.model_dump(mode="json")).encode()[:4000])
            self.die()
        self.store.save(run)


def life(out: Path, death: tuple[float | None, int | None, float] | None) -> bool:
    """Measure until the end or the kill; return whether it was killed."""
    run = VirtualRun(out, SPEC)
    mortal = (lambda store: store) if death is None else (lambda store: Mortal(store, *death))
    try:
        run_virtual(run.measure(mortal))
    except SystemExit:
        return True
    return False


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("whole") / "run.json"
    assert not life(out, None)
    return steady(out)


def steady(out: Path) -> dict[str, Any]:
    """Return a document without times of day and CPU, and without what tells of a resume."""
    document = load_run(out)[0].model_dump(mode="json")
    for key in ("started", "finished", "resumed"):
        document[key] = None
    config = document["configs"][0]
    for place in (config, *config["windows"], *config["sweep"]):
        place["client"] |= {"cpu_share": 0, "loop_stall_max_ms": 0}
        place["started"] = None
    document["evidence"] = [each for each in document["evidence"] if "events" not in each["path"]]
    return document


@pytest.mark.no_cover  # tracing makes them twice as slow; the tests below cover the same
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_random_moments_change_nothing(
    tmp_path: Path, seed: int, uninterrupted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # 3 ms each; no power is cut here
    source, kills, runs = rng(seed, "kills"), 0, 0
    while kills < KILLS:
        out, mine = tmp_path / str(runs) / "run.json", 0
        for _ in range(40):
            at_s = source.uniform(0, 1.5 * WINDOW_S) if source.random() < 0.5 else None
            at_write = None if at_s else source.randrange(1, 2 * WRITES)
            if not life(out, (at_s, at_write, source.random())):
                break
            mine += 1
        assert steady(out) == uninterrupted
        result = verify(out)
        assert result.mismatches == []
        document, _ = load_run(out)
        assert len(document.resumed or ()) <= mine
        kills, runs = kills + mine, runs + 1


def test_every_kill_leaves_a_whole_document(tmp_path: Path) -> None:
    """A kill at each write in turn: what the document names is there, and can be recomputed."""
    for at_write in range(3, 3 + WRITES):
        out = tmp_path / str(at_write) / "run.json"
        assert life(out, (None, at_write, 0.4))
        result = verify(out)
        assert result.mismatches == []
        assert result.holds()


@pytest.mark.parametrize("seed", range(6))
def test_a_measurement_that_is_interrupted_can_be_recomputed_and_gone_on_with(
    tmp_path: Path, seed: int, uninterrupted: dict[str, Any]
) -> None:
    """Ctrl-C saves a draft in the middle of things, which names what there is of them."""
    out, source = tmp_path / "run.json", rng(seed, "interrupts")

    async def interrupted() -> None:
        task = asyncio.create_task(VirtualRun(out, SPEC).measure())
        await asyncio.sleep(source.uniform(0, 15))
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run_virtual(interrupted())
    draft, _ = load_run(out)
    assert draft.verdict is not None
    assert draft.verdict.code == "INTERRUPTED"
    result = verify(out)
    assert result.mismatches == []
    assert result.holds()
    assert not life(out, None)
    assert verify(out).holds()
    document = steady(out)
    schedules = [each for each in document["evidence"] if "schedule" not in each["path"]]
    whole = [each for each in uninterrupted["evidence"] if "schedule" not in each["path"]]
    assert schedules == whole  # the load of the window that was interrupted stands there twice
    assert document | {"evidence": []} == uninterrupted | {"evidence": []}
