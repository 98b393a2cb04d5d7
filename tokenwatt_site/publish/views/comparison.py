"""An authored comparison: the claim, differences, settings, charts, fleet, accuracy gate."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Run
from tokenwatt_site.method.compare import Side
from tokenwatt_site.method.derived import hardware_of
from tokenwatt_site.publish.charts.chart import Chart
from tokenwatt_site.publish.charts.overload import overload_charts
from tokenwatt_site.publish.charts.sweep import Marking
from tokenwatt_site.publish.model import ComparisonEntry, Content
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.differences import (
    DeltaTable,
    KeyTable,
    Named,
    curves_of,
    delta_table,
    key_table,
    name_sides,
    scope_of_all,
)
from tokenwatt_site.publish.views.figure_view import FigureView, figure_views
from tokenwatt_site.publish.views.fleet import FleetView, fleet_view
from tokenwatt_site.publish.views.links import run_address
from tokenwatt_site.publish.views.standing import Banner, is_quick, is_simulated

FLEET_CARDS = 64
"""Size of the projected fleet where the baseline's document names none."""


@dataclass(frozen=True, slots=True)
class FleetColumns:
    """The projections side by side."""

    cards: int
    heads: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...]
    """Name and unit; value, exact value and range of each configuration."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One configuration at the accuracy gate."""

    name: str
    score: str
    difference: str
    gate: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Everything on a comparison's page."""

    entry: ComparisonEntry
    named: tuple[Named, ...]
    banners: tuple[Banner, ...]
    simulated: bool
    meta: tuple[str, ...]
    deltas: DeltaTable
    keys: KeyTable
    figures: tuple[FigureView, ...]
    fleet: FleetColumns | None
    gate: tuple[GateRow, ...]
    not_covered: tuple[str, ...]

    @property
    def charts(self) -> list[Chart]:
        """The charts of the page."""
        return [view.chart for view in self.figures]


def comparison_view(entry: ComparisonEntry, content: Content) -> ComparisonView:
    """Return what the page of ``entry`` shows."""
    runs = {each.run.id: each.run for each in content.runs}
    others = [run_id for run_id in entry.run_ids if run_id != entry.baseline]
    sides = [_side(runs[run_id]) for run_id in (entry.baseline, *others)]
    named = tuple(name_sides([(side, run_address(side.run.id)) for side in sides]))
    every = [side.run for side in sides]
    simulated = any(is_simulated(run) for run in every)
    quick = any(is_quick(run) for run in every)
    word = "simulated" if simulated else "quick" if quick else ""
    marking = Marking("SIMULATED" if simulated else "", word)
    scope = scope_of_all(named) or "power scopes differ"
    charts = overload_charts(curves_of(named), sides[0].run.slo, scope, marking)
    return ComparisonView(
        entry=entry,
        named=named,
        banners=tuple(_banners(every)),
        simulated=simulated,
        meta=_meta(named, scope),
        deltas=delta_table(named),
        keys=key_table(named),
        figures=figure_views(charts),
        fleet=_fleet(named),
        gate=_gate(named),
        not_covered=tuple(dict.fromkeys(text for run in every for text in run.not_covered)),
    )


def _side(run: Run) -> Side:
    return Side(run, next((c for c in run.configs if c.key == "baseline"), run.configs[0]))


def _banners(runs: Sequence[Run]) -> list[Banner]:
    banners: list[Banner] = []
    simulated = [run for run in runs if is_simulated(run)]
    if simulated:
        number = "All" if len(simulated) == len(runs) else f"{len(simulated)} of {len(runs)}"
        text = f"{number} runs come from the embedded engine, not from a machine."
        banners.append(Banner("s", "Simulated.", text))
    quick = [run for run in runs if is_quick(run)]
    if quick:
        number = "All" if len(quick) == len(runs) else f"{len(quick)} of {len(runs)}"
        text = f"{number} runs have short windows or few repeats: too little to rank by."
        banners.append(Banner("q", "Quick mode.", text))
    banners += [
        Banner("r", "Retracted.", f"{run.title}: the figures must not be used.")
        for run in runs
        if run.status == "retracted"
    ]
    return banners


def _meta(named: Sequence[Named], scope: str) -> tuple[str, ...]:
    run, config = named[0].side.run, named[0].side.config
    what = f"{run.model.name} on {words.machine(run, config)}"
    workload = run.workload.trace or "own workload"
    return (what, f"{workload}, {words.promise(run)}", f"Power: {scope}")


def _fleet(named: Sequence[Named]) -> FleetColumns | None:
    fleet = named[0].side.run.fleet
    cards = fleet.cards if fleet else FLEET_CARDS
    if not all(hardware_of(one.side.run, one.side.config).count for one in named):
        return None
    views = [fleet_view(one.source, cards) for one in named]
    found = [view for view in views if view is not None]
    if len(found) < len(named):
        return None
    return FleetColumns(cards, tuple(one.name for one in named), _fleet_rows(found))


def _fleet_rows(
    views: Sequence[FleetView],
) -> tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...]:
    """Return the rows that every projection has."""
    tables = [{(row.name, row.unit): row for row in view.rows} for view in views]
    return tuple(
        (
            name,
            unit,
            tuple((t[name, unit].value, t[name, unit].exact, t[name, unit].span) for t in tables),
        )
        for name, unit in tables[0]
        if all((name, unit) in table for table in tables)
    )


def _gate(named: Sequence[Named]) -> tuple[GateRow, ...]:
    """Return the accuracy gate; empty where no configuration has a score."""
    scores = [one.side.config.accuracy for one in named]
    if all(score is None for score in scores):
        return ()
    gate = named[0].side.run.accuracy
    base = scores[0].score if scores[0] else None
    rows: list[GateRow] = []
    for number, (one, score) in enumerate(zip(named, scores, strict=True)):
        delta = score.score - base if score and base is not None else None
        word = (
            "reference" if number == 0 else _gate_word(delta, gate.threshold_pts if gate else None)
        )
        rows.append(
            GateRow(
                one.name,
                units.number(score.score, "pct") if score else "",
                units.fixed(delta, 2, signed=True) if number and delta is not None else "",
                word,
            )
        )
    return tuple(rows)


def _gate_word(delta: float | None, threshold: float | None) -> str:
    """A drop inside the threshold is no pass yet: these documents carry no interval of it."""
    if delta is None or threshold is None:
        return "not recorded"
    return "over the allowed drop" if -delta > threshold else "inside the allowed drop, no interval"
