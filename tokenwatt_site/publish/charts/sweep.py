"""The sweep to the SLO boundary: latency and goodput over the offered rate."""

from collections.abc import Callable
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Slo
from tokenwatt_site.method import prose
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.cells import cell, word
from tokenwatt_site.publish.charts.chart import (
    Axis,
    Boundary,
    Chart,
    Column,
    Limit,
    Panel,
    Point,
    Series,
    Table,
)
from tokenwatt_site.publish.charts.load import Load, LoadPoint, crossing

RATE_TITLE = "requests/s"
KEY = (("within the SLO", 1, False), ("outside", 1, True))


@dataclass(frozen=True, slots=True)
class Marking:
    """How every chart of a document is marked."""

    mark: str = ""
    """The watermark."""
    tag: str = ""
    """The tag beside each title."""


def sweep_charts(load: Load, slo: Slo, marking: Marking) -> list[Chart]:
    """Return p99 TPOT, p99 TTFT and goodput over the rate; none with fewer than two rates."""
    if len(load.points) < 2:  # noqa: PLR2004 - one point is no curve
        return []
    charts = [_tpot(load, slo, marking), _ttft(load, slo, marking), _goodput(load, marking)]
    return [chart for chart in charts if chart is not None]


def rate_axis(load: Load) -> Axis:
    """Return the axis of the offered rate, from 0."""
    most = max(p.rate_rps for p in load.points)
    return scale.linear(0, max(most, load.estimate_rps or 0.0), RATE_TITLE)


def boundary_of(load: Load) -> Boundary | None:
    """Return the mark of the reported rate."""
    if load.at_rps is None:
        return None
    known = load.is_boundary and load.estimate_rps is None
    text = f"{'boundary' if known else 'reported'} {units.number(load.at_rps, 'rps')}"
    between = load.interval_rps
    if known and load.fails_at_rps is not None:
        between = (load.at_rps, load.fails_at_rps)
    return Boundary(load.at_rps, text, between, load.estimate_rps)


def tip(point: LoadPoint) -> str:
    """Return the tooltip of a rate: both latencies and the verdict."""
    parts = [f"{units.number(point.rate_rps, 'rps')} requests/s:"]
    for name, value in (("TPOT", point.tpot_p99_ms), ("TTFT", point.ttft_p99_ms)):
        shown = f"{units.number(value, 'ms')} ms" if value is not None else "without bound"
        parts.append(f"p99 {name} {shown},")
    return " ".join([*parts, "within the SLO" if point.passed else "outside the SLO"])


def _tpot(load: Load, slo: Slo, marking: Marking) -> Chart | None:
    limit = slo.tpot_p99_ms
    known = load.known(lambda p: p.tpot_p99_ms)
    if not known:
        return None
    top = max(1.3 * limit, min(max(v for _, v in known), 2 * limit))
    axis = scale.linear(0, top, "p99 TPOT, ms")
    panel = _latency_panel(load, axis, limit, lambda p: p.tpot_p99_ms, "time per output token")
    return Chart(
        "sweep-tpot",
        f"TPOT {_crosses(load, lambda p: p.tpot_p99_ms, limit)}",
        "p99 time per output token, ms",
        (panel,),
        by_rate("p99 TPOT by rate", load, (Column("p99 TPOT", "ms"), "tpot_p99_ms", "ms")),
        marking.mark,
        marking.tag,
        KEY,
    )


def _ttft(load: Load, slo: Slo, marking: Marking) -> Chart | None:
    limit = slo.ttft_p99_ms
    known = load.known(lambda p: p.ttft_p99_ms)
    if not known:
        return None
    low = max(min(v for _, v in known), limit / 1000)
    top = max(1.5 * limit, min(max(v for _, v in known), 10 * limit))
    axis = scale.logarithmic(low, top, "p99 TTFT, ms")
    panel = _latency_panel(load, axis, limit, lambda p: p.ttft_p99_ms, "time to first token")
    return Chart(
        "sweep-ttft",
        f"TTFT {_crosses(load, lambda p: p.ttft_p99_ms, limit)}",
        "p99 time to first token, ms, log scale",
        (panel,),
        by_rate("p99 TTFT by rate", load, (Column("p99 TTFT", "ms"), "ttft_p99_ms", "ms")),
        marking.mark,
        marking.tag,
    )


