"""Power and requests in flight over one confirm window."""

from collections.abc import Sequence

from tokenwatt_site import units
from tokenwatt_site.documents.window import Series as TimeSeries
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.cells import cell
from tokenwatt_site.publish.charts.chart import (
    Axis,
    Cell,
    Chart,
    Column,
    Limit,
    Note,
    Panel,
    Point,
    Series,
    Shade,
    Table,
)
from tokenwatt_site.publish.charts.sweep import Marking

_ROWS = 6
_NEAR = 0.75


def timeline_chart(
    series: TimeSeries, scope: str, limit_w: float | None, marking: Marking
) -> Chart | None:
    """Return the two panels, or the one that the document carries.

    Args:
        series: the time series of the document.
        scope: what the meter includes, in words.
        limit_w: power limit of all accelerators together; drawn where the power comes near it.
        marking: how the document's charts are marked.
    """
    times = [float(t) for t in series.t_s]
    if len(times) < 2:  # noqa: PLR2004 - one moment is no course
        return None
    axis = _time_axis(times, last=series.in_flight is None)
    panels: list[Panel] = []
    means: list[str] = []
    power = [w if w is None else float(w) / 1000 for w in series.power_w or ()]
    if mean := _mean(times, power, series.window_s):
        panels.append(_power(times, power, (axis, mean, limit_w), series))
        means.append(f"{units.number(mean, 'kw')} kW")
    flight = [float(n) for n in series.in_flight or ()]
    if (mean := _mean(times, flight, series.window_s)) is not None:
        panels.append(_in_flight(times, flight, (_time_axis(times, last=True), mean), series))
        means.append(f"{units.number(mean, 'mean_count')} requests in flight")
    if not panels:
        return None
    what = [f"{scope}, kW" if power else "", "requests in flight" if flight else ""]
    subtitle = " (top) and ".join(filter(None, what)) + (" (below)" if len(panels) > 1 else "")
    return Chart(
        "timeline",
        f"Through the window: {' and '.join(means)}",
        f"{subtitle}, window {series.index}; shaded: before and after the window",
        tuple(panels),
        _table(times, power, flight, max(1, len(times) // _ROWS)),
        marking.mark,
        marking.tag,
        full=_table(times, power, flight, 1),
    )


def _mean(times: Sequence[float], values: Sequence[float | None], window_s: float) -> float | None:
    inside = [
        v for t, v in zip(times, values, strict=False) if v is not None and 0 <= t <= window_s
    ]
    return sum(inside) / len(inside) if inside else None


def _time_axis(times: Sequence[float], *, last: bool) -> Axis:
    axis = scale.linear(times[0], times[-1], zero=False, parts=6)
    title = "seconds from the start of the window" if last else ""
    ticks = tuple(t for t in axis.ticks if times[0] <= t.value <= times[-1])
    return Axis(times[0], times[-1], ticks, title)


def _shades(axis: Axis, window_s: float) -> tuple[Shade, ...]:
    edges = (Shade(axis.lo, 0.0), Shade(float(window_s), axis.hi))
    return tuple(shade for shade in edges if shade.end > shade.start)


def _power(
    times: Sequence[float],
    power: Sequence[float | None],
    frame: tuple[Axis, float, float | None],
    series: TimeSeries,
) -> Panel:
    axis, mean, limit_w = frame
    top = max(v for v in power if v is not None)
    limit_kw = limit_w / 1000 if limit_w else None
    near = limit_kw is not None and top > _NEAR * limit_kw
    y = scale.linear(0, max(top, limit_kw) if near and limit_kw else top, "kW", parts=4)
    limits: tuple[Limit, ...] = ()
    if near and limit_kw:
        limits = (Limit("y", limit_kw, f"power limit {units.number(limit_kw, 'kw')} kW"),)
    return Panel(
        "Power over time",
        f"Mean power over the window {units.number(mean, 'kw')} kW, highest reading "
        f"{units.number(top, 'kw')} kW.",
        axis,
        y,
        _lines(times, power, 2),
        limits=limits,
        shades=_shades(axis, float(series.window_s)),
        notes=(_mean_note(series, 0.0 if limits else y.hi, f"mean {units.number(mean, 'kw')} kW"),),
        size="sm",
    )


def _in_flight(
    times: Sequence[float],
    flight: Sequence[float],
    frame: tuple[Axis, float],
    series: TimeSeries,
) -> Panel:
    axis, mean = frame
    y = scale.linear(0, max(flight), "in flight", parts=4)
    return Panel(
        "Requests in flight over time",
        f"Mean over the window {units.number(mean, 'mean_count')}, highest {max(flight):,.0f}.",
        axis,
        y,
        _lines(times, flight, 1),
        shades=_shades(axis, float(series.window_s)),
        notes=(_mean_note(series, y.hi, f"mean {units.number(mean, 'mean_count')}"),),
        size="sm",
    )


def _mean_note(series: TimeSeries, y: float, text: str) -> Note:
    """Return the mean, over the plot or, where the limit's label stands there, at its foot."""
    return Note(float(series.window_s), y, text, "end", 0, -0.45)


def _lines(times: Sequence[float], values: Sequence[float | None], slot: int) -> tuple[Series, ...]:
    """Return the line, in pieces where readings are missing."""
    pieces: list[list[Point]] = [[]]
    for t, value in zip(times, values, strict=False):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(Point(t, value, marker=False))
    name = "power" if slot == 2 else "in flight"  # noqa: PLR2004 - slot 2 is power and energy
    return tuple(Series(name, slot, tuple(piece), thin=True) for piece in pieces if piece)


def _table(
    times: Sequence[float], power: Sequence[float | None], flight: Sequence[float], step: int
) -> Table:
    """Return every ``step``-th moment."""
    columns = [Column("Time", "s")]
    columns += [Column("Power", "kW")] if power else []
    columns += [Column("In flight")] if flight else []
    rows: list[tuple[Cell, ...]] = []
    for i in range(0, len(times), step):
        row: list[Cell] = [cell(times[i], "s")]
        row += [cell(power[i], "kw")] if power else []
        row += [cell(flight[i], "count")] if flight else []
        rows.append(tuple(row))
    return Table(
        f"Every {units.significant(step * (times[1] - times[0]), 3)} s", tuple(columns), tuple(rows)
    )
