"""What a fleet of such nodes would serve and draw: the document's figures times the nodes."""

from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.method.derived import hardware_of
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
    band_pct: str


def fleet_view(source: Source, cards: int | None) -> FleetView | None:
    """Return the projection to ``cards``; None without them, accelerators or goodput."""
    run, config, f = source.run, source.config, source.figures
    count = hardware_of(run, config).count
    if cards is None or config.goodput_tok_s is None or not count:
        return None
    nodes = cards / count
    goodput = nodes * config.goodput_tok_s
    power_kw = nodes * f.power_w / 1000 if f.power_w is not None else None
    band = run.variance_band_pct
    title = f"On {cards:,} cards: {units.number(goodput, 'tok_s')} tok/s"
    if power_kw is not None:
        title += f" at {units.number(power_kw, 'kw')} kW"
    return FleetView(
        cards,
        title,
        f"{_nodes(nodes)} like this one, with the load spread evenly. {_scope(source)}",
        tuple(_rows(source, nodes, float(band) if band is not None else None)),
        _formula(source, nodes),
        units.significant(band) if band is not None else "",
    )


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


def _rows(source: Source, nodes: float, band_pct: float | None) -> list[FleetRow]:
    f, config = source.figures, source.config
    power_kw = nodes * f.power_w / 1000 if f.power_w is not None else None
    rps = nodes * config.goodput_rps if config.goodput_rps is not None else None
    found = [
        _row("Output tokens", "tok/s", "tok_s", nodes * (config.goodput_tok_s or 0), band_pct),
        _row("Requests", "1/s", "rps", rps, band_pct),
        _row("Power", f"kW, {source.scope}", "kw", power_kw, None),
        _row("Energy", "kWh a day", "kwh", HOURS * power_kw if power_kw else None, None),
        _row("Energy", "kWh per million output tokens", "kwh_mtok", f.kwh_mtok, None),
    ]
    return [row for row in found if row is not None]


def _row(
    name: str, unit: str, quantity: str, value: float | None, band_pct: float | None
) -> FleetRow | None:
    if value is None:
        return None
    span = ""
    if band_pct is not None:
        part = value * band_pct / 100
        span = units.span(value - part, value + part, quantity)
    return FleetRow(name, unit, units.number(value, quantity), units.exact(value), span)
