"""The chart as a file of its own: absolute places, light colours, title and subtitle inside."""

import textwrap
from collections.abc import Sequence
from html import escape

from tokenwatt_site import units
from tokenwatt_site.publish.charts.chart import Chart, Panel
from tokenwatt_site.publish.charts.draw import Spot, draw
from tokenwatt_site.publish.charts.page import short
from tokenwatt_site.publish.charts.palette import DASHES, LIGHT, MARKERS, marker_of

WIDTH = 760
_HEIGHTS = {"": 300, "sm": 190, "lg": 400}
_EDGE = 16
_CHAR = 6.6
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 18, 24, 46
_LABELS = 170


def file_svg(chart: Chart) -> bytes:
    """Return ``chart`` as an SVG file of fixed size."""
    tag = f" · {chart.tag}" if chart.tag else ""
    parts, top = _head(chart.title + tag, chart.subtitle)
    key, top = _key(chart, top)
    parts += key
    for panel in chart.panels:
        pen = FilePen(_box(panel, top))
        draw(panel, pen, chart.mark if panel is chart.panels[0] else "")
        parts += pen.parts
        top += _HEIGHTS[panel.size]
    text = units.tidy(" ".join(panel.text for panel in chart.panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{short(top)}"'
        f' viewBox="0 0 {WIDTH} {short(top)}" role="img" aria-labelledby="t d">'
        f'<title id="t">{escape(chart.title)}</title><desc id="d">{escape(text)}</desc>'
        f"<style>{_style()}</style><defs>{_markers()}</defs>"
        f'<rect class="bg" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    ).encode()


def _head(title: str, subtitle: str) -> tuple[list[str], float]:
    """Return title and subtitle, wrapped, and where the next thing begins."""
    parts: list[str] = []
    y = 8.0
    for cls, text, chars, step in (("hd", title, 82, 20), ("sub", subtitle, 112, 16)):
        for line in textwrap.wrap(units.tidy(text), chars):
            y += step
            parts.append(f'<text class="{cls}" x="{_EDGE}" y="{short(y)}">{escape(line)}</text>')
    return parts, y + 14


def _key(chart: Chart, top: float) -> tuple[list[str], float]:
    """Return what the markers mean, in a row, where no label at a line's end says it."""
    if not chart.key or chart.narrow_key:
        return [], top
    parts: list[str] = []
    x, y = float(_EDGE), top + 4
    for name, slot, hollow in chart.key:
        width = 44 + _CHAR * len(name)
        if x > _EDGE and x + width > WIDTH:
            x, y = float(_EDGE), y + 18
        dash = f" d{slot}" if chart.several and slot > 1 else ""
        ho = " ho" if hollow else ""
        parts.append(
            f'<path class="ln s{slot}{dash}" d="M{short(x)} {short(y)}h28"/>'
            f'<use href="#{marker_of(slot)}" class="mk s{slot}{ho}" x="{short(x + 14)}"'
            f' y="{short(y)}"/><text x="{short(x + 34)}" y="{short(y + 4)}">'
            f"{escape(units.tidy(name))}</text>"
        )
        x += width
    return parts, y + 14


def _box(panel: Panel, top: float) -> tuple[float, float, float, float]:
    right = _LABELS if any(series.label for series in panel.series) else _RIGHT
    height = _HEIGHTS[panel.size] - _TOP - _BOTTOM
    return _LEFT, top + _TOP, WIDTH - _LEFT - right, height


def _markers() -> str:
    return "".join(f'<path id="{name}" d="{d}"/>' for name, d in MARKERS.items())


def _style() -> str:
    c = LIGHT
    dashes = "".join(f".d{slot}{{stroke-dasharray:{dash}}}" for slot, dash in DASHES.items())
    series = "".join(
        f".ln.s{i},.wh.s{i}{{stroke:{c[f's{i}']}}}.mk.s{i}{{fill:{c[f's{i}']}}}"
        f".mk.ho.s{i}{{fill:{c['bg']};stroke:{c[f's{i}']};stroke-width:2}}"
        f".bd.s{i}{{fill:{c[f's{i}']}}}"
        for i in range(9)
    )
    halo = f"paint-order:stroke;stroke:{c['bg']};stroke-width:4px;stroke-linejoin:round"
    return (
        f"text{{font:12px system-ui,Inter,sans-serif;fill:{c['ink2']}}}"
        f".bg{{fill:{c['bg']}}}.hd{{font-size:16px;font-weight:650;fill:{c['ink']}}}"
        f".t{{fill:{c['ink3']}}}.e{{text-anchor:end}}.m{{text-anchor:middle}}"
        f".lb{{fill:{c['ink']};font-weight:600}}.lb,.an,.limt{{{halo}}}"
        f".limt{{fill:{c['limit']};font-weight:600}}"
        f".g{{stroke:{c['hair']}}}.ax{{stroke:{c['line']}}}.lead{{stroke:{c['line']};"
        f"stroke-width:.75}}.ln{{fill:none;stroke-width:2;stroke-linejoin:round}}"
        f".thin{{stroke-width:1.25}}.wh{{stroke-width:1.5}}"
        f".lim{{stroke:{c['limit']};stroke-width:1.5;stroke-dasharray:6 4}}"
        f".over{{fill:{c['limit']};opacity:.055}}.shade{{fill:{c['line']};opacity:.13}}"
        f".edge{{stroke:{c['ink']};stroke-width:1.5}}.est{{stroke-dasharray:3 3}}"
        f".gap{{fill:{c['ink']};opacity:.09}}"
        f".bd{{opacity:.17}}.mk{{stroke:{c['bg']};stroke-width:1.25}}"
        f".wm{{fill:{c['sim']};opacity:.15;font-size:22px;font-weight:800;letter-spacing:.2em}}"
        f"{series}{dashes}"
    )


class FilePen:
    """Writes SVG elements with absolute places inside ``box``: left, top, width, height."""

    def __init__(self, box: tuple[float, float, float, float]) -> None:
        self.parts: list[str] = []
        self._left, self._top, self._width, self._height = box

    def _xy(self, spot: Spot) -> tuple[str, str]:
        x = self._left + spot[0] * self._width
        return short(x, 1), short(self._top + spot[1] * self._height, 1)

    def rect(self, cls: str, x: float, y: float, size: Spot) -> None:
        """Draw a filled rectangle."""
        left, top = self._xy((x, y))
        width, height = short(size[0] * self._width, 1), short(size[1] * self._height, 1)
        self.parts.append(
            f'<rect class="{cls}" x="{left}" y="{top}" width="{width}" height="{height}"/>'
        )

    def line(self, cls: str, start: Spot, end: Spot) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = self._xy(start), self._xy(end)
        self.parts.append(f'<line class="{cls}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def path(self, cls: str, spots: Sequence[Spot], *, closed: bool = False) -> None:
        """Draw a line through ``spots``, or the area inside of them."""
        steps = "L".join(" ".join(self._xy(spot)) for spot in spots)
        self.parts.append(f'<path class="{cls}" d="M{steps}{"z" if closed else ""}"/>')

    def marker(self, cls: str, shape: str, spot: Spot, tip: str = "", *, dx: float = 0) -> None:
        """Draw a marker with its tooltip."""
        x, y = self._xy((spot[0] + dx / self._width, spot[1]))
        title = f"<title>{escape(units.tidy(tip))}</title>" if tip else ""
        self.parts.append(f'<use href="#{shape}" class="{cls}" x="{x}" y="{y}">{title}</use>')

    def text(self, cls: str, spot: Spot, text: str, shift: Spot = (0, 0)) -> None:
        """Write a text, shifted by px and em."""
        x, y = self._xy(spot)
        self.parts.append(
            f'<text class="{cls}" x="{x}" y="{y}" dx="{short(shift[0])}"'
            f' dy="{short(shift[1])}em">{escape(units.tidy(text))}</text>'
        )
