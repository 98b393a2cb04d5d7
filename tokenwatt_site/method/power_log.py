"""A log of power readings: a first line that says what was read, then one line a reading.

The readings are rows as in the evidence of a run (``method.evidence``), their times whole
microseconds from the log's begin.
"""

from collections.abc import Mapping
from typing import Any

from tokenwatt_site.method.meters import MeterFacts

KIND = "tokenwatt-power"
VERSION = 1


def header_row(facts: MeterFacts, began: str) -> dict[str, Any]:
    """Return a log's first line; ``began`` is the wall clock's time, a label."""
    return {"log": KIND, "version": VERSION, "began": began, "meter": facts.row()}


def facts_of(row: Mapping[str, Any]) -> MeterFacts:
    """Return the meter that a log's first line describes.

    Raises:
        ValueError: it isn't such a line, or of a later version.
    """
    if row.get("log") != KIND or row.get("version") != VERSION:
        raise ValueError("no log of power readings of this version")
    return MeterFacts.of_row(row["meter"])
