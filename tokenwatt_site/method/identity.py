"""Whether a measurement that is resumed would go on with what it was begun with."""

from collections.abc import Mapping, Sequence
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.assemble import Resolved
from tokenwatt_site.method.events import Begin, begin_row
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.verify import Mismatch, differences

_HINT = "measure anew, with another --out; windows of two set-ups are never mixed"
_OWN = ("run_id", "started", "notes", "origin", "resumed")
"""Of the run, not of what it measures."""


def same_spec(begin: Begin, spec: Spec) -> None:
    """Refuse another spec than the one that the run was begun with.

    Raises:
        UsageError: naming the first key that differs.
    """
    then, now = begin.spec.model_dump(mode="json"), spec.model_dump(mode="json")
    for found in differences(then, now):
        raise UsageError(
            f"spec field {_dotted(found)}: {found.published!r} when the run was begun, "
            f"{found.recomputed!r} now",
            "leave SPEC out to go on with the run's own spec, or measure anew",
        )


def same_set_up(
    begin: Begin, resolved: Resolved, meters: Sequence[MeterFacts], server: Mapping[str, Any]
) -> None:
    """Refuse another server, accelerator, meter or method than the run was begun with.

    Raises:
        UsageError: naming the first that differs.
    """
    then = _facts(begin_row(begin.spec, begin.resolved, begin.meters, begin.server))
    now = _facts(begin_row(begin.spec, resolved, meters, server))
    then["method"] = begin.method
    for found in differences(then, now):
        raise UsageError(
            f"{_dotted(found)} was {found.published!r} when the run was begun, and is "
            f"{found.recomputed!r} now",
            _HINT,
        )


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in row["resolved"].items() if key not in _OWN}
    kept = {key: row[key] for key in ("method", "server")}
    meters = [_meter(each) for each in row["meters"]]
    return kept | found | {"meters": meters}


def _meter(row: dict[str, Any]) -> dict[str, Any]:
    """Return a meter's facts without how far its hosts' clocks were off: that is measured anew."""
    hosts = [{key: host[key] for key in ("name", "role")} for host in row["hosts"]]
    return row | {"devices": list(row["devices"]), "hosts": hosts}


def _dotted(found: Mismatch) -> str:
    return found.place.strip("/").replace("/", ".")
