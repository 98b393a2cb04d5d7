"""Tokens per kilowatt against latency: each run a curve from light load to its boundary."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.cells import cell, word
from tokenwatt_site.publish.charts.chart import (
    Axis,
    Cell,
    Chart,
    Column,
    Limit,
    Panel,
    Point,
    Series,
    Table,
)
from tokenwatt_site.publish.charts.load import Load, LoadPoint
from tokenwatt_site.publish.charts.sweep import Marking

MAX_SERIES = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """One run of a chart over several runs."""

    name: str
    load: Load
    hollow: bool = False
    """Quick or simulated."""
    tok_s_kw_half: float | None = None
    tpot_half_ms: float | None = None


def efficiency_chart(
    curves: Sequence[Curve], about: str, limit_ms: float, marking: Marking
) -> Chart | None:
    """Return tok/s/kW over p99 TPOT up to the boundary of each run.

    Args:
        curves: the runs, best first; those beyond `MAX_SERIES` stay in the table of results.
        about: what the runs share, in words: model and scope.
        limit_ms: the limit of p99 TPOT.
        marking: how the chart is marked.
    """
    drawn = [(c, points) for c in curves if (points := _points(c))][:MAX_SERIES]
    if not drawn:
        return None
    best_curve, best_points = max(drawn, key=lambda pair: pair[1][-1].y)
    best = best_points[-1]
    every = [p for _, points in drawn for p in points]
    text = (
        f"Each line is one run from light load to its SLO boundary. {best_curve.name} reaches "
        f"{units.number(best.y, 'tok_s_kw')} tok/s/kW at p99 TPOT {units.number(best.x, 'ms')} ms."
    )
    panel = Panel(
        "Output tokens per second and kilowatt against p99 time per output token",
        text,
        _latency_axis(every, limit_ms),
        scale.linear(0, max(p.y for p in every), "tok/s/kW"),
        tuple(
            Series(c.name, i + 1, points, dashed=True, small=True, label=True)
            for i, (c, points) in enumerate(drawn)
        ),
        limits=(Limit("x", limit_ms, f"limit {units.significant(limit_ms)} ms"),),
        size="lg",
    )
    return Chart(
        "efficiency",
        "What a kilowatt serves, from light load to the limit",
        f"{about}: output tokens, tok/s/kW, against p99 time per output token. "
        "Large marker: SLO boundary; hollow: quick or simulated",
        (panel,),
        _table(drawn),
        marking.mark,
        marking.tag,
        tuple((c.name, i + 1, c.hollow) for i, (c, _) in enumerate(drawn)),
        narrow_key=True,
    )


def _points(curve: Curve) -> tuple[Point, ...]:
    load = curve.load
    kept = [
        p
        for p in load.points
        if p.j_per_token
        and p.tpot_p99_ms is not None
        and (p.reported or (p.passed and (load.at_rps is None or p.rate_rps < load.at_rps)))
    ]
    return tuple(_point(curve, p) for p in kept)


def _point(curve: Curve, p: LoadPoint) -> Point:
    efficiency, tpot = 1000 / (p.j_per_token or 1.0), p.tpot_p99_ms or 0.0
    tip = (
        f"{curve.name}: {units.number(efficiency, 'tok_s_kw')} tok/s/kW at p99 TPOT "
        f"{units.number(tpot, 'ms')} ms, {units.number(p.rate_rps, 'rps')} requests/s"
    )
    halves = (curve.tpot_half_ms, curve.tok_s_kw_half) if p.reported else (None, None)
    return Point(tpot, efficiency, tip, hollow=curve.hollow and p.reported,
                 x_half=halves[0], y_half=halves[1])  # fmt: skip


def _latency_axis(points: Sequence[Point], limit_ms: float) -> Axis:
    values = [p.x for p in points]
    return scale.padded([*values, limit_ms * 1.08], "p99 TPOT, ms")


def _table(drawn: Sequence[tuple[Curve, tuple[Point, ...]]]) -> Table:
    columns = (
        Column("Run"),
        Column("Boundary", "tok/s/kW"),
        Column("95 %", "tok/s/kW"),
        Column("p99 TPOT", "ms"),
    )
    return Table("At the boundary of each run", columns, tuple(_row(c, p[-1]) for c, p in drawn))


def _row(curve: Curve, last: Point) -> tuple[Cell, ...]:
    half = curve.tok_s_kw_half
    interval = Cell("", "")
    if half is not None:
        interval = Cell(units.half_width(last.y, half, "tok_s_kw"), units.exact(half))
    return (word(curve.name), cell(last.y, "tok_s_kw"), interval, cell(last.x, "ms"))
