"""Pages of one accelerator, model or engine: its facts and its runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.hardware import Figure, Hardware
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.model import Content, RunEntry
from tokenwatt_site.publish.views.links import run_address, slug
from tokenwatt_site.publish.views.results import Results, results
from tokenwatt_site.publish.views.standing import is_listed


@dataclass(frozen=True, slots=True)
class FactRow:
    """A rated figure and where it comes from."""

    name: str
    value: str
    source: str
    as_of: str
    checked: bool


@dataclass(frozen=True, slots=True)
class GroupView:
    """One accelerator, model or engine."""

    kind: str
    """``hardware``, ``models`` or ``engines``: the first part of the address."""
    slug: str
    name: str
    facts: tuple[FactRow, ...]
    results: Results
    former: tuple[tuple[str, str, str], ...]
    """Address, title and status of superseded and retracted runs."""

    @property
    def address(self) -> str:
        """The page's address."""
        return f"{self.kind}/{self.slug}/"


def group_views(content: Content) -> list[GroupView]:
    """Return every accelerator, model and engine of a run, and every accelerator with facts."""
    kinds = (("hardware", hardware_names), ("models", model_names), ("engines", engine_names))
    return [view for kind, names in kinds for view in _views(content, kind, names)]


def hardware_slug(content: Content, name: str) -> str:
    """Return the slug of an accelerator: its file's name where it has facts."""
    facts = content.hardware.items()
    return next((key for key, each in facts if name in (each.name, *each.aliases)), slug(name))


def _views(content: Content, kind: str, names: Callable[[Run], list[str]]) -> Iterator[GroupView]:
    """Yield the pages of one kind; names that differ in case or signs only share a page."""
    found: dict[str, tuple[str, list[RunEntry]]] = {}
    if kind == "hardware":
        found = {key: (facts.name, []) for key, facts in content.hardware.items()}
    for entry in content.runs:
        for name in names(entry.run):
            key = hardware_slug(content, name) if kind == "hardware" else slug(name)
            entries = found.setdefault(key, (name, []))[1]
            if entry not in entries:
                entries.append(entry)
    for key, (name, entries) in sorted(found.items()):
        facts = content.hardware.get(key) if kind == "hardware" else None
        yield GroupView(
            kind,
            key,
            name,
            _facts(facts) if facts else (),
            results(content, entries),
            tuple(_former(entry.run) for entry in entries if not is_listed(entry.run)),
        )


def _former(run: Run) -> tuple[str, str, str]:
    return run_address(run.id), run.title, run.status


def hardware_names(run: Run) -> list[str]:
    """Return the accelerators of a run."""
    every = [run.hardware, *(c.hardware for c in run.configs if c.hardware)]
    return [h.accelerator for h in every if h.accelerator]


def model_names(run: Run) -> list[str]:
    """Return the models of a run."""
    return [run.model.name, *(c.model.name for c in run.configs if c.model)]


def engine_names(run: Run) -> list[str]:
    """Return the engines of a run, without their versions."""
    every = [run.software, *(c.software for c in run.configs if c.software)]
    return [s.engine for s in every if s.engine]


def _facts(hardware: Hardware) -> tuple[FactRow, ...]:
    named: tuple[tuple[str, Figure | None, str], ...] = (
        ("Memory bandwidth", hardware.rated_bw_tbs, "TB/s"),
        ("Memory", hardware.memory_gb, "GB"),
        ("Thermal design power", hardware.tdp_w, "W"),
    )
    return tuple(
        FactRow(
            name,
            f"{units.significant(figure.value)} {unit}",
            figure.source,
            figure.as_of,
            figure.checked,
        )
        for name, figure, unit in named
        if figure is not None
    )
