"""Draws a panel with a pen: what goes where, in fractions of the plot from its top left."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from tokenwatt_site.publish.charts.chart import Limit, Note, Panel, Point, Series
from tokenwatt_site.publish.charts.palette import marker_of

Spot = tuple[float, float]

_ANCHOR = {"start": "", "middle": " m", "end": " e"}
_LEFT_ENOUGH = 0.35
_LABEL_GAP = 0.058
_NAME_MAX = 22
_GRID_X = (0.22, 0.36, 0.5, 0.64, 0.78)
_GRID_Y = (0.14, 0.3, 0.46, 0.62, 0.78, 0.9)


class Pen(Protocol):
    """Puts marks on a surface. Places are fractions, classes name the style."""

    def rect(self, cls: str, x: float, y: float, size: Spot) -> None:
        """Draw a filled rectangle."""
        ...

    def line(self, cls: str, start: Spot, end: Spot) -> None:
        """Draw a straight line."""
        ...

    def path(self, cls: str, spots: Sequence[Spot], *, closed: bool = False) -> None:
        """Draw a line through ``spots``, or the area inside of them."""
        ...

    def marker(self, cls: str, shape: str, spot: Spot, tip: str = "", *, dx: float = 0) -> None:
        """Draw a marker with its tooltip."""
        ...

    def text(self, cls: str, spot: Spot, text: str, shift: Spot = (0, 0)) -> None:
        """Write a text, shifted by px and em."""
        ...


def draw(panel: Panel, pen: Pen, mark: str = "") -> None:
    """Draw ``panel``: tints, axes, limits, lines, markers, labels, in this order."""
    _tints(panel, pen)
    if mark:
        pen.text("wm m", _free_spot(panel), mark)
    _axes(panel, pen)
    _rules(panel, pen)
    for band in panel.bands:
        edges = [(panel.x.at(x), _clamp(1 - panel.y.at(v))) for x, _, v in band.edges]
        back = [(panel.x.at(x), _clamp(1 - panel.y.at(v))) for x, v, _ in reversed(band.edges)]
        pen.path(f"bd s{band.slot}", edges + back, closed=True)
    for series in panel.series:
        if series.line:
            _line(panel, pen, series)
    for series in panel.series:
        _markers(panel, pen, series)
    _labels(panel, pen)


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))


def _spot(panel: Panel, x: float, y: float) -> Spot:
    return panel.x.at(x), 1 - panel.y.at(y)


def _tints(panel: Panel, pen: Pen) -> None:
    for limit in panel.limits:
        if limit.axis == "y" and (at := _clamp(1 - panel.y.at(limit.value))) > 0:
            pen.rect("over", 0, 0, (1, at))
        if limit.axis == "x" and (at := _clamp(panel.x.at(limit.value))) < 1:
            pen.rect("over", at, 0, (1 - at, 1))
    for shade in panel.shades:
        start, end = _clamp(panel.x.at(shade.start)), _clamp(panel.x.at(shade.end))
        pen.rect("shade", start, 0, (end - start, 1))


def _axes(panel: Panel, pen: Pen) -> None:
    pen.line("ax", (0, 1), (1, 1))
    for tick in panel.y.ticks:
        at = 1 - panel.y.at(tick.value)
        if at < 1 - 1e-9:
            pen.line("g", (0, at), (1, at))
        pen.text("t e", (0, at), tick.text, (-8, 0.34))
    for tick in panel.x.ticks:
        cls = "t m t2" if tick.minor else "t m"
        pen.text(cls, (panel.x.at(tick.value), 1), tick.text, (0, 1.5))
    if panel.x.title:
        pen.text("t e", (1, 1), panel.x.title, (0, 2.85))


def _rules(panel: Panel, pen: Pen) -> None:
    for limit in panel.limits:
        if limit.axis == "y":
            at = _clamp(1 - panel.y.at(limit.value))
            pen.line("lim", (0, at), (1, at))
        else:
            at = _clamp(panel.x.at(limit.value))
            pen.line("lim", (at, 0), (at, 1))
    if (boundary := panel.boundary) is not None:
        at = _clamp(panel.x.at(boundary.x))
        if boundary.between is not None:
            low, high = (_clamp(panel.x.at(end)) for end in boundary.between)
            pen.rect("gap", low, 0, (high - low, 1))
        pen.line("edge", (at, 0), (at, 1))
        if boundary.estimate is not None:
            at = _clamp(panel.x.at(boundary.estimate))
            pen.line("edge est", (at, 0), (at, 1))


def _line(panel: Panel, pen: Pen, series: Series) -> None:
    spots = [_spot(panel, point.x, point.y) for point in series.points]
    dash = f" d{series.slot}" if series.dashed and series.slot != 1 else ""
    cls = f"ln s{series.slot}{dash}{' thin' if series.thin else ''}"
    for run in _inside(spots):
        pen.path(cls, run)


def _inside(spots: Sequence[Spot]) -> list[list[Spot]]:
    """Cut a line where it leaves the plot at its top and return what is inside."""
    runs: list[list[Spot]] = []
    run: list[Spot] = []
    for i, (x, y) in enumerate(spots):
        if i and (spots[i - 1][1] < 0) != (y < 0):
            x0, y0 = spots[i - 1]
            run.append((x0 + (x - x0) * (0 - y0) / (y - y0), 0.0))
        if y >= 0:
            run.append((x, y))
        elif run:
            runs.append(run)
            run = []
    return [r for r in [*runs, run] if len(r) > 1]


def _markers(panel: Panel, pen: Pen, series: Series) -> None:
    last = series.points[-1] if series.points else None
    for point in series.points:
        if not point.marker:
            continue
        x, y = _spot(panel, point.x, point.y)
        y = _clamp(y)
        _whiskers(panel, pen, series.slot, point)
        shape = "m0" if series.small and point is not last else marker_of(series.slot)
        hollow = " ho" if point.hollow else ""
        pen.marker(f"mk s{series.slot}{hollow}", shape, (x, y), point.tip)


def _whiskers(panel: Panel, pen: Pen, slot: int, point: Point) -> None:
    if point.x_half:
        left, y = _spot(panel, point.x - point.x_half, point.y)
        right, _ = _spot(panel, point.x + point.x_half, point.y)
        pen.line(f"wh s{slot}", (left, y), (right, y))
    if point.y_half:
        x, low = _spot(panel, point.x, point.y - point.y_half)
        _, high = _spot(panel, point.x, point.y + point.y_half)
        pen.line(f"wh s{slot}", (x, low), (x, high))


def _labels(panel: Panel, pen: Pen) -> None:
    for limit in panel.limits:
        _limit_text(panel, pen, limit)
    if (boundary := panel.boundary) is not None:
        at = _clamp(panel.x.at(boundary.x))
        right = at < _LEFT_ENOUGH
        pen.text("lb" if right else "lb e", (at, 0), boundary.text, (6 if right else -6, 1))
    for note in panel.notes:
        _note(panel, pen, note)
    _names(panel, pen)


def _limit_text(panel: Panel, pen: Pen, limit: Limit) -> None:
    if limit.axis == "y":
        pen.text("limt", (0, _clamp(1 - panel.y.at(limit.value))), limit.text, (0, -0.5))
        return
    at = _clamp(panel.x.at(limit.value))
    right = at < _LEFT_ENOUGH
    pen.text("limt" if right else "limt e", (at, 1), limit.text, (6 if right else -6, -0.9))


def _note(panel: Panel, pen: Pen, note: Note) -> None:
    cls = ("lb" if note.strong else "an") + _ANCHOR[note.anchor] + (" t2" if note.far else "")
    x, y = _spot(panel, note.x, note.y)
    pen.text(cls, (x, _clamp(y)), note.text, (note.dx, note.dy))


def _names(panel: Panel, pen: Pen) -> None:
    """Name the series at the right edge, pushed apart, with a hairline to the end of each line."""
    named = [s for s in panel.series if s.label and s.points]
    ends = {s.name: _spot(panel, s.points[-1].x, s.points[-1].y) for s in named}
    named.sort(key=lambda s: (ends[s.name][1], s.slot))
    places = spread([ends[s.name][1] for s in named])
    for series, place in zip(named, places, strict=True):
        x, y = ends[series.name]
        hollow = " ho" if series.points[-1].hollow else ""
        pen.line("lead far", (x + 0.014, y), (1, place))
        pen.marker(f"mk s{series.slot}{hollow} far", marker_of(series.slot), (1, place), dx=12)
        pen.text("an far", (1, place), _cut(series.name), (22, 0.34))


def _cut(name: str) -> str:
    """Shorten a name to what fits beside the plot; the key and the table have the whole."""
    return name if len(name) <= _NAME_MAX else name[: _NAME_MAX - 1].rstrip() + "…"


def spread(places: Sequence[float], gap: float = _LABEL_GAP) -> list[float]:
    """Push ascending ``places`` at least ``gap`` apart, as little as possible, inside 0 to 1."""
    groups: list[list[float]] = []  # sum of the wanted first places, count
    for i, place in enumerate(places):
        groups.append([place - i * gap, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, count = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += count
    firsts = [total / count for total, count in groups for _ in range(int(count))]
    room = 1 - gap * (len(firsts) - 1)
    return [min(max(first, 0.0), max(room, 0.0)) + i * gap for i, first in enumerate(firsts)]


def _free_spot(panel: Panel) -> Spot:
    """Return the place of a coarse grid that is farthest from lines, limits and the boundary."""
    taken = [_spot(panel, point.x, point.y) for series in panel.series for point in series.points]
    taken = _filled([(x, _clamp(y)) for x, y in taken])
    taken += [(x, _clamp(1 - panel.y.at(li.value))) for li in panel.limits if li.axis == "y"
              for x in (0.0, 0.25, 0.5, 0.75, 1.0)]  # fmt: skip
    taken += [(panel.x.at(li.value), y) for li in panel.limits if li.axis == "x" for y in _GRID_Y]
    if panel.boundary is not None:
        taken += [(panel.x.at(panel.boundary.x), y) for y in _GRID_Y]
    taken += [(x / 10, 1.0) for x in range(11)]
    spots = [(x, y) for y in _GRID_Y for x in _GRID_X]

    def room(spot: Spot) -> float:
        # the word is about a third of the plot wide: distances along x count less
        return min(
            (max(abs(spot[0] - x) - 0.17, 0) ** 2 + (spot[1] - y) ** 2 for x, y in taken),
            default=1.0,
        )

    return max(spots, key=room)


def _filled(spots: Sequence[Spot]) -> list[Spot]:
    """Return ``spots`` with places between neighbours."""
    between = [
        (a[0] + (b[0] - a[0]) * k / 4, a[1] + (b[1] - a[1]) * k / 4)
        for a, b in pairwise(spots)
        for k in range(4)
    ]
    return [*between, *spots]
