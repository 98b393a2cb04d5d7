"""What makes a window invalid beside its requests: the clock, and what the client can hold."""

from typing import Any

import pytest

from tests.support.traces import steady
from tokenwatt_site.documents.doors import parse_spec
from tokenwatt_site.method.account import Account, Beside, Load, account
from tokenwatt_site.method.evidence import request_row
from tokenwatt_site.method.probe import Probe

SPEC = parse_spec({"name": "s", "engine": {"endpoint": "simulator:"}, "model": {"name": "m"}})
PROBE = Probe(20.0, "rate", 10.0, 1.0, 100, 0)
ROWS = [request_row(steady(1 + i / 20), 0, 0.0) for i in range(200)]  # 220 events a second


def accounted(**load: Any) -> Account:
    facts: dict[str, Any] = {"cpu_s": 1.2, "loop_stall_max_s": 0.002, "clock_drift_pct": 0.0}
    return account(SPEC, PROBE, Load("", 12_000_000, **(facts | load)), ROWS, Beside())


@pytest.mark.parametrize(
    "load, reasons",
    [
        ({}, ()),
        ({"clock_drift_pct": 0.9}, ()),
        ({"clock_drift_pct": -1.1}, ("CLOCK",)),
        ({"clock_drift_pct": 30_000.0}, ("CLOCK",)),  # the clock was set forward by an hour
        ({"held_events_s": 230.0}, ()),
        ({"held_events_s": 200.0}, ("CLIENT_RATE",)),
    ],
)
def test_what_the_client_says_can_make_a_window_invalid(
    load: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    window = accounted(**load).window
    assert (window.reasons, window.valid) == (reasons, not reasons)


def test_the_client_block_has_what_the_load_told() -> None:
    client = accounted(workers=3, held_events_s=9000.0).window.client
    assert client["cpu_share"] == pytest.approx(0.1)
    assert client["loop_stall_max_ms"] == pytest.approx(2)
    assert (client["workers"], client["held_events_s"]) == (3, 9000.0)
    assert client["dispersion"] == pytest.approx(0, abs=0.01)
