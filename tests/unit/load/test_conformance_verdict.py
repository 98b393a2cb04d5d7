"""What a client made of a case, held against the truth; and what others report in a file."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tokenwatt_site.errors import DocumentError, UsageError
from tokenwatt_site.load.conformance.case import Case, Truth
from tokenwatt_site.load.conformance.cases import CASES, rows
from tokenwatt_site.load.conformance.results import judged
from tokenwatt_site.load.conformance.script import sent
from tokenwatt_site.load.conformance.table import as_lines, as_table
from tokenwatt_site.load.conformance.verdict import Row, Seen, judge

OK = Truth()
RIGHT = Seen("ok", "", 8, 0.30, 0.05)
TOLD = replace(RIGHT, source="usage", prompt_tokens=5, answer_s=0.30, coalesced=False)
BUFFERED = Truth(tpot_s=None, coalesced=True)
LUMPED = "is unknown: most tokens came in one read"
SHORT = Truth("short", 3, tpot_s=None, lenient=True)


@pytest.mark.parametrize(
    "truth, seen",
    [
        (OK, RIGHT),
        (OK, replace(RIGHT, reason=None, ttft_s=0.32, tpot_s=0.053)),
        (Truth(tpot_s=None), replace(RIGHT, tpot_s=None)),
        (Truth(tpot_s=None), replace(RIGHT, tpot_s=9.0)),
        (BUFFERED, replace(RIGHT, tpot_s=None)),
        (OK, TOLD),
        (Truth(answer_s=0.5), replace(TOLD, answer_s=0.52)),
        (Truth("error", 3), Seen("failed", "error")),
        (Truth("error", 3), Seen("failed")),
        (Truth("error", 3), Seen("failed", None, 99, 99.0)),  # in no figure
        (SHORT, Seen("failed", "short")),
        (SHORT, Seen("ok", None, 3, 0.30)),
    ],
)
def test_what_is_right(truth: Truth, seen: Seen) -> None:
    assert judge(truth, seen, 0.025).all == ()


@pytest.mark.parametrize(
    "truth, seen, facts, times",
    [
        (OK, replace(RIGHT, outcome="failed"), ("failed, is ok",), ()),
        (Truth("error", 3), RIGHT, ("ok, is failed: error",), ()),
        (Truth("error", 3), Seen("failed", "reset"), ("reason reset, is error",), ()),
        (OK, replace(RIGHT, tokens=7), ("tokens 7, are 8",), ()),
        (OK, replace(RIGHT, tokens=None), ("tokens None, are 8",), ()),
        (SHORT, Seen("ok", None, 8, 0.30), ("tokens 8, are 3",), ()),
        (OK, replace(RIGHT, ttft_s=0.35), (), ("TTFT 350.0 ms, is 300.0 ms",)),
        (OK, replace(RIGHT, ttft_s=0.005), (), ("TTFT 5.0 ms, is 300.0 ms",)),
        (OK, replace(RIGHT, ttft_s=None), (), ("TTFT unknown, is 300.0 ms",)),
        (OK, replace(RIGHT, tpot_s=0.35 / 8), (), ("TPOT 43.8 ms, is 50.0 ms",)),
        (OK, replace(RIGHT, tpot_s=None), (), ("TPOT unknown, is 50.0 ms",)),
        (BUFFERED, replace(RIGHT, tpot_s=0.0), (f"TPOT 0.0 ms, {LUMPED}",), ()),
        (BUFFERED, replace(RIGHT, tpot_s=9.0), (f"TPOT 9000.0 ms, {LUMPED}",), ()),
        (BUFFERED, replace(TOLD, tpot_s=None), (), ("tokens in several reads",)),
        (OK, replace(TOLD, coalesced=True), (), ("most tokens in one read",)),
        (OK, replace(TOLD, source="chunks"), ("tokens by chunks, are by usage",), ()),
        (OK, replace(TOLD, prompt_tokens=8), ("prompt tokens 8, are 5",), ()),
        (Truth(answer_s=0.5), TOLD, (), ("answer 300.0 ms, is 500.0 ms",)),
    ],
)
def test_what_is_wrong(
    truth: Truth, seen: Seen, facts: tuple[str, ...], times: tuple[str, ...]
) -> None:
    found = judge(truth, seen, 0.025)
    assert (found.facts, found.times) == (facts, times)


def test_a_time_within_the_tolerance_is_right() -> None:
    late = replace(RIGHT, ttft_s=0.39)
    assert judge(OK, late, 0.1).all == ()
    assert judge(OK, late, math.inf).all == ()
    assert judge(OK, late, 0.05).times


def test_every_case_says_what_it_is_about() -> None:
    for case in CASES:
        assert case.about.strip()
        assert (case.truth.ttft_s is None) <= (case.truth.outcome == "failed")
        assert case.apis


CASE = Case("plain", "a case", lambda w: sent(w.whole()))


def test_the_table_has_a_line_a_row_and_a_count() -> None:
    good = Row.of(CASE, "chat", RIGHT, 0.02)
    bad = Row.of(replace(CASE, truth=Truth("error", 3)), "chat", RIGHT, 0.02)
    absent = Row.of(CASE, "chat", None, 0.02)
    head, first, second, third, count = as_table([good, bad, absent])
    assert head.split() == ["case", "expected", "seen", "verdict"]
    assert first.endswith("ok, 8 tokens, 300.0 ms + 50.0 ms  right")
    assert second.split("  ")[-1] == "ok, is failed: error"
    assert third.endswith("not run")
    assert count == "1 of 3 rows are right"


def test_the_lines_are_strict_json() -> None:
    rows_ = [Row.of(CASE, "chat", RIGHT, 0.02), Row.of(CASE, "chat", None, 0.02)]
    first, second = (json.loads(line, parse_constant=pytest.fail) for line in as_lines(rows_))
    assert first["id"] == "chat/plain"
    assert (first["green"], first["faults"]) == (True, [])
    assert first["seen"]["ttft_ms"] == first["expected"]["ttft_ms"] == 300
    assert (second["green"], second["seen"]) == (False, None)


def written(tmp_path: Path, results: Any, **more: Any) -> Path:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": results, **more}), encoding="utf-8")
    return path


GOOD = {"outcome": "ok", "tokens": 8, "ttft_ms": 301, "tpot_ms": 50.2}


def test_another_clients_file_is_judged_in_the_dialects_that_it_speaks(tmp_path: Path) -> None:
    path = written(tmp_path, {"chat/plain": GOOD, "chat/error-object": GOOD}, client="x 1")
    found = {row.case.name: row for row in judged(path, 0.025)}
    assert len(found) == sum(api == "chat" for _, api in rows())
    assert found["plain"].green
    assert found["error-object"].faults.facts == ("ok, is failed: error",)
    assert found["crlf"].seen is None
    assert not found["crlf"].green


@pytest.mark.parametrize(
    "results, what",
    [
        ({}, "no results"),
        ({"chat/nope": GOOD}, "no such row: chat/nope"),
        ({"chat/plain": {"outcome": "fine"}}, "/results/chat~1plain/outcome"),
        ({"chat/plain": GOOD | {"ttft": 1}}, "/results/chat~1plain/ttft"),
        ({"chat/plain": GOOD | {"tokens": -1}}, "/results/chat~1plain/tokens"),
        ([], "/results"),
    ],
)
def test_a_file_that_is_not_as_described_is_refused(
    results: Any, what: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        judged(written(tmp_path, results), 0.025)
    assert what in refused.value.what
    assert "conformance.md" in refused.value.hint


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"results": {"chat/plain": {"ttft_ms": NaN}}}', encoding="utf-8")
    with pytest.raises(DocumentError):
        judged(path, 0.025)
