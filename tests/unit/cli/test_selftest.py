"""``tokenwatt-site selftest``: the table, the limit, and the verdict on a spec."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.program import write_spec
from tokenwatt_site.cli.selftest import selftest
from tokenwatt_site.load.selftest import Step

HELD = Step(5_000, 4_990, 0.999, 0.0004, 0.0001, 0.0009, 17.0, 1, 0.0012)
LATE = replace(HELD, asked_events_s=10_000, lag_p99_s=math.inf)
STUB = replace(HELD, asked_events_s=10_000, delivered=0.8, stub_late_p99_s=0.03)


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Let the self-test find these steps; return the rates up to which it was asked to go."""
    asked: list[float] = []

    def set_steps(*steps: Step) -> list[float]:
        async def rising(upto: float, tell: Callable[[Step], None]) -> list[Step]:
            asked.append(upto)
            for step in steps:
                tell(step)
            return list(steps)

        monkeypatch.setattr("tokenwatt_site.load.selftest.rising", rising)
        monkeypatch.setattr("tokenwatt_site.load.descriptors.raise_descriptors", lambda _: 0)
        return asked

    return set_steps


def called(*arguments: str | Path) -> str:
    result = CliRunner().invoke(selftest, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_limit_is_the_last_rate_that_was_held(finds: Callable[..., list[float]]) -> None:
    asked = finds(HELD, LATE)
    lines = called().splitlines()
    assert lines[1].split() == [
        *("5,000", "4,990", "0.40", "ms", "0.10", "ms", "0.90", "ms", "17.0", "µs", "1", "held")
    ]
    assert lines[2].endswith("not held")
    assert lines[3] == "this machine holds 5,000 token events a second"
    assert asked == [150_000]


def test_a_stub_that_is_the_limit_is_said(finds: Callable[..., list[float]]) -> None:
    finds(HELD, STUB)
    lines = called().splitlines()
    assert lines[2].endswith("not held: the stub was late")
    assert "at least 5,000" in lines[3]


def test_a_machine_that_holds_nothing(finds: Callable[..., list[float]]) -> None:
    finds(LATE)
    assert "holds none of these rates now" in called()
    read: dict[str, Any] = json.loads(called("--json"))
    assert (read["held_events_s"], read["at_least"]) == (None, False)
    assert read["steps"][0]["lag_p99_s"] is None


@pytest.mark.parametrize(
    "rates, needed, verdict",
    [
        ([10, 300], 4_800, "this machine holds it"),
        ([400], 6_400, "312 requests/s of them"),
        (None, 32_000, "312 requests/s of them"),
    ],
)
def test_a_spec_is_held_or_how_much_of_it(
    tmp_path: Path,
    finds: Callable[..., list[float]],
    rates: list[float] | None,
    needed: float,
    verdict: str,
) -> None:
    spec = write_spec(
        tmp_path / "s.yaml",
        workload={"output_tokens": {"fixed": 16}},
        sweep={"rates": rates, "strategy": "ladder"},
    )
    asked = finds(HELD, LATE)
    assert verdict in called(spec)
    found: dict[str, Any] = json.loads(called(spec, "--json"))["spec"]
    assert found["needed_events_s"] == needed == asked[0]
    assert found["holds"] is (needed <= 5_000)
    assert found["held_rps"] == 312.5
