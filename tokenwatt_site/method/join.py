"""Runs joined into one document: a baseline and its candidates.

The top level is the baseline's. A configuration carries what differs from it (spec, accelerators,
engine, model, meter, evidence) and always the hash of the document it was taken from.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tokenwatt_site.documents import doors
from tokenwatt_site.documents.run import Run
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.derived import scope_of

# from the least that can be said of a document to the most
_STATUS = ("retracted", "superseded", "draft", "demo", "imported", "published")
_OWN = ("run_id", "spec", "hardware", "software", "model", "power", "evidence", "variance_band_pct")
_PROMISE = ("slo.ttft_p99_ms", "slo.tpot_p99_ms", "workload.sha256", "simulated")
_LOAD = tuple(
    f"workload.{name}"
    for name in ("trace", "timestamps", "input_tokens", "output_tokens", "shared_prefix")
)
_REPORT = re.compile(r"(tokenwatt|tokenwatt-site) report ")


@dataclass(frozen=True, slots=True)
class Source:
    """A run that is joined."""

    run: Run
    name: str
    """The file as the author named it."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the author says of the joined document; None keeps what the runs say."""

    title: str | None = None
    id: str | None = None
    summary: str | None = None
    fleet_cards: int | None = None


def join(sources: Sequence[Source], wishes: Wishes) -> Run:
    """Return one document of these runs, the baseline first and candidates in their order.

    Raises:
        UsageError: no baseline or several, a run of several configurations, or runs that promise
            or measure different things.
    """
    ordered = in_order(sources)
    base = ordered[0]
    for other in ordered[1:]:
        _comparable(base, other)
    data = doors.dump(base.run)
    data["configs"] = [_config(base, each, index) for index, each in enumerate(ordered)]
    if len(ordered) > 1:
        _together(data, [each.run for each in ordered])
    data["id"] = wishes.id or base.run.id
    data["title"] = wishes.title or _title(ordered)
    data["summary"] = wishes.summary or _summary(ordered)
    if wishes.fleet_cards is not None:
        data["fleet"] = {"cards": wishes.fleet_cards}
    data["reproduce"] = _reproduce(ordered, data["title"])
    return doors.parse_run(data, "the joined document")


def key_of(index: int) -> str:
    """Return the key at a place of the document: baseline, candidate, then candidate-2 and on."""
    return "baseline" if not index else "candidate" + (f"-{index}" if index > 1 else "")


def in_order(sources: Sequence[Source]) -> list[Source]:
    """Return the sources with the baseline first.

    Raises:
        UsageError: no baseline or several, or a run of several configurations.
    """
    for source in sources:
        if len(source.run.configs) != 1:
            raise UsageError(
                f"{source.name}: /configs: holds {len(source.run.configs)} configurations",
                "join the runs it was made of, each as it was measured",
            )
    base = [each for each in sources if each.run.configs[0].key == "baseline"]
    if len(base) != 1:
        names = ", ".join(each.name for each in base) or "none of them"
        raise UsageError(
            f"exactly one run must be the baseline; here it is {names}",
            "measure with --role baseline or --role candidate; the role is /configs/0/key",
        )
    return base + [each for each in sources if each is not base[0]]


def _comparable(base: Source, other: Source) -> None:
    """Refuse runs that differ in what they promise, are asked or are measured by."""
    pairs = [
        *((key, _at(base.run, key), _at(other.run, key)) for key in _PROMISE),
        *((f"spec.{key}", _at(base.run.spec, key), _at(other.run.spec, key)) for key in _LOAD),
        ("energy.scope", _scope(base), _scope(other)),
    ]
    for key, one, two in pairs:
        if one != two:
            raise UsageError(
                f"{key}: {one!r} in {base.name}, {two!r} in {other.name}",
                "only runs with the same promise, workload and power scope share a document",
            )


def _at(model: Any, key: str) -> Any:
    """Return a value by its dotted key; what a document leaves out, as simulated, is None."""
    for part in key.split("."):
        model = getattr(model, part)
    return model.model_dump() if hasattr(model, "model_dump") else model or None


def _scope(source: Source) -> str | None:
    return scope_of(source.run, source.run.configs[0])


