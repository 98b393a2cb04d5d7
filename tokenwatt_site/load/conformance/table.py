"""The rows of a check, for people and for machines."""

import json
from collections.abc import Sequence
from typing import Any

from tokenwatt_site.load.conformance.case import Truth
from tokenwatt_site.load.conformance.listing import row_id
from tokenwatt_site.load.conformance.verdict import Row, Seen

_HEAD = ("case", "expected", "seen", "verdict")


def as_table(rows: Sequence[Row]) -> list[str]:
    """Return a table with a line a row, and how many are green."""
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(3)]
    green = sum(row.green for row in rows)
    return [
        *("  ".join([*map(str.ljust, line[:3], widths), line[3]]) for line in cells),
        f"{green} of {len(rows)} rows are right",
    ]


def as_lines(rows: Sequence[Row]) -> list[str]:
    """Return a line of JSON a row. Times in milliseconds."""
    return [json.dumps(_object(row), allow_nan=False) for row in rows]


def _cells(row: Row) -> tuple[str, str, str, str]:
    seen = "not run" if row.seen is None else _seen(row.seen)
    verdict = "; ".join(row.faults.all) or ("right" if row.green else "not run")
    return row_id(row.case, row.api), _expected(row.case.truth), seen, verdict


def _expected(truth: Truth) -> str:
    if truth.reason:
        return f"failed: {truth.reason}"
    return _figures(truth.tokens, truth.ttft_s, truth.tpot_s)


def _seen(seen: Seen) -> str:
    if seen.outcome == "failed":
        return f"failed: {seen.reason}" if seen.reason else "failed"
    return _figures(seen.tokens, seen.ttft_s, seen.tpot_s)


def _figures(tokens: int | None, ttft_s: float | None, tpot_s: float | None) -> str:
    return f"ok, {tokens} tokens, {_ms(ttft_s)} + {_ms(tpot_s)}"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:.1f} ms"


def _object(row: Row) -> dict[str, Any]:
    truth, seen = row.case.truth, row.seen
    told: dict[str, Any] = {
        "id": row_id(row.case, row.api),
        "green": row.green,
        "faults": list(row.faults.all),
        "expected": {
            "outcome": truth.outcome,
            "reason": truth.reason,
            "tokens": truth.tokens,
            "ttft_ms": _number_ms(truth.ttft_s),
            "tpot_ms": _number_ms(truth.tpot_s),
        },
        "seen": None,
    }
    if seen is not None:
        told["seen"] = {
            "outcome": seen.outcome,
            "reason": seen.reason,
            "tokens": seen.tokens,
            "ttft_ms": _number_ms(seen.ttft_s),
            "tpot_ms": _number_ms(seen.tpot_s),
        }
    return told


def _number_ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)
