"""A program that prints a reading: what is one, and what isn't."""

import sys
import threading
from typing import Any

import pytest

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power.command import CommandMeter, number, open_command
from tokenwatt_site.power.program import run


def asked(output: str = "612.5", **more: Any) -> SpecPower:
    given = {"scope": "node_ac", "unit": "W", "quantity": "power", **more}
    argv = given.pop("command", ["printf", "%s", output])
    return SpecPower.model_validate({"source": "command", "command": argv, **given})


def opened(power: SpecPower) -> CommandMeter:
    return open_command(power, gpus=None, count=0, simulator_url=None)


@pytest.mark.parametrize(
    "output, field, right",
    [
        ("612.5\n", None, 612.5),
        ("6.1e2", None, 610),
        ('{"a": [{"w": 5}]}', "a.0.w", 5),
        ('{"a": "7"}', "a", 7),
        *[
            (bad, None, None)
            for bad in ("", "N/A", "nan", "inf", "1,5", "1 2", "5 W", "1_0", "\u0665")
        ],
        *[(bad, "a", None) for bad in ("5", '{"a": true}', '{"a": null}', "{", '{"a": NaN}')],
        ("[" * 60_000, "a", None),
        ('{"b": 5}', "a", None),
    ],
)
def test_one_number_or_none(output: str, field: str | None, right: float | None) -> None:
    assert number(output, field) == right


@pytest.mark.parametrize("bad", ["-5", "0", "65535", "N/A", "1,5", "1e999"])
def test_what_is_no_reading_is_refused(bad: str) -> None:
    with pytest.raises(RefusedError, match="gives no reading"):
        opened(asked(bad))


def test_units_and_quantities() -> None:
    assert opened(asked("2", unit="kW")).read()[0].power_w == 2000
    energy = opened(asked("2", unit="kWh", quantity="energy")).read()[0]
    assert (energy.power_w, energy.energy_j) == (None, 7.2e6)


@pytest.mark.parametrize("key", ["scope", "unit", "quantity", "command"])
def test_a_key_that_lacks_is_named(key: str) -> None:
    with pytest.raises(UsageError, match=f"power.{key}"):
        opened(asked().model_copy(update={key: None}))


def test_a_program_is_no_shell_and_its_failure_is_a_gap() -> None:
    assert run(["printf", "%s", "$(id); 5"], 5).output == "$(id); 5"
    assert run(["false"], 5).error == "failed"
    assert run(["/no/such/program"], 5).error == "program_missing"
    assert run(["cat"], 5).error is None
    assert run(["yes"], 5).error == "bad_answer"


def test_a_child_that_hangs_is_stopped_with_its_own_children() -> None:
    code = "import os, time; os.fork(); print(os.getpid(), flush=True); time.sleep(60)"
    done = run([sys.executable, "-c", code], 1.0)
    assert done.error == "timeout"
    wait = threading.Event()
    for pid in done.output.split():
        for _ in range(500):  # it was told to end; a busy machine takes its time
            if not _lives(pid):
                break
            wait.wait(0.01)
        assert not _lives(pid)


def _lives(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