def _config(base: Source, source: Source, index: int) -> dict[str, Any]:
    """Return a configuration with its place in the document and what is its own."""
    top, data = doors.dump(base.run), doors.dump(source.run)
    config: dict[str, Any] = data["configs"][0]
    config["key"] = key_of(index)
    config["source_sha256"] = source.sha256
    for key in _OWN:
        if index and data.get(key) is not None and data[key] != top.get(key):
            config[key] = data[key]
    config["accuracy"] = _accuracy(base, source)
    return config


def _accuracy(base: Source, source: Source) -> dict[str, Any] | None:
    """Return the accuracy with its difference to the baseline's on the same suite."""
    mine, theirs = source.run.configs[0].accuracy, base.run.configs[0].accuracy
    if mine is None:
        return None
    data: dict[str, Any] = mine.model_dump(mode="json", exclude_unset=True)
    gates = {each.run.accuracy and each.run.accuracy.suite for each in (base, source)}
    same = theirs is not None and len(gates) == 1
    data["delta_pts"] = round(mine.score - theirs.score, 9) if same and theirs else None
    return data


def _together(data: dict[str, Any], runs: Sequence[Run]) -> None:
    """Set what the document says of all its configurations."""
    statuses = [run.status for run in runs]
    data["status"] = min(statuses, key=_STATUS.index)
    dates = [run.published for run in runs]
    data["published"] = max(filter(None, dates)) if all(dates) else None
    data["not_covered"] = list(dict.fromkeys(line for run in runs for line in run.not_covered))
    if any(run.quick for run in runs):
        data["quick"] = True
    data.pop("version", None)
    missing = {
        pointer: why.model_dump(mode="json")
        for index, run in enumerate(runs)
        for pointer, why in _missing(run, index, data["configs"][index])
    }
    _band(data, runs, missing)
    data.pop("missing", None)
    if missing:
        data["missing"] = missing


def _band(data: dict[str, Any], runs: Sequence[Run], missing: dict[str, Any]) -> None:
    """Set the largest band; null, with the reason, where one configuration has none."""
    bands = [run.variance_band_pct for run in runs]
    known = [band for band in bands if band is not None]
    data["variance_band_pct"] = max(known) if len(known) == len(bands) else None
    for config, band in zip(data["configs"], bands, strict=True):
        config.pop("variance_band_pct", None)
        if band is not None and band != data["variance_band_pct"]:
            config["variance_band_pct"] = band
    whys = [(run.missing or {}).get("/variance_band_pct") for run in runs]
    why = next(filter(None, whys), None)
    if why is not None:
        missing.setdefault("/variance_band_pct", why.model_dump(mode="json"))


def _missing(run: Run, index: int, config: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the reasons of missing figures under the pointers they have in the joined document."""
    found: list[tuple[str, Any]] = []
    for pointer, why in (run.missing or {}).items():
        first = pointer.split("/")[1] if "/" in pointer else ""
        if not index:
            found.append((pointer, why))
        elif first == "configs":
            found.append((pointer.replace("/configs/0", f"/configs/{index}", 1), why))
        elif first in config and first in _OWN:
            found.append((f"/configs/{index}{pointer}", why))
    return found


def _title(ordered: Sequence[Source]) -> str:
    count = len(ordered) - 1
    if not count:
        return ordered[0].run.title
    return f"{ordered[0].run.title}, and {count} candidate{'s' if count > 1 else ''}"


def _summary(ordered: Sequence[Source]) -> str:
    summary = ordered[0].run.summary
    labels = [f"“{_label(each)}”" for each in ordered[1:]]
    return f"{summary} Compared with {' and '.join(labels)}." if labels else summary


def _label(source: Source) -> str:
    return source.run.configs[0].label


def _reproduce(ordered: Sequence[Source], title: str) -> str:
    """Return every run's own commands, and then the one that joins them."""
    commands = [
        command
        for each in ordered
        for command in each.run.reproduce.split("\n\n")
        if command.strip() and not _REPORT.match(command)
    ]
    files = (f"runs/{PurePath(each.name).name}" for each in ordered)
    report = ["tokenwatt", "report", *files, "--title", title]
    return "\n\n".join([*dict.fromkeys(commands), shlex.join(report)])
