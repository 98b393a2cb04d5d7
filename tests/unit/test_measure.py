"""The plan of a measurement, and what is refused by name before anything is sent."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.windows import stream, window_of
from tokenwatt_site import measure
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.probe import Done


def spec_of(**changes: Any) -> Spec:
    values: dict[str, Any] = {
        "name": "My spec",
        "engine": {"endpoint": "http://127.0.0.1:8000/v1"},
        "model": {"name": "m"},
    }
    return Spec.model_validate(values | changes)


def options(spec: Spec, **changes: Any) -> measure.Options:
    asked: dict[str, Any] = {
        "spec_file": Path("a.spec.yaml"),
        "label": "",
        "role": "baseline",
        "out": None,
        "force": False,
    }
    return measure.Options.of(spec, **(asked | changes))


@pytest.mark.parametrize(
    "label,out,place",
    [
        ("", None, "runs/my-spec.json"),
        ("TP 4 / fast", None, "runs/tp-4-fast.json"),
        ("../../etc/passwd", None, "runs/etc-passwd.json"),
        ("x", Path("here.json"), "here.json"),
    ],
)
def test_a_document_has_a_place(label: str, out: Path | None, place: str) -> None:
    assert options(spec_of(), label=label, out=out).out.as_posix() == place


def test_a_plan_tells_windows_minutes_and_files() -> None:
    spec = spec_of(power={"source": "board"})
    plan = measure.plan(spec, options(spec))
    few, many = plan["windows"]
    low, high = plan["minutes"]
    assert 0 < few < many
    assert 0 < low < high
    assert plan["loopback"] is True
    assert plan["files"] == [
        "runs/my-spec.json",
        "runs/my-spec/schedule.jsonl",
        "runs/my-spec/events.jsonl",
        "runs/my-spec/requests.jsonl.gz",
        "runs/my-spec/power.jsonl.gz",
    ]


@pytest.mark.parametrize(
    "endpoint,loopback",
    [
        ("http://localhost:1/v1", True),
        ("http://[::1]:1/v1", True),
        ("https://llm.example/v1", False),
        ("http://10.0.0.1/v1", False),
        ("simulator:", True),
    ],
)
def test_a_plan_knows_this_machine(endpoint: str, *, loopback: bool) -> None:
    spec = spec_of(engine={"endpoint": endpoint})
    assert measure.plan(spec, options(spec))["loopback"] is loopback


@pytest.mark.parametrize(
    "changes,error,said",
    [
        ({"sweep": {"strategy": "adaptive", "growth": 2}}, UsageError, r"sweep\.growth"),
        ({"sweep": {"mode": "quick"}}, UsageError, "sweep.mode"),
        (
            {"hosts": [{"name": "a", "power": []}], "power": {"source": "board"}},
            UsageError,
            "hosts and power are both given",
        ),
        (
            {"engine": {"endpoint": "http://127.0.0.1:1/v1", "simulator": {}}},
            UsageError,
            "engine.simulator",
        ),
        ({"engine": {"endpoint": "http://u:p@127.0.0.1/v1"}}, UsageError, "engine.endpoint"),
        ({"engine": {"endpoint": "ftp://127.0.0.1/v1"}}, UsageError, "engine.endpoint"),
        ({"workload": {"trace": "chat-mix-v2"}}, UsageError, "chat-mix-v1"),
        ({"workload": {"trace": "/data/azure.csv"}}, RefusedError, "leaves the spec's folder"),
        (
            {"engine": {"endpoint": "simulator:", "simulator": {"profile": "nope"}}},
            UsageError,
            "unknown simulator profile 'nope'",
        ),
        (
            {"engine": {"endpoint": "simulator:", "simulator": {"overrides": {"fixed_s": -1}}}},
            UsageError,
            "fixed_s",
        ),
        (
            {"engine": {"endpoint": "http://127.0.0.1:1/v1", "extra_body": {"token": "t"}}},
            UsageError,
            r"engine\.extra_body\.token",
        ),
        ({"sweep": {"growth": 1.01}}, UsageError, r"sweep\.growth"),
    ],
)
def test_what_is_not_done_is_refused_by_name(
    changes: dict[str, Any], error: type[UsageError], said: str
) -> None:
    spec = spec_of(**changes)
    with pytest.raises(error, match=said) as caught:
        measure.plan(spec, options(spec))
    assert caught.value.hint
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    "done,code",
    [
        (Done("met", 5.0, 5.0, 6.0, ""), 0),
        (Done("no_rate", None, None, 2.0, ""), 4),
        (Done("failed", None, None, 2.0, ""), 4),
        (Done("undecided", None, None, None, ""), 4),
        (Done("undecided", None, None, None, "", invalid=True), 5),
    ],
)
def test_the_exit_code_tells_the_outcome(done: Done, code: int) -> None:
    assert measure.exit_code(done, []) == code


def test_a_meter_that_failed_at_the_reported_rate_is_an_exit_code() -> None:
    broken = window_of(0, "confirm", stream(), energy=energy_window([], ["a"], 0.0, 10.0, 10))
    done = Done("met", 20.0, 20.0, 25.0, "")
    assert broken.valid  # the latency is fine and is reported
    assert measure.exit_code(done, [broken]) == 5
    assert measure.exit_code(done, [window_of(0, "confirm", stream())]) == 0
