"""The conductor of ``verify``: a document, its evidence, what the evidence gives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenwatt_site.documents import doors, jsonfile
from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.method.verify import Mismatch, Part, Verification
from tokenwatt_site.method.verify import verify as hold
from tokenwatt_site.restore import Found, find, restored, strangers_rows


def verify(path: Path) -> Verification:
    """Recompute every figure of a run document from the evidence beside it.

    Raises:
        DocumentError: it is no run document, or its evidence leads elsewhere.
    """
    run, raw = doors.load_run(path)
    data: dict[str, Any] = jsonfile.loads(raw, str(path))
    before = Verification()
    parts = [_part(path, run, index, before) for index in range(len(run.configs))]
    try:
        with strangers_rows():
            result = hold(data, parts)
    except TokenwattError as error:
        result = Verification(not_recomputed=[("", f"NOT_RECOMPUTABLE: {error.what}")])
    result.mismatches[:0] = before.mismatches
    result.not_recomputed[:0] = before.not_recomputed
    result.notes[:0] = before.notes
    return result


def _part(path: Path, run: Run, index: int, told: Verification) -> Part | None:
    """Return what a configuration's evidence gives; None, with the reason told, if it can't be."""
    pointer, named = _named(run, index)
    if not named:
        told.not_recomputed.append((f"/configs/{index}", "NOT_RECOMPUTABLE: it names no evidence"))
        return None
    found = find(path, named)
    if not _whole(found, pointer, told):
        told.not_recomputed.append((f"/configs/{index}", "its evidence isn't what was measured"))
        return None
    try:
        return Part(restored(found), [each.named for each in found])
    except TokenwattError as error:
        told.not_recomputed.append((f"/configs/{index}", f"NOT_RECOMPUTABLE: {error.what}"))
        return None


def _named(run: Run, index: int) -> tuple[str, Sequence[Evidence]]:
    """Return where the evidence of a configuration stands in the document, and its files."""
    own = run.configs[index].evidence
    if own is not None:
        return f"/configs/{index}/evidence", own
    return "/evidence", (run.evidence or ()) if index == 0 else ()


def _whole(found: Sequence[Found], pointer: str, told: Verification) -> bool:
    """Tell whether every file is there, with the length and hash that the document names."""
    whole = True
    for index, each in enumerate(found):
        actual, named = each.actual(), each.named
        if actual is None:
            told.notes.append(f"{named.path} isn't there")
        if each.tail:
            told.notes.append(
                f"{named.path}: {each.tail} bytes behind what the document names weren't read"
            )
        for key in ("bytes", "sha256"):
            there = None if actual is None else getattr(actual, key)
            if there != getattr(named, key):
                place = f"{pointer}/{index}/{key}"
                told.mismatches.append(Mismatch(place, getattr(named, key), there))
                whole = False
    return whole
