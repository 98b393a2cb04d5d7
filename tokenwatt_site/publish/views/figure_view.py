"""A chart as a page shows it: the drawing, and the files beside the page."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from markupsafe import Markup

from tokenwatt_site.publish.charts.chart import Chart
from tokenwatt_site.publish.charts.explore import chart_csv, explore_figure
from tokenwatt_site.publish.charts.file import file_svg
from tokenwatt_site.publish.charts.page import page_svg

FOLDER = "charts"
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True, slots=True)
class FigureView:
    """One chart with its drawing for the page."""

    chart: Chart
    svg: Markup

    @property
    def look(self) -> str:
        """The class of the chart's tag."""
        return {"simulated": "s", "quick": "q", "draft": "q", "retracted": "bad"}.get(
            self.chart.tag, ""
        )


def figure_views(charts: Sequence[Chart]) -> tuple[FigureView, ...]:
    """Draw charts for the page."""
    return tuple(FigureView(chart, page_svg(chart)) for chart in charts)


def figure_files(
    page: PurePosixPath, charts: Sequence[Chart]
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of charts: SVG, CSV, and the script that Explore loads."""
    folder = page.parent / FOLDER
    for chart in charts:
        yield folder / f"{chart.id}.svg", file_svg(chart)
        yield folder / f"{chart.id}.csv", chart_csv(chart)
        yield folder / f"{chart.id}.js", figure_script(chart)


def figure_script(chart: Chart) -> bytes:
    """Return the figure as a script: from a disk a page may load scripts, but not JSON."""
    name, figure = script_json(chart.id), script_json(explore_figure(chart))
    return f"tokenwattFigure({name}, {figure});\n".encode()


def script_json(value: object) -> str:
    """Return JSON that can stand in a script or a page: no tag can end or begin in it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return "".join(_UNSAFE.get(letter, letter) for letter in text)
