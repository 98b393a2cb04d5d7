"""Several configurations over load: energy per token, and p99 TPOT with its limit."""

from collections.abc import Callable, Sequence

from tokenwatt_site import units
from tokenwatt_site.documents.run import Slo
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.cells import cell, word
from tokenwatt_site.publish.charts.chart import (
    Axis,
    Chart,
    Column,
    Limit,
    Panel,
    Point,
    Series,
    Table,
)
from tokenwatt_site.publish.charts.efficiency import MAX_SERIES, Curve
from tokenwatt_site.publish.charts.load import LoadPoint
from tokenwatt_site.publish.charts.sweep import RATE_TITLE, Marking

Value = Callable[[LoadPoint], float | None]


def overload_charts(curves: Sequence[Curve], slo: Slo, scope: str, marking: Marking) -> list[Chart]:
    """Return J/token and p99 TPOT over the rate, a line a configuration."""
    shown = [c for c in curves if len(c.load.points) > 1][:MAX_SERIES]
    if not shown:
        return []
    charts = [_energy(shown, scope, marking), _tpot(shown, slo, marking)]
    return [chart for chart in charts if chart is not None]


def _energy(curves: Sequence[Curve], scope: str, marking: Marking) -> Chart | None:
    series = _series(curves, lambda p: p.j_per_token, "j_per_token", "J/token")
    if not series:
        return None
    panel = _panel(series, "Energy per output token", "j_per_token", "J/token")
    return Chart(
        "over-energy",
        "Energy per token over load",
        f"energy per output token, J, {scope}",
        (panel,),
        _table(series, "Energy", "J/token", "j_per_token"),
        marking.mark,
        marking.tag,
        tuple((s.name, s.slot, False) for s in series),
    )


def _tpot(curves: Sequence[Curve], slo: Slo, marking: Marking) -> Chart | None:
    series = _series(curves, lambda p: p.tpot_p99_ms, "ms", "ms")
    if not series:
        return None
    limit = slo.tpot_p99_ms
    panel = _panel(
        series,
        "p99 time per output token",
        "ms",
        "ms",
        (Limit("y", limit, f"limit {units.significant(limit)} ms"),),
    )
    return Chart(
        "over-tpot",
        "p99 TPOT over load",
        "p99 time per output token, ms",
        (panel,),
        _table(series, "p99 TPOT", "ms", "ms"),
        marking.mark,
        marking.tag,
        tuple((s.name, s.slot, False) for s in series),
    )


def _series(curves: Sequence[Curve], value: Value, quantity: str, unit: str) -> tuple[Series, ...]:
    found: list[Series] = []
    for slot, curve in enumerate(curves, 1):
        points = tuple(
            Point(
                p.rate_rps,
                v,
                f"{curve.name}: {units.number(v, quantity)} {unit} at "
                f"{units.number(p.rate_rps, 'rps')} requests/s",
                hollow=curve.hollow and p.reported,
            )
            for p, v in curve.load.known(value)
            if curve.load.at_rps is None or p.rate_rps <= curve.load.at_rps
        )
        if points:
            found.append(Series(curve.name, slot, points, dashed=True))
    return tuple(found)


def _panel(
    series: Sequence[Series],
    name: str,
    quantity: str,
    unit: str,
    limits: tuple[Limit, ...] = (),
) -> Panel:
    ends = "; ".join(
        f"{s.name} {units.number(s.points[-1].y, quantity)} {unit} at "
        f"{units.number(s.points[-1].x, 'rps')} requests/s"
        for s in series
    )
    top = max([p.y for s in series for p in s.points] + [1.2 * limit.value for limit in limits])
    x: Axis = scale.linear(0, max(s.points[-1].x for s in series), RATE_TITLE)
    return Panel(
        f"{name} against request rate",
        f"{name} at the end of each line: {ends}.",
        x,
        scale.linear(0, top, f"{name}, {unit}"),
        tuple(series),
        limits=limits,
    )


def _table(series: Sequence[Series], name: str, unit: str, quantity: str) -> Table:
    columns = (Column("Configuration"), Column("Rate", "1/s"), Column(name, unit))
    rows = tuple(
        (word(s.name), cell(p.x, "rps"), cell(p.y, quantity)) for s in series for p in s.points
    )
    return Table(f"{name} by configuration and rate", columns, rows)
