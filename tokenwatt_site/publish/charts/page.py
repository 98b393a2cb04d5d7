"""The chart in the page: an SVG without a viewBox, so that text keeps its size at every width.

The box is sized by the style sheet, its padding is the margin of the plot; marks and text sit at
percentages, lines in a nested viewBox that is stretched, with strokes that aren't. No inline style.
"""

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from tokenwatt_site import units
from tokenwatt_site.publish.charts.chart import Chart, Panel
from tokenwatt_site.publish.charts.draw import Spot, draw


def page_svg(chart: Chart) -> Markup:
    """Return the panels of ``chart`` as SVG for the page."""
    parts: list[str] = []
    for i, panel in enumerate(chart.panels):
        pen = PagePen()
        draw(panel, pen, chart.mark if i == 0 else "")
        parts.append(_svg(f"{chart.id}-{i}", panel, "".join(pen.parts)))
    return Markup("".join(parts))  # noqa: S704 - every text went through escape


def _svg(prefix: str, panel: Panel, marks: str) -> str:
    wide = any(series.label for series in panel.series)
    cls = " ".join(filter(None, ["c", panel.size, "rt" if wide else ""]))
    return (
        f'<svg class="{cls}" role="img" aria-labelledby="{prefix}-t {prefix}-d">'
        f'<title id="{prefix}-t">{escape(panel.title)}</title>'
        f'<desc id="{prefix}-d">{escape(panel.text)}</desc>{marks}</svg>'
    )


def short(value: float, digits: int = 2) -> str:
    """Write a coordinate without trailing zeros."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _at(value: float) -> str:
    return f"{short(value * 100)}%"


def _ends(start: Spot, end: Spot) -> str:
    """Write the ends of a line; an end at 0 is the default of SVG."""
    pairs = zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True)
    return "".join(f' {name}="{_at(value)}"' for name, value in pairs if value)


class PagePen:
    """Writes SVG elements with places in percent."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def rect(self, cls: str, x: float, y: float, size: Spot) -> None:
        """Draw a filled rectangle."""
        place = "".join(f' {k}="{_at(v)}"' for k, v in (("x", x), ("y", y)) if v)
        self.parts.append(
            f'<rect class="{cls}"{place} width="{_at(size[0])}" height="{_at(size[1])}"/>'
        )

    def line(self, cls: str, start: Spot, end: Spot) -> None:
        """Draw a straight line."""
        self.parts.append(f'<line class="{cls}"{_ends(start, end)}/>')

    def path(self, cls: str, spots: Sequence[Spot], *, closed: bool = False) -> None:
        """Draw a line through ``spots``, or the area inside of them."""
        steps = "L".join(f"{round(x * 1000)} {round(y * 1000)}" for x, y in spots)
        end = "z" if closed else ""
        self.parts.append(
            '<svg width="100%" height="100%" viewBox="0 0 1000 1000" preserveAspectRatio="none">'
            f'<path class="{cls}" d="M{steps}{end}"/></svg>'
        )

    def marker(self, cls: str, shape: str, spot: Spot, tip: str = "", *, dx: float = 0) -> None:
        """Draw a marker with its tooltip."""
        shift = f' transform="translate({short(dx)})"' if dx else ""
        title = f"<title>{escape(units.tidy(tip))}</title>" if tip else ""
        self.parts.append(
            f'<use href="#{shape}" class="{cls}" x="{_at(spot[0])}" y="{_at(spot[1])}"{shift}'
            + (f">{title}</use>" if title else "/>")
        )

    def text(self, cls: str, spot: Spot, text: str, shift: Spot = (0, 0)) -> None:
        """Write a text, shifted by px and em."""
        dx = f' dx="{short(shift[0])}"' if shift[0] else ""
        dy = f' dy="{short(shift[1])}em"' if shift[1] else ""
        hidden = ' aria-hidden="true"' if cls.startswith("wm") else ""
        self.parts.append(
            f'<text class="{cls}" x="{_at(spot[0])}" y="{_at(spot[1])}"{dx}{dy}{hidden}>'
            f"{escape(units.tidy(text))}</text>"
        )
