"""The home page: three best runs of one model, efficiency against latency, all results."""

import os.path
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.method.derived import (
    repeats,
    spec_of,
    window_j_per_token,
    window_tok_s_kw,
)
from tokenwatt_site.publish.charts.chart import Chart
from tokenwatt_site.publish.charts.efficiency import Curve, efficiency_chart
from tokenwatt_site.publish.charts.load import load_of
from tokenwatt_site.publish.charts.sweep import Marking
from tokenwatt_site.publish.model import Content
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.figure_view import FigureView, figure_views
from tokenwatt_site.publish.views.headline import interval_note
from tokenwatt_site.publish.views.results import ResultRow, Results, results
from tokenwatt_site.publish.views.standing import is_ranked

_NODES = {"node", "node_dc", "node_ac"}


@dataclass(frozen=True, slots=True)
class Card:
    """The best run by one measure."""

    title: str
    value: units.Text
    address: str
    name: str
    note: str


@dataclass(frozen=True, slots=True)
class HomeView:
    """Everything on the home page."""

    results: Results
    model: str
    """The model that cards compare; empty without a ranked run."""
    cards: tuple[Card, ...]
    figures: tuple[FigureView, ...]


def home_view(content: Content) -> HomeView:
    """Return what the home page shows."""
    table = results(content, content.runs)
    rows = [row for group in table.groups for row in group.rows]
    ranked = [row for row in rows if is_ranked(row.source.run)]
    model = _commonest([row.name for row in ranked])
    mine = [row for row in ranked if row.name == model]
    chart = _efficiency(rows, model)
    return HomeView(table, model, _cards(mine), figure_views([chart] if chart else []))


def _commonest(names: Sequence[str]) -> str:
    counts = Counter(names)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def _cards(rows: Sequence[ResultRow]) -> tuple[Card, ...]:
    boards = [r for r in rows if r.source.figures.scope == "board"]
    nodes = [r for r in rows if r.source.figures.scope in _NODES]
    cards = [
        _best("Lowest energy, GPU boards", boards, _energy_card),
        _best("Lowest energy, whole node", nodes, _energy_card),
        _most("Most goodput of an accelerator", rows),
    ]
    return tuple(card for card in cards if card is not None)


def _best(
    title: str, rows: Sequence[ResultRow], make: Callable[[str, ResultRow], Card]
) -> Card | None:
    known = [r for r in rows if r.source.figures.j_per_token is not None]
    best = min(known, key=lambda r: r.source.figures.j_per_token or 0, default=None)
    return make(title, best) if best else None


def _energy_card(title: str, row: ResultRow) -> Card:
    f = row.source.figures
    note = interval_note(repeats(row.source.config.windows, window_j_per_token), "j_per_token")
    efficiency = f"{units.number(f.tok_s_kw or 0, 'tok_s_kw')} tok/s/kW"
    value = units.fmt(f.j_per_token or 0, "j_per_token")
    joined = " · ".join(filter(None, [note or f"n = {row.source.config.repeats}", efficiency]))
    return Card(title, value, row.address, row.detail, joined)


def _most(title: str, rows: Sequence[ResultRow]) -> Card | None:
    known = [r for r in rows if r.source.figures.tok_s_per_gpu is not None]
    if not known:
        return None
    best = max(known, key=lambda r: r.source.figures.tok_s_per_gpu or 0)
    config, f = best.source.config, best.source.figures
    whole = f"{units.number(config.goodput_tok_s or 0, 'tok_s')} tok/s in all"
    value = units.fmt(f.tok_s_per_gpu or 0, "tok_s")
    return Card(title, value, best.address, best.detail, f"n = {config.repeats} · {whole}")


def _efficiency(rows: Sequence[ResultRow], model: str) -> Chart | None:
    """Return the curves of one model, scope, limit and workload: others don't compare.

    The ranked model where there is one, else the one with most curves.
    """
    curved = [r for r in rows if _has_curve(r)]
    kinds = Counter(_kind(r) for r in curved)
    wanted = [kind for kind in kinds if kind[0] == model] or list(kinds)
    if not wanted:
        return None
    kind = min(wanted, key=lambda k: (-kinds[k], k))
    chosen = [r for r in curved if _kind(r) == kind]
    chosen.sort(key=lambda r: (not is_ranked(r.source.run), -(r.source.figures.tok_s_kw or 0)))
    name, scope, limit_ms, _ = kind
    tags = {r.tags[0].word if r.tags else "" for r in chosen}
    marking = chosen[0].marking if len(tags) == 1 else Marking()
    about = f"{name}, {words.scope_words(scope)}"
    curves = [_curve(r, name) for r, name in zip(chosen, _names(chosen), strict=True)]
    return efficiency_chart(curves, about, limit_ms, marking)


def _names(rows: Sequence[ResultRow]) -> list[str]:
    """Name each run as shortly as the others allow: machine, with engine, what its id adds."""
    for names in ([r.short for r in rows], [r.detail for r in rows]):
        if len(set(names)) == len(names):
            return names
    ids = [row.source.run.id for row in rows]
    # by characters is what is wanted here: ids have no folders
    shared = os.path.commonprefix(ids).rpartition("-")[0]  # noqa: RUF071
    return [f"…{each.removeprefix(shared)}" if shared else each for each in ids]


def _has_curve(row: ResultRow) -> bool:
    load = load_of(row.source.run, row.source.config)
    usable = [p for p in load.points if p.j_per_token and p.passed and p.tpot_p99_ms is not None]
    return load.is_boundary and len(usable) > 1


def _kind(row: ResultRow) -> tuple[str, str, float, str]:
    run, config = row.source.run, row.source.config
    workload = spec_of(run, config).workload
    lengths = run.workload.trace or f"{workload.input_tokens} {workload.output_tokens}"
    return row.name, row.source.figures.scope or "", float(run.slo.tpot_p99_ms), lengths


def _curve(row: ResultRow, name: str) -> Curve:
    config = row.source.config
    efficiency = repeats(config.windows, window_tok_s_kw)
    tpot = repeats(config.windows, lambda w: w.tpot_p99_ms)
    return Curve(
        name,
        load_of(row.source.run, config),
        hollow=bool(row.tags),
        tok_s_kw_half=efficiency.half if efficiency else None,
        tpot_half_ms=tpot.half if tpot else None,
    )
