"""A chart as a page of its own: the file's drawing and its table, nothing else needed."""

from html import escape

from tokenwatt_site import units
from tokenwatt_site.publish.charts.chart import Chart, Table
from tokenwatt_site.publish.charts.file import file_svg

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:800px;margin:2rem auto;padding:0 1rem;"
    "color:#1a1d21;background:#fff}svg{max-width:100%;height:auto}"
    "table{border-collapse:collapse;margin-top:1rem}caption{text-align:left}"
    "th,td{padding:.2rem 1rem .2rem 0;text-align:right}th:first-child{text-align:left}"
)


def file_html(chart: Chart) -> bytes:
    """Return ``chart`` as an HTML file: no script, no link, every text escaped."""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(chart.title)}</title>\n<style>{_STYLE}</style>\n"
        f"{file_svg(chart).decode()}{_table(chart.table)}\n</html>\n"
    ).encode()


def _table(table: Table) -> str:
    names = (f"{c.name}, {c.unit}" if c.unit else c.name for c in table.columns)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0].text)}</th>'
        + "".join(f"<td>{escape(cell.text)}</td>" for cell in row[1:])
        + "</tr>\n"
        for row in table.rows
    )
    caption = escape(units.tidy(table.caption))
    return f"<table><caption>{caption}</caption>\n<tr>{head}</tr>\n{rows}</table>"
