"""The chart for Explore: a plotly figure as a plain dict, and the CSV of its table.

Colours are left to the page's script, which takes them from the style sheet, so that a figure
follows the theme: ``meta.slot`` of a trace and ``name`` of a shape say what they are.
"""

import csv
import io
from typing import Any

from tokenwatt_site.publish.charts.chart import Axis, Chart, Limit, Panel, Series

_DASH = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_LEFT = {"xanchor": "right", "yanchor": "top"}
_SYMBOL = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")


def explore_figure(chart: Chart) -> dict[str, Any]:
    """Return ``chart`` as plotly's data and layout, without colours."""
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "title": {"text": chart.title},
        "hovermode": "closest",
        "showlegend": any(len(panel.series) > 1 for panel in chart.panels),
        "shapes": [],
        "meta": {"mark": chart.mark, "tag": chart.tag},
    }
    count = len(chart.panels)
    for i, panel in enumerate(chart.panels):
        suffix = str(i + 1) if i else ""
        data += _traces(panel, suffix)
        layout[f"xaxis{suffix}"] = _axis(panel.x) | {"anchor": f"y{suffix}"}
        top, bottom = 1 - i / count, 1 - (i + 1) / count
        domain = [round(bottom + (0.12 if i < count - 1 else 0), 4), round(top, 4)]
        layout[f"yaxis{suffix}"] = _axis(panel.y) | {"anchor": f"x{suffix}", "domain": domain}
        layout["shapes"] += _shapes(panel, suffix)
    return {"data": data, "layout": layout}


def _axis(axis: Axis) -> dict[str, Any]:
    result: dict[str, Any] = {
        "title": {"text": axis.title},
        "type": "log" if axis.log else "linear",
    }
    if not axis.log:
        result["range"] = [axis.lo, axis.hi]
    return result


def _traces(panel: Panel, suffix: str) -> list[dict[str, Any]]:
    """Return the panel's series; the pieces of a broken line are one entry of the legend."""
    traces = [_trace(series, suffix) for series in panel.series]
    for i, trace in enumerate(traces):
        if any(before["name"] == trace["name"] for before in traces[:i]):
            trace["showlegend"] = False
    return traces


def _trace(series: Series, suffix: str) -> dict[str, Any]:
    slot = max(series.slot - 1, 0) % 6
    marked = any(point.marker for point in series.points)
    lines = "lines+" if series.line else ""
    trace: dict[str, Any] = {
        "type": "scatter",
        "name": series.name,
        "mode": f"{lines}markers" if marked else "lines",
        "x": [p.x for p in series.points],
        "y": [p.y for p in series.points],
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "line": {"dash": _DASH[slot] if series.dashed else "solid", "width": 2},
        "meta": {"slot": series.slot},
        "cliponaxis": False,
    }
    if marked:
        symbols = [_SYMBOL[slot] + ("-open" if p.hollow else "") for p in series.points]
        trace["marker"] = {"symbol": symbols, "size": 9}
        trace["text"] = [p.tip for p in series.points]
        trace["hoverinfo"] = "text"
    for name in ("x", "y"):
        halves = [getattr(point, f"{name}_half") for point in series.points]
        if any(half is not None for half in halves):
            trace[f"error_{name}"] = {"type": "data", "array": [half or 0 for half in halves]}
    return trace


def _shapes(panel: Panel, suffix: str) -> list[dict[str, Any]]:
    shapes: list[dict[str, Any]] = []
    for limit in panel.limits:
        across = "x" if limit.axis == "y" else "y"
        ends = {f"{limit.axis}0": limit.value, f"{limit.axis}1": limit.value}
        ends |= {f"{across}0": 0, f"{across}1": 1}
        shapes.append(
            _shape("line", "limit", suffix, ends, across)
            | {
                "label": {"text": limit.text, "textposition": "start", "textangle": 0}
                | _beside(limit)
            }
        )
    if (boundary := panel.boundary) is not None:
        ends = {"x0": boundary.x, "x1": boundary.x, "y0": 0, "y1": 1}
        shapes.append(
            _shape("line", "boundary", suffix, ends, "y")
            | {"label": {"text": boundary.text, "textposition": "end", "textangle": 0, **_LEFT}}
        )
        if boundary.between is not None:
            low, high = boundary.between
            gap = {"x0": low, "x1": high, "y0": 0, "y1": 1}
            shapes.append(_shape("rect", "gap", suffix, gap, "y"))
        if boundary.estimate is not None:
            ends |= {"x0": boundary.estimate, "x1": boundary.estimate}
            shapes.append(_shape("line", "estimate", suffix, ends, "y"))
    for shade in panel.shades:
        area = {"x0": shade.start, "x1": shade.end, "y0": 0, "y1": 1}
        shapes.append(_shape("rect", "gap", suffix, area, "y"))
    return shapes


def _beside(limit: Limit) -> dict[str, str]:
    """A label stands over a level line, and left of an upright one."""
    return {"xanchor": "right" if limit.axis == "x" else "left", "yanchor": "bottom"}


def _shape(
    kind: str, name: str, suffix: str, ends: dict[str, float], across: str
) -> dict[str, Any]:
    """Return a shape that spans the whole plot along ``across``."""
    refs = {f"{axis}ref": f"{axis}{suffix}" for axis in ("x", "y")}
    refs[f"{across}ref"] += " domain"
    return {"type": kind, "name": name, "layer": "below", **refs, **ends}


def chart_csv(chart: Chart) -> bytes:
    """Return the chart's table with exact values; the unit stands in the column's name."""
    table = chart.full or chart.table
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([f"{c.name} ({c.unit})" if c.unit else c.name for c in table.columns])
    writer.writerows([guarded(cell.exact) for cell in row] for row in table.rows)
    return out.getvalue().encode()


def guarded(text: str) -> str:
    """Keep a text from being read as a formula by a spreadsheet; numbers stay as they are."""
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text
    return text
