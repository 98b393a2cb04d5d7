"""Charts state what the figures say, in the drawing, the file, the table and for Explore."""

import csv
import io
import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from plotly import graph_objects as go

from tests.support.demo_run import demo_document
from tests.support.dom import parse
from tests.support.site import entry_of, site_content
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.charts.chart import Chart
from tokenwatt_site.publish.charts.energy import energy_chart
from tokenwatt_site.publish.charts.explore import chart_csv, explore_figure, guarded
from tokenwatt_site.publish.charts.file import file_svg
from tokenwatt_site.publish.charts.load import Load, LoadPoint, load_of
from tokenwatt_site.publish.charts.page import page_svg
from tokenwatt_site.publish.charts.sweep import Marking
from tokenwatt_site.publish.model import Content, SiteConfig
from tokenwatt_site.publish.views.comparison import comparison_view
from tokenwatt_site.publish.views.home import home_view
from tokenwatt_site.publish.views.run import run_view


def charts_of(document: dict[str, Any]) -> dict[str, Chart]:
    entry = entry_of(document)
    view = run_view(entry, Content(SiteConfig("s"), (entry,)))
    return {chart.id: chart for chart in view.all_charts}


def every_chart() -> list[Chart]:
    """One of each kind."""
    content = site_content(with_seed=False)
    charts = list(charts_of(demo_document()).values())
    charts += comparison_view(content.comparisons[0], content).charts
    charts += [figure.chart for figure in home_view(content).figures]
    return charts


EVERY = every_chart()
NAMES = [chart.id for chart in EVERY]


def test_there_is_a_chart_of_each_kind() -> None:
    assert NAMES == [  # noqa: SIM300 - NAMES is what is tested
        *("sweep-tpot", "sweep-ttft", "sweep-goodput", "cdf-ttft", "cdf-tpot", "timeline"),
        *("energy-rate", "over-energy", "over-tpot", "efficiency"),
    ]


@pytest.mark.parametrize("chart", EVERY, ids=NAMES)
def test_explore_gets_a_figure_that_plotly_accepts(chart: Chart) -> None:
    figure = explore_figure(chart)
    assert len(go.Figure(figure).layout.shapes) == len(figure["layout"]["shapes"])
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    assert len(figure["data"]) == sum(len(panel.series) for panel in chart.panels)


@pytest.mark.parametrize("chart", EVERY, ids=NAMES)
def test_a_drawing_is_named_described_and_needs_no_style(chart: Chart) -> None:
    page = parse(page_svg(chart))
    for panel, drawing in zip(chart.panels, page.children, strict=True):
        assert not isinstance(drawing, str)
        assert drawing.attributes["role"] == "img"
        named = drawing.attributes["aria-labelledby"].split()
        assert [n.children[0] for n in (drawing.one(f'[id="{i}"]') for i in named)] == [
            panel.title,
            panel.text,
        ]
        assert "viewbox" not in drawing.attributes
    assert not page.all("[style]")


@pytest.mark.parametrize("chart", EVERY, ids=NAMES)
def test_a_file_stands_alone_with_title_tag_and_the_same_points(chart: Chart) -> None:
    root = ET.fromstring(file_svg(chart))  # noqa: S314 - our own bytes
    space = "{http://www.w3.org/2000/svg}"
    texts = "".join(root.itertext()).replace("\u2060", "").replace("\u00a0", " ")
    for word in f"{chart.title} {chart.tag}".split():
        assert word in texts
    marks = [e for e in root.iter(f"{space}use") if "mk" in (e.get("class") or "").split()]
    drawn = sum(p.marker for panel in chart.panels for s in panel.series for p in s.points)
    named = sum(s.label for panel in chart.panels for s in panel.series)
    key = 0 if chart.narrow_key else len(chart.key)
    assert len(marks) == drawn + named + key
    assert all(e.get("href", "#").startswith("#") for e in root.iter())


@pytest.mark.parametrize("chart", EVERY, ids=NAMES)
def test_the_csv_has_a_column_a_column_and_exact_values(chart: Chart) -> None:
    rows = list(csv.reader(io.StringIO(chart_csv(chart).decode())))
    table = chart.full or chart.table
    assert [len(row) for row in rows] == [len(table.columns)] * (len(table.rows) + 1)
    assert rows[1] == [cell.exact for cell in table.rows[0]]


def test_the_sweep_says_between_which_rates_the_limit_is_crossed() -> None:
    charts = charts_of(demo_document())
    assert charts["sweep-tpot"].title == "TPOT crosses its limit between 6.50 and 6.75 requests/s"
    assert charts["sweep-ttft"].title == "TTFT crosses its limit between 7.00 and 8.00 requests/s"


def test_rates_that_read_the_same_are_named_once() -> None:
    document = demo_document()
    for window in document["configs"][0]["sweep"]:
        if window["rate_rps"] == 6.75:
            window["rate_rps"] = 6.501
    title = charts_of(document)["sweep-tpot"].title
    assert title == "TPOT crosses its limit at 6.50 requests/s"


