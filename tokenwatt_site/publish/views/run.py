"""A run's page, put together: what it shows and in which order."""

import re
from dataclasses import dataclass, replace

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.method.derived import hardware_of
from tokenwatt_site.publish.charts.chart import Chart
from tokenwatt_site.publish.charts.energy import energy_chart
from tokenwatt_site.publish.charts.latency import latency_charts
from tokenwatt_site.publish.charts.load import Load, load_of
from tokenwatt_site.publish.charts.overload import overload_charts
from tokenwatt_site.publish.charts.sweep import sweep_charts
from tokenwatt_site.publish.charts.timeline import timeline_chart
from tokenwatt_site.publish.model import Content, RunEntry, ShownFinding
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.cite import Citation, citation
from tokenwatt_site.publish.views.differences import (
    DeltaTable,
    KeyTable,
    configs_of,
    curves_of,
    delta_table,
    key_table,
    scope_of_all,
)
from tokenwatt_site.publish.views.figure_view import FigureView, figure_views
from tokenwatt_site.publish.views.figures_csv import figures_csv
from tokenwatt_site.publish.views.fleet import FleetView, fleet_view
from tokenwatt_site.publish.views.headline import Figure, Source, headline
from tokenwatt_site.publish.views.power import PowerView, Row, power_view
from tokenwatt_site.publish.views.run_texts import (
    Download,
    PercentileRow,
    RunTexts,
    downloads,
    percentiles,
    provenance,
    run_texts,
    spec_file,
)
from tokenwatt_site.publish.views.search import SearchView, search_view
from tokenwatt_site.publish.views.setup import SetupView, setup_view
from tokenwatt_site.publish.views.slo import SloView, slo_view
from tokenwatt_site.publish.views.standing import Standing, standing
from tokenwatt_site.publish.views.windows import (
    WindowTable,
    preempted,
    repeats_table,
    search_table,
    server_table,
)

_NOTE = re.compile(r"^(.+?) \(([^()]+)\)$", re.DOTALL)
_LEDE_MAX = 320
_UNBROKEN_MAX = 22


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: its template, its anchor, its name in the contents."""

    id: str
    nav: str


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything on a run's page."""

    entry: RunEntry
    source: Source
    standing: Standing
    heading: tuple[str, str, str]
    """The title before, at and after the model's name, which doesn't break at its hyphens."""
    aside: str
    """What the title has in brackets at its end."""
    lede: str
    sections: tuple[Section, ...]
    headline: tuple[Figure, ...]
    slo: SloView
    load: Load
    charts: dict[str, tuple[FigureView, ...]]
    """By section."""
    power: PowerView
    repeats: WindowTable | None
    search: WindowTable | None
    found: SearchView | None
    """What an adaptive search says of itself."""
    server: WindowTable | None
    preempted: int
    setup: SetupView
    deltas: DeltaTable | None
    keys: KeyTable | None
    fleet: FleetView | None
    errors: tuple[ShownFinding, ...]
    warnings: tuple[ShownFinding, ...]
    cite: Citation
    texts: RunTexts
    percentiles: tuple[PercentileRow, ...]
    provenance: tuple[Row, ...]
    csv: bytes

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The files beside the page."""
        return downloads(self.entry, len(self.csv))

    @property
    def spec_file(self) -> str:
        """The spec's file beside the page."""
        return spec_file(self.entry)

    @property
    def run(self) -> Run:
        """The document."""
        return self.entry.run

    @property
    def config(self) -> Config:
        """The configuration that the headline shows: the baseline."""
        return self.source.config

    @property
    def all_charts(self) -> list[Chart]:
        """The charts of all sections."""
        return [view.chart for views in self.charts.values() for view in views]

    @property
    def plain(self) -> bool:
        """Whether the document carries summary figures only."""
        return not self.charts and self.repeats is None

    @property
    def description(self) -> str:
        """One sentence for search results."""
        f = self.source.figures
        parts: list[str] = []
        if f.j_per_token is not None and f.tok_s_kw is not None:
            parts.append(
                f"{units.number(f.j_per_token, 'j_per_token')} J per output token and "
                f"{units.number(f.tok_s_kw, 'tok_s_kw')} tok/s/kW"
            )
        parts.append(f"within {words.promise(self.run)}")
        tags = [tag.word for tag in self.standing.tags]
        return ", ".join([" ".join(parts), self.source.scope, *tags]) + "."