def _latency_panel(
    load: Load, axis: Axis, limit: float, value: Callable[[LoadPoint], float | None], name: str
) -> Panel:
    points = tuple(Point(p.rate_rps, v, tip(p), hollow=not p.passed) for p, v in load.known(value))
    low, high = points[0], points[-1]
    text = (
        f"p99 {name} is {units.number(low.y, 'ms')} ms at {units.number(low.x, 'rps')} requests/s "
        f"and {units.number(high.y, 'ms')} ms at {units.number(high.x, 'rps')}; "
        f"the limit is {prose.limit(limit)}."
    )
    return Panel(
        f"p99 {name} against request rate",
        text,
        rate_axis(load),
        axis,
        (Series(f"p99 {name}", 1, points, thin=True),),
        limits=(Limit("y", limit, f"limit {units.significant(limit)} ms"),),
        boundary=boundary_of(load),
    )


def _crosses(load: Load, value: Callable[[LoadPoint], float | None], limit: float) -> str:
    before, after = crossing(load, value, limit)
    if after is None:
        return "stays within its limit at every rate measured"
    if before is None:
        return "is over its limit at every rate measured"
    low, high = units.number(before, "rps"), units.number(after, "rps")
    if low == high:
        return f"crosses its limit at {low} requests/s"
    return f"crosses its limit between {low} and {high} requests/s"


def _goodput(load: Load, marking: Marking) -> Chart | None:
    known = load.known(lambda p: p.goodput_tok_s)
    out = load.known(lambda p: p.output_tok_s)
    if not known:
        return None
    good = tuple(
        Point(p.rate_rps, v, f"{units.number(p.rate_rps, 'rps')} requests/s: goodput "
              f"{units.number(v, 'tok_s')} tok/s", hollow=not p.passed)
        for p, v in known
    )  # fmt: skip
    every = tuple(Point(p.rate_rps, v, marker=False) for p, v in out)
    top = max(v for _, v in [*known, *out])
    best = max(good, key=lambda p: p.y)
    text = (
        f"Goodput is highest at {units.number(best.x, 'rps')} requests/s with "
        f"{units.number(best.y, 'tok_s')} tok/s; at {units.number(good[-1].x, 'rps')} it is "
        f"{units.number(good[-1].y, 'tok_s')} tok/s."
    )
    panel = Panel(
        "Goodput against request rate",
        text,
        rate_axis(load),
        scale.linear(0, top, "goodput, tok/s"),
        (Series("all output", 0, every, thin=True), Series("goodput", 1, good, thin=True)),
        boundary=boundary_of(load),
    )
    return Chart(
        "sweep-goodput",
        f"Goodput {_peak(good)}",
        "output tokens of requests within both limits, tok/s; grey: all output tokens",
        (panel,),
        by_rate(
            "Goodput by rate",
            load,
            (Column("Goodput", "tok/s"), "goodput_tok_s", "tok_s"),
            (Column("Output", "tok/s"), "output_tok_s", "tok_s"),
        ),
        marking.mark,
        marking.tag,
    )


def _peak(points: tuple[Point, ...]) -> str:
    best, last = max(points, key=lambda p: p.y), points[-1]
    peak = f"{units.number(best.y, 'tok_s')} tok/s at {units.number(best.x, 'rps')} requests/s"
    outside = ", outside the SLO" if best.hollow else ""
    return f"{'grows to' if best is last else 'peaks with'} {peak}{outside}"


def by_rate(caption: str, load: Load, *values: tuple[Column, str, str]) -> Table:
    """Return a table with a row a rate: the rate, some values and the verdict.

    Args:
        caption: of the table.
        load: the points.
        values: column, attribute of `LoadPoint` and quantity of each value.
    """
    columns = (Column("Rate", "1/s"), *(c for c, _, _ in values), Column("SLO", text=True))
    rows = tuple(
        (
            cell(p.rate_rps, "rps"),
            *(cell(getattr(p, name), quantity) for _, name, quantity in values),
            word("within" if p.passed else "outside"),
        )
        for p in load.points
    )
    return Table(caption, columns, rows)