def test_the_sweep_of_a_patient_reader_stays_within_its_limit() -> None:
    document = demo_document()
    document["slo"] = {"ttft_p99_ms": 10_000, "tpot_p99_ms": 200}
    titles = [
        chart.title for name, chart in charts_of(document).items() if name.startswith("sweep")
    ]
    assert titles[:2] == [
        "TPOT stays within its limit at every rate measured",
        "TTFT stays within its limit at every rate measured",
    ]


def test_the_sweep_marks_the_boundary_and_the_first_failing_rate() -> None:
    run = Run.model_validate(demo_document())
    load = load_of(run, run.configs[0])
    assert (load.at_rps, load.is_boundary, load.fails_at_rps) == (6.5, True, 6.75)
    assert [p.rate_rps for p in load.points] == [1.0, 2.0, 4.0, 6.0, 6.5, 6.75, 7.0, 8.0]
    reported = [p for p in load.points if p.reported]
    assert [p.tpot_p99_ms for p in reported] == [run.configs[0].tpot_p99_ms]


def test_an_invalid_window_is_no_point() -> None:
    document = demo_document()
    document["configs"][0]["sweep"][3]["valid"] = False
    run = Run.model_validate(document)
    assert 8.0 not in [p.rate_rps for p in load_of(run, run.configs[0]).points]


def test_given_rates_have_no_boundary() -> None:
    document = demo_document()
    document["spec"]["sweep"]["rates"] = [1.0, 6.5]
    charts = charts_of(document)
    boundary = charts["sweep-tpot"].panels[0].boundary
    assert boundary is not None
    assert (boundary.text, boundary.between) == ("reported 6.50", None)


def test_a_percentile_without_bound_is_said_and_not_drawn() -> None:
    document = demo_document()
    document["configs"][0]["ttft_ms"] |= {"p99": None, "censored_over": 2000.0}
    document["configs"][0]["sweep"][3]["ttft_p99_ms"] = None
    charts = charts_of(document)
    assert charts["cdf-ttft"].title == "First token: p99 has no bound and exceeds 2,000 ms"
    assert 8.0 not in [p.x for p in charts["sweep-ttft"].panels[0].series[0].points]
    assert charts["sweep-ttft"].table.rows[-1][1].text == "not recorded"


def test_a_gap_in_the_power_is_a_gap_in_the_line() -> None:
    power = charts_of(demo_document())["timeline"].panels[0]
    assert [len(series.points) for series in power.series] == [50, 69]
    assert sum("nan" in p.tip for series in power.series for p in series.points) == 0


def test_the_power_limit_is_drawn_where_the_power_comes_near_it() -> None:
    near = charts_of(demo_document())["timeline"].panels[0]
    assert [limit.text for limit in near.limits] == ["power limit 2.80 kW"]
    document = demo_document()
    document["configs"][0]["power_limit_w"] = 2000
    assert charts_of(document)["timeline"].panels[0].limits == ()


def test_what_lies_above_the_scale_is_cut_at_its_top() -> None:
    document = demo_document()
    document["configs"][0]["sweep"][3]["tpot_p99_ms"] = 5000.0
    chart = charts_of(document)["sweep-tpot"]
    assert chart.panels[0].y.hi == 100
    marks = parse(page_svg(chart)).all(".mk")
    assert marks[-1].attributes["y"] == "0%"
    assert chart.table.rows[-1][1].exact == "5000.0"


def test_a_spreadsheet_runs_no_formula_of_ours() -> None:
    assert [guarded(t) for t in ("=1+1", "@x", "-12.5", "+cmd", "text")] == [
        *("'=1+1", "'@x", "-12.5", "'+cmd", "text"),
    ]


def test_each_point_of_the_energy_curve_shows_how_sure_it_is() -> None:
    points = tuple(
        LoadPoint(rate, True, False, None, None, None, 100.0, 100 * j, j, unsure_pct=unsure)  # noqa: FBT003
        for rate, j, unsure in ((1.0, 4.0, 150.0), (2.0, 2.0, 10.0))
    )
    load = Load(points, None, is_boundary=False, fails_at_rps=None)
    chart = energy_chart(load, "GPU boards", 5.0, Marking())
    assert chart is not None
    assert chart.panels[0].bands[0].edges == tuple(
        map(pytest.approx, [(1.0, 0.0, 10.0), (2.0, 1.8, 2.2)])
    )
    half = Load((points[0], replace(points[1], unsure_pct=None)), None, False, None)  # noqa: FBT003
    gain = energy_chart(half, "GPU boards", 5.0, Marking())
    assert gain is not None
    assert gain.panels[0].bands[0].edges == tuple(
        map(pytest.approx, [(1.0, 3.8, 4.2), (2.0, 1.9, 2.1)])
    )