def run_view(entry: RunEntry, content: Content) -> RunView:
    """Return what the page of ``entry`` shows."""
    run = entry.run
    index = next((i for i, config in enumerate(run.configs) if config.key == "baseline"), 0)
    source = Source.of(run, index)
    errors = tuple(f for f in entry.findings if f.severity == "error")
    warnings = tuple(f for f in entry.findings if f.severity == "warning")
    stands = standing(run, content, len(errors), len(warnings))
    named = configs_of(run)
    joined = len(named) > 1
    load = load_of(run, source.config)
    charts = {name: figure_views(found) for name, found in _charts(source, stands, load) if found}
    if joined:
        scope = scope_of_all(named) or "power scopes differ"
        over = overload_charts(curves_of(named), run.slo, scope, stands.marking)
        charts |= {"compare": figure_views(over)} if over else {}
    match = _NOTE.match(run.title)
    view = RunView(
        entry=entry,
        source=source,
        standing=stands,
        heading=_heading(match[1] if match else run.title, run.model.name),
        aside=match[2] if match else "",
        lede=_lede(run.summary),
        sections=(),
        headline=headline(source),
        slo=slo_view(source),
        load=load,
        charts=charts,
        power=power_view(source),
        repeats=repeats_table(source.config),
        search=search_table(source.config),
        found=search_view(run, source.config),
        server=server_table(source.config),
        preempted=preempted(source.config),
        setup=setup_view(source),
        deltas=delta_table(named) if joined else None,
        keys=key_table(named) if joined else None,
        fleet=fleet_view(source, run.fleet.cards if run.fleet else None),
        errors=errors,
        warnings=warnings,
        cite=citation(source, content.config),
        texts=run_texts(run, source.config, load, entry.findings),
        percentiles=percentiles(source.config),
        provenance=provenance(entry),
        csv=figures_csv(run),
    )
    return _with_sections(view)


def _with_sections(view: RunView) -> RunView:
    fleet = f"{view.fleet.cards:,} cards" if view.fleet else ""
    every = (
        ("slo", "Service level", bool(view.slo.latency or view.slo.quality)),
        ("sweep", "Sweep", "sweep" in view.charts),
        ("search", "Search", view.found is not None),
        ("latency", "Latency", "latency" in view.charts or _dists(view.config)),
        ("time", "Over time", "time" in view.charts),
        ("power", "Power and energy", True),
        ("windows", "Windows", view.repeats is not None or view.search is not None),
        ("compare", "Side by side", view.deltas is not None),
        ("config", "Configuration", True),
        ("fleet", fleet, view.fleet is not None),
        ("reproduce", "Reproduce", True),
        ("notcov", "Not covered", True),
        ("checks", "Checks", True),
        ("prov", "Provenance", True),
        ("cite", "Cite and download", True),
    )
    return replace(view, sections=tuple(Section(name, nav) for name, nav, there in every if there))


def _dists(config: Config) -> bool:
    return any((config.ttft_ms, config.tpot_ms, config.itl_ms, config.e2e_ms))


def _charts(source: Source, stands: Standing, load: Load) -> list[tuple[str, list[Chart]]]:
    run, config, marking = source.run, source.config, stands.marking
    gain = (config.energy.uncertainty or {}).get("gain_pct") if config.energy else None
    energy = energy_chart(load, source.scope, float(gain) if gain else None, marking)
    hardware = hardware_of(run, config)
    each_w = config.power_limit_w or hardware.power_limit_w
    limit_w = float(each_w) * hardware.count if each_w and hardware.count else None
    time = None
    if config.series is not None:
        time = timeline_chart(config.series, source.scope, limit_w, marking)
    return [
        ("sweep", sweep_charts(load, run.slo, marking)),
        ("latency", latency_charts(config, run.slo, marking)),
        ("time", [time] if time else []),
        ("power", [energy] if energy else []),
    ]


def _heading(title: str, model: str) -> tuple[str, str, str]:
    if not model or model not in title or len(model) > _UNBROKEN_MAX:
        return title, "", ""
    before, _, after = title.partition(model)
    return before, model, after


def _lede(summary: str) -> str:
    """Return the sentence that names the promise, else the beginning: the whole stands below."""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z0-9])", summary)
    found = next((s for s in sentences if "p99" in s), None)
    if found is not None and len(found) <= _LEDE_MAX:
        return found
    lede = ""
    for sentence in sentences:
        if lede and len(lede) + len(sentence) > _LEDE_MAX:
            break
        lede = f"{lede} {sentence}".strip()
    return lede if len(lede) <= 2 * _LEDE_MAX else lede[: 2 * _LEDE_MAX].rstrip() + "…"
