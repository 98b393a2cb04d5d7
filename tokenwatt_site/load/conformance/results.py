"""What another client saw, by a file that its author wrote."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.base import Count, Number, Strict
from tokenwatt_site.documents.faults import faults
from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.listing import row_id
from tokenwatt_site.load.conformance.verdict import Row, Seen

_SHOWN = 10
_HINT = "docs/conformance.md describes the file; `conformance serve` lists the cases at /cases"


class Result(Strict):
    """One request, by the client's own account."""

    outcome: Literal["ok", "failed"]
    reason: str | None = None
    """In the words of /cases; null: not judged."""
    tokens: Count | None = None
    ttft_ms: Number | None = None
    """First token event, from the request."""
    tpot_ms: Number | None = None
    """Time per output token after the first."""


class Results(Strict):
    """All of them."""

    client: str = ""
    """Name and version, for readers."""
    results: dict[str, Result]
    """By the id of the row."""


def judged(path: Path, tolerance_s: float) -> list[Row]:
    """Return a row for each case in each dialect of which the file has at least one.

    Raises:
        DocumentError: the file can't be read, or is no strict JSON.
        UsageError: it isn't what it should be, or names a row that there isn't.
    """
    told = _parsed(jsonfile.load(path), str(path)).results
    all_rows = {row_id(case, api): (case, api) for case, api in rows()}
    unknown = sorted(told.keys() - all_rows.keys())
    if unknown or not told:
        named = ", ".join(name[:80] for name in unknown[:_SHOWN])
        raise UsageError(f"{path}: {f'no such row: {named}' if unknown else 'no results'}", _HINT)
    spoken = {all_rows[name][1] for name in told}
    return [
        Row.of(case, api, _seen(told[name]) if name in told else None, tolerance_s)
        for name, (case, api) in all_rows.items()
        if api in spoken
    ]


def _parsed(data: object, name: str) -> Results:
    try:
        return Results.model_validate(data)
    except ValidationError as error:
        found = faults(error, data, Results)
    lines = [f"{name}: {fault.pointer or '/'}: {fault.text}" for fault in found[:_SHOWN]]
    raise UsageError("\n".join(lines), _HINT)


def _seen(result: Result) -> Seen:
    return Seen(
        outcome=result.outcome,
        reason=result.reason,
        tokens=result.tokens,
        ttft_s=_seconds(result.ttft_ms),
        tpot_s=_seconds(result.tpot_ms),
    )


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
