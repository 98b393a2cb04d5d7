"""Latency distributions at the reported rate: the share of requests at or under a time."""

from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config, Slo
from tokenwatt_site.documents.window import Dist
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.cells import cell, word
from tokenwatt_site.publish.charts.chart import (
    Anchor,
    Axis,
    Chart,
    Column,
    Limit,
    Note,
    Panel,
    Point,
    Series,
    Table,
)
from tokenwatt_site.publish.charts.sweep import Marking

_SHARE = scale.linear(0, 100, "share of requests, %", parts=4)


@dataclass(frozen=True, slots=True)
class _Kind:
    id: str
    short: str
    name: str
    finding: str
    log: bool


_TTFT = _Kind("cdf-ttft", "TTFT", "time to first token", "First token", log=True)
_TPOT = _Kind("cdf-tpot", "TPOT", "time per output token", "Each next token", log=False)


def latency_charts(config: Config, slo: Slo, marking: Marking) -> list[Chart]:
    """Return the distributions of TTFT and TPOT that the document carries."""
    pairs = ((_TTFT, config.ttft_ms, slo.ttft_p99_ms), (_TPOT, config.tpot_ms, slo.tpot_p99_ms))
    return [_cdf(k, d, limit, marking) for k, d, limit in pairs if d is not None and d.cdf]


def _cdf(kind: _Kind, dist: Dist, limit: float, marking: Marking) -> Chart:
    pairs = [(float(x), float(y)) for x, y in dist.cdf or ()]
    axis = _axis(kind, [x for x, _ in pairs], limit)
    curve = tuple(Point(x, y, marker=False) for x, y in pairs)
    marks = tuple(
        Point(value, share, f"{name} {units.number(value, 'ms')} ms")
        for name, share, value in _percentiles(dist)
        if value is not None
    )
    series = (Series(kind.short, 1, curve), Series("percentiles", 1, marks, line=False))
    panel = Panel(
        f"Distribution of {kind.name}",
        _sentence(kind, dist, limit),
        axis,
        _SHARE,
        series,
        limits=(Limit("x", limit, f"limit {units.significant(limit)} ms"),),
        notes=_notes(marks, axis),
    )
    return Chart(
        kind.id,
        _finding(kind, dist),
        f"share of requests, %, against {kind.name}, ms{', log scale' if kind.log else ''}",
        (panel,),
        _table(kind, dist),
        marking.mark,
        marking.tag,
    )


def _axis(kind: _Kind, values: list[float], limit: float) -> Axis:
    if kind.log:
        low = max(min(values), limit / 10_000)
        return scale.logarithmic(low, max(*values, limit * 1.2), "ms")
    return scale.padded([*values, limit * 1.04], "ms")


def _percentiles(dist: Dist) -> tuple[tuple[str, float, float | None], ...]:
    return (("p50", 50, dist.p50), ("p90", 90, dist.p90), ("p99", 99, dist.p99))


def _notes(marks: tuple[Point, ...], axis: Axis) -> tuple[Note, ...]:
    """Labels stand right below the lower percentiles, and left of p99 where there is room."""
    notes: list[Note] = []
    for mark in marks:
        left = (mark.y > 95 and axis.at(mark.x) > 0.45) or axis.at(mark.x) > 0.75  # noqa: PLR2004
        anchor: Anchor = "end" if left else "start"
        lift = 0.1 if mark.y > 95 else 0.7  # noqa: PLR2004
        notes.append(Note(mark.x, mark.y, mark.tip, anchor, -9 if left else 9, lift))
    return tuple(notes)


def _finding(kind: _Kind, dist: Dist) -> str:
    if dist.p99 is None:
        over = f" {units.number(dist.censored_over, 'ms')} ms" if dist.censored_over else ""
        return f"{kind.finding}: p99 has no bound{' and exceeds' + over if over else ''}"
    return f"{kind.finding}: 99 % within {units.number(dist.p99, 'ms')} ms"


def _sentence(kind: _Kind, dist: Dist, limit: float) -> str:
    parts = [
        f"{name} {units.number(value, 'ms')} ms"
        for name, _, value in _percentiles(dist)
        if value is not None
    ]
    return (
        f"{kind.name.capitalize()} of {dist.n:,} requests: {', '.join(parts) or 'unknown'}; "
        f"the limit is {units.significant(limit)} ms."
    )


def _table(kind: _Kind, dist: Dist) -> Table:
    values = (("p50", dist.p50), ("p90", dist.p90), ("p95", dist.p95), ("p99", dist.p99))
    rows = [(word(name), cell(value, "ms")) for name, value in (*values, ("mean", dist.mean))]
    return Table(
        f"{kind.short} of {dist.n:,} requests",
        (Column("Percentile"), Column(kind.short, "ms")),
        tuple(rows),
    )
