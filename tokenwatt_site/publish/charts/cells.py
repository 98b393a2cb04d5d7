"""Cells of the table twins: what people read beside the exact value."""

from tokenwatt_site import units
from tokenwatt_site.publish.charts.chart import Cell

NOT_RECORDED = "not recorded"


def cell(value: float | None, quantity: str) -> Cell:
    """Return a number's cell; what is missing says so and is empty in the CSV."""
    if value is None:
        return Cell(NOT_RECORDED, "")
    return Cell(units.number(value, quantity), units.exact(value))


def word(text: str) -> Cell:
    """Return a text's cell."""
    return Cell(text, text)
