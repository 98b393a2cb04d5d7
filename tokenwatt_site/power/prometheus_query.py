"""Queries that ask for values and for the time that each was scraped at, in one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tokenwatt_site.power.prometheus_api import Answer, PrometheusApi, Series
from tokenwatt_site.power.reading import Quantity
from tokenwatt_site.power.web import UnansweredError

MARK = "tokenwatt"
"""Label that tells the parts of a combined answer apart."""
HISTORY = "[5m]"
Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Part:
    """One quantity of a combined query."""

    quantity: Quantity
    factor: float
    """From its unit to W or J."""
    value: str
    """Expression of its instant vector."""
    stamp: str
    """Expression of the times that its values were scraped at, s, with the same labels."""
    selector: str | None
    """Selector of the series themselves, where the expression is no more than one."""


def combined(parts: Sequence[Part]) -> str:
    """Return a query for values and stamps of every part: one evaluation sees one scrape."""
    marked: list[str] = []
    for part in parts:
        for mark, expression in (("value", part.value), ("stamp", part.stamp)):
            # the line's end closes a comment of the spec's
            marked.append(
                f'label_replace({expression}\n, "{MARK}", "{mark}_{part.quantity}", "", "")'
            )
    return " or ".join(marked)


def by_labels(answer: Answer) -> dict[Labels, dict[str, tuple[float, str]]]:
    """Return what a combined query gave: labels -> mark -> (time of evaluation, value)."""
    found: dict[Labels, dict[str, tuple[float, str]]] = {}
    for series in answer.series:
        mark = series.labels.get(MARK, "")
        found.setdefault(labels_of(series), {})[mark] = series.points[0]
    return found


def labels_of(series: Series) -> Labels:
    """Return a series' labels without its name and our mark."""
    return frozenset(item for item in series.labels.items() if item[0] not in {"__name__", MARK})


def scrape_interval_s(api: PrometheusApi, selector: str) -> float | None:
    """Return how far the samples of a selector's series are apart, s: the slowest one's median.

    None where there are too few, or where it is an expression that has no samples of its own.
    """
    try:
        answer = api.ask(f"{selector}{HISTORY}")
    except UnansweredError:
        return None
    steps_s = [
        median(after[0] - before[0] for before, after in pairwise(series.points))
        for series in answer.series
        if len(series.points) > 1
    ]
    return max(steps_s, default=None)


def is_selector(api: PrometheusApi, query: str) -> bool:
    """Tell whether a query only selects series: a range of them is then a query too."""
    try:
        return api.ask(f"{query}{HISTORY}").kind == "matrix"
    except UnansweredError as error:
        if error.code == "bad_answer":
            return False
        raise
