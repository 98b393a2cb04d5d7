"""The content folder, gathered and checked whole before anything is written.

Everything that is wrong is collected and told at once. A file that can't be used stops the build;
a run document that can't be read is left out and told, so that the other runs are still built,
unless the change log names it: a published page doesn't vanish for a broken file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tokenwatt_site.documents import yamlfile
from tokenwatt_site.documents.hardware import Hardware, by_name, parse_hardware
from tokenwatt_site.publish import authored
from tokenwatt_site.publish import content_files as files
from tokenwatt_site.publish.model import (
    Change,
    Content,
    Grid,
    Price,
    RunEntry,
    SiteConfig,
)
from tokenwatt_site.publish.problems import Problem
from tokenwatt_site.publish.reader import Reader
from tokenwatt_site.publish.run_entry import Rules, Waivers, load_entry
from tokenwatt_site.publish.tree import Tree


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content, what is wrong with it, and the links that are still to be checked."""

    content: Content
    problems: tuple[Problem, ...]
    links: tuple[authored.AuthoredLink, ...]


def load(tree: Tree, *, today: str, drafts: bool = False) -> Loaded:
    """Load a content folder.

    Args:
        tree: the folder, read.
        today: the ISO date that the documents' dates are checked against.
        drafts: keep runs whose status is draft.
    """
    reader = Reader(tree)
    config = _site(reader)
    hardware = _hardware(reader)
    waivers = _waivers(reader)
    every = _runs(reader, Rules(by_name(hardware.values()), waivers, today))
    shown = {key: each for key, each in every.items() if drafts or each.run.status != "draft"}
    known = authored.Known(shown, every.keys() - shown.keys(), _broken(reader, every))
    _unused(reader, waivers, every, known)
    links: list[authored.AuthoredLink] = []
    content = Content(
        config=config,
        runs=tuple(shown.values()),
        comparisons=tuple(authored.comparisons(reader, known, links)),
        pages=tuple(authored.pages(reader, links)),
        hardware=hardware,
        changes=tuple(_changes(reader, every, known)),
    )
    return Loaded(content, tuple(reader.problems), tuple(links))


def _site(reader: Reader) -> SiteConfig:
    path = "site.yaml"
    if path not in reader.tree.files:
        reader.note(path, f"{reader.tree.name(path)}: no such file", "write it: title: My site")
        return SiteConfig("")
    read = reader.yaml(files.SiteFile, path)
    if read is None:
        return SiteConfig("")
    site, _ = read
    price, grid = site.electricity_price, site.grid
    return SiteConfig(
        title=site.title,
        base_url=site.base_url,
        author=site.author,
        licence=site.licence,
        licence_url=site.licence_url,
        electricity_price=Price(price.per_kwh, price.currency, price.source) if price else None,
        grid=Grid(grid.g_per_kwh, grid.year, grid.place, grid.source) if grid else None,
    )


def _hardware(reader: Reader) -> dict[str, Hardware]:
    found: dict[str, Hardware] = {}
    places: dict[str, str] = {}
    for path, slug in reader.within("hardware"):
        name, raw = reader.tree.name(path), reader.tree.files[path]
        read = reader.attempt(path, lambda: parse_hardware(yamlfile.loads(raw, name), name))  # noqa: B023 - called at once
        if read is None:
            continue
        if places.setdefault(read.name, name) != name:
            reader.note(path, f"{places[read.name]} and {name}: both are {read.name}", "keep one")
        found[slug] = read
    return found


def _waivers(reader: Reader) -> Waivers:
    path = "waivers.yaml"
    if path not in reader.tree.files:
        return {}
    read = reader.yaml(files.WaiversFile, path)
    return files.flat(read[0].entries) if read else {}


def _runs(reader: Reader, rules: Rules) -> dict[str, RunEntry]:
    found: dict[str, RunEntry] = {}
    for path, run_id in reader.within("runs"):
        read = reader.attempt(path, lambda: load_entry(reader.tree, path, rules))  # noqa: B023 - called at once
        if read is not None:
            found[run_id] = read[0]
            reader.problems += read[1]
    return found


def _broken(reader: Reader, runs: Mapping[str, RunEntry]) -> set[str]:
    """Return the ids whose file is there and can't be used."""
    stems = {
        PurePosixPath(each.path).stem for each in reader.problems if each.path.startswith("runs/")
    }
    return stems - runs.keys()


def _unused(
    reader: Reader, waivers: Waivers, runs: Mapping[str, RunEntry], known: authored.Known
) -> None:
    """Note waivers of findings that there aren't: they would hide a later one."""
    used = {
        (run_id, finding.code, finding.pointer)
        for run_id, entry in runs.items()
        for finding in entry.findings
    }
    for run_id, code, pointer in waivers:
        if (run_id, code, pointer) not in used and run_id not in known.broken:
            text = f"{reader.tree.name('waivers.yaml')}: {run_id}: no {code} at {pointer}"
            reader.problems.append(Problem("warning", text, "remove the waiver", "waivers.yaml"))


def _changes(
    reader: Reader, runs: Mapping[str, RunEntry], known: authored.Known
) -> Iterator[Change]:
    """Yield the change log, newest first."""
    path = "changes.yaml"
    read = reader.yaml(files.ChangesFile, path) if path in reader.tree.files else None
    if read is None:
        return
    entries, file = read[0].entries, read[1]
    name = reader.tree.name(path)
    for number, entry in enumerate(entries):
        if number and entry.date < entries[number - 1].date:
            line = file.line((number, "date"))
            reader.note(path, f"{name}:{line}: date: older than the entry above", "append only")
        for index, run_id in enumerate(entry.runs):
            if run_id in runs:
                continue
            if run_id in known.broken:
                _promote(reader, run_id)
            why = "its file is broken" if run_id in known.broken else "no such run in runs/"
            text = f"{name}:{file.line((number, 'runs', index))}: runs: {run_id}: {why}"
            reader.note(path, text, "a published run stays: restore its file")
    for entry in reversed(entries):
        yield Change(entry.date, entry.kind, tuple(entry.runs), entry.reason)


def _promote(reader: Reader, run_id: str) -> None:
    """Make an error of what is wrong with a run that is published."""
    reader.problems = [
        replace(each, severity="error") if each.path == f"runs/{run_id}.json" else each
        for each in reader.problems
    ]
