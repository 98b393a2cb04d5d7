"""What a fleet of such nodes would serve and draw: the document's figures times the nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.window import WindowRecord
from tokenwatt_site.method.derived import (
    hardware_of,
    repeats,
    window_j_per_token,
    window_power_w,
)
from tokenwatt_site.publish.views.headline import Source

HOURS = 24


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One projected quantity."""

    name: str
    unit: str
    value: str
    exact: str
    span: str = ""


@dataclass(frozen=True, slots=True)
class FleetView:
    """The projection of one configuration to a number of cards."""

    cards: int
    title: str
    text: str
    rows: tuple[FleetRow, ...]
    formula: str
    range: str
    """What the range is; empty where the document gives none."""


def fleet_view(source: Source, cards: int | None) -> FleetView | None:
    """Return the projection to ``cards``; None without them, accelerators or goodput."""
    run, config, f = source.run, source.config, source.figures
    count = hardware_of(run, config).count
    if cards is None or config.goodput_tok_s is None or not count:
        return None
    nodes = cards / count
    goodput = nodes * config.goodput_tok_s
    power_kw = nodes * f.power_w / 1000 if f.power_w is not None else None
    title = f"On {cards:,} cards: {units.number(goodput, 'tok_s')} tok/s"
    if power_kw is not None:
        title += f" at {units.number(power_kw, 'kw')} kW"
    return FleetView(
        cards,
        title,
        f"{_nodes(nodes)} like this one, with the load spread evenly. {_scope(source)}",
        tuple(_rows(source, nodes)),
        _formula(source, nodes),
        _range(source),
    )


def _range(source: Source) -> str:
    if _relative(source, lambda w: w.goodput_tok_s) is not None:
        return "95 % range"
    band = source.run.variance_band_pct
    return f"Range ± {units.significant(band)} %" if band is not None else ""


def _relative(source: Source, value: Callable[[WindowRecord], float | None]) -> float | None:
    """Return the half-width over repeats as a part of the mean."""
    found = repeats(source.config.windows, value)
    return found.half / found.mean if found and found.half is not None and found.mean else None


def _nodes(nodes: float) -> str:
    if nodes == 1:
        return "One node"
    word = units.count_word(round(nodes)) if nodes.is_integer() else units.significant(nodes, 4)
    return f"{word.capitalize()} nodes"


def _scope(source: Source) -> str:
    if source.figures.power_w is None:
        return "Power isn’t recorded."
    scope = source.scope[:1].upper() + source.scope[1:]
    if source.figures.scope == "board":
        return f"{scope} only; hosts, network and cooling come on top."
    return f"Power: {source.scope}."


def _formula(source: Source, nodes: float) -> str:
    times = units.significant(nodes, 4)
    parts = [f"{times} × {units.significant(source.config.goodput_tok_s or 0, 6)} tok/s"]
    if source.figures.power_w is not None:
        parts.append(f"{times} × {units.significant(source.figures.power_w / 1000, 5)} kW")
    return (
        f"{' and '.join(parts)}. Extrapolated from one node: no router, no imbalance, "
        "no spare capacity."
    )


def _rows(source: Source, nodes: float) -> list[FleetRow]:
    f, config = source.figures, source.config
    power_kw = nodes * f.power_w / 1000 if f.power_w is not None else None
    rps = nodes * config.goodput_rps if config.goodput_rps is not None else None
    band = source.run.variance_band_pct
    goodput = _relative(source, lambda w: w.goodput_tok_s)
    if goodput is None and band is not None:
        goodput = band / 100
    power = _relative(source, window_power_w)
    energy = _relative(source, window_j_per_token)
    day = HOURS * power_kw if power_kw is not None else None
    found = [
        _row("Output tokens", "tok/s", "tok_s", nodes * (config.goodput_tok_s or 0), goodput),
        _row("Requests", "1/s", "rps", rps, goodput),
        _row("Power", f"kW, {source.scope}", "kw", power_kw, power),
        _row("Energy", "kWh a day", "kwh", day, power),
        _row("Energy", "kWh per million output tokens", "kwh_mtok", f.kwh_mtok, energy),
    ]
    return [row for row in found if row is not None]


def _row(
    name: str, unit: str, quantity: str, value: float | None, part: float | None
) -> FleetRow | None:
    if value is None:
        return None
    span = "" if part is None else units.span(value * (1 - part), value * (1 + part), quantity)
    return FleetRow(name, unit, units.number(value, quantity), units.exact(value), span)
