"""Lines that show a measurement while it runs."""

from typing import Any

import pytest

from tokenwatt_site.cli.progress import teller

WINDOW: dict[str, Any] = {
    "event": "window",
    "index": 3,
    "phase": "search",
    "rate_rps": 40.0,
    "passed": False,
    "valid": True,
    "reasons": [],
    "ttft_p99_ms": 120.0,
    "tpot_p99_ms": None,
    "goodput_tok_s": 900.0,
    "j_per_output_token": None,
}


@pytest.mark.parametrize(
    "facts, says",
    [
        ({"passed": True}, "within the limits"),
        ({}, "outside"),
        ({"aborted": True}, "given up: too many misses"),
        ({"aborted": True, "valid": False, "reasons": ["LAG"]}, "invalid (LAG)"),
    ],
)
def test_a_window_s_line_ends_with_what_came_of_it(
    facts: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    teller(as_json=False)(WINDOW | facts)
    assert capsys.readouterr().err.strip().endswith(says)
