"""The self-test: its stub tells the truth, its limit is the last rate that was held."""

import asyncio
import errno
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile import spoil
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load import selftest
from tokenwatt_site.load.loop import new_loop
from tokenwatt_site.load.selftest import (
    UNTESTED_EVENTS_S,
    Stamina,
    Step,
    proves_nothing,
    rising,
    try_rate,
)
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.workloads import Fixed, Workload

STEP = Step(10_000, 9_990, 0.999, 0.0004, 0.0001, 0.0009, 17.0, 1, 0.0012)


class Machine:
    """Holds rates up to a limit; ``busy`` tries fail whatever the rate."""

    def __init__(self, limit: float, busy: int = 0) -> None:
        self.limit, self.busy = limit, busy
        self.tried: list[float] = []

    async def __call__(self, events_s: float, seconds: float) -> Step:
        assert seconds > 0
        self.tried.append(events_s)
        self.busy -= 1
        held = events_s <= self.limit and self.busy < 0
        return replace(STEP, asked_events_s=events_s, lag_p99_s=0.001 if held else 0.02)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(35_000)
    monkeypatch.setattr(selftest, "try_rate", made)
    return made


def load_of(events_s: float) -> Schedule:
    return poisson_schedule(Workload("w", Fixed(1), Fixed(500)), events_s / 500, 10, 0)


def run(coroutine: Any) -> Any:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(coroutine)


def test_rates_rise_until_one_is_not_held_twice(machine: Machine) -> None:
    told: list[Step] = []
    steps = run(rising(80_000, told.append))
    assert machine.tried == [5_000, 10_000, 20_000, 30_000, 40_000, 40_000]
    assert [step.held for step in steps] == [True] * 4 + [False]
    assert told == steps


def test_rates_rise_no_further_than_asked(machine: Machine) -> None:
    steps = run(rising(12_000, lambda _: None))
    assert machine.tried == [5_000, 10_000, 12_000]
    assert all(step.held for step in steps)


def test_a_machine_that_is_busy_for_a_second_is_tried_again(machine: Machine) -> None:
    machine.busy = 1
    assert all(step.held for step in run(rising(10_000, lambda _: None)))
    assert machine.tried == [5_000, 5_000, 10_000]


@pytest.mark.parametrize(
    "change, held",
    [
        ({}, True),
        ({"lag_p99_s": 0.0051}, False),
        ({"lag_p99_s": math.inf}, False),
        ({"delivered": 0.94}, False),
        ({"stub_late_p99_s": 0.02}, True),
    ],
)
def test_a_rate_is_held_if_requests_leave_on_time_and_tokens_come(
    change: dict[str, float], *, held: bool
) -> None:
    step = replace(STEP, **change)
    assert step.held is held
    assert json.loads(json.dumps(step.row(), allow_nan=False))["held"] is held


def test_a_late_stub_is_told_from_a_late_client() -> None:
    assert replace(STEP, delivered=0.9, stub_late_p99_s=0.006).stub_bound
    assert not replace(STEP, lag_p99_s=0.02).stub_bound


def test_a_stub_that_was_late_proves_nothing_of_the_client() -> None:
    late = replace(STEP, lag_p99_s=0.02, stub_late_p99_s=0.006)
    assert proves_nothing([late, late])
    assert not proves_nothing([late, STEP])
    assert not proves_nothing([late, replace(STEP, lag_p99_s=0.02)])


def test_a_light_load_needs_no_test() -> None:
    stamina = Stamina()
    assert not stamina.matters(load_of(8_000))
    assert not stamina.needed(load_of(8_000))
    assert stamina.matters(load_of(9_000))


def test_a_load_is_tested_with_a_margin_once(machine: Machine) -> None:
    stamina = Stamina()
    assert stamina.needed(load_of(20_000))
    (step,) = run(stamina.test(load_of(20_000)))
    assert step.held
    assert stamina.held_events_s == 25_000
    assert not stamina.needed(load_of(24_000))
    assert stamina.needed(load_of(26_000))
    assert machine.tried == [25_000]


def test_what_is_not_held_is_tried_at_half(machine: Machine) -> None:
    stamina = Stamina()
    assert [step.held for step in run(stamina.test(load_of(40_000)))] == [False, True]
    assert stamina.held_events_s == 25_000
    assert [step.held for step in run(stamina.test(load_of(100_000)))] == [False, False]
    assert (stamina.held_events_s, machine.tried) == (25_000, [50_000, 25_000, 125_000, 62_500])
    assert UNTESTED_EVENTS_S < 25_000


@pytest.mark.parametrize("workers", [1, 2])
def test_the_stub_knows_when_it_sent_each_first_token(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes; nothing is said of how fast this machine is."""
    monkeypatch.setattr(selftest, "workers_for", lambda _: workers)
    step = run(try_rate(3_000, 0.3))
    assert step.workers == workers
    assert 0 < step.ttft_error_p50_s <= step.ttft_error_p99_s < math.inf
    assert 0 < step.events_s < math.inf
    assert 0 < step.cpu_us_per_event < math.inf
    assert step.stub_late_p99_s >= 0


def test_a_stub_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(TokenwattError, match="stub server doesn't start"):
        run(try_rate(3_000, 0.3))


def test_a_stub_runs_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(tmp_path, "json", "selectors")
    monkeypatch.chdir(tmp_path)
    assert run(try_rate(500, 0.2)).events_s > 0
    assert not (tmp_path / "ran").exists()


def test_a_stub_that_the_machine_has_no_room_for_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", full)
    with pytest.raises(TokenwattError, match="stub server can't be started: Too many open files"):
        run(try_rate(3_000, 0.3))
