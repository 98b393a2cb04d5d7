"""Energy per output token over load."""

from collections.abc import Sequence

from tokenwatt_site import units
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.chart import (
    Axis,
    Band,
    Chart,
    Column,
    Note,
    Panel,
    Point,
    Series,
)
from tokenwatt_site.publish.charts.load import Load, LoadPoint, nearest
from tokenwatt_site.publish.charts.sweep import Marking, boundary_of, by_rate, rate_axis

_APART = 0.3
_HEADROOM = 1.15
"""The costliest point has its label beside it, below the boundary's at the top."""


def energy_chart(load: Load, scope: str, gain_pct: float | None, marking: Marking) -> Chart | None:
    """Return J/token over the rate; None with fewer than two rates that have it.

    Args:
        load: the configuration over load.
        scope: what the meter includes, in words.
        gain_pct: the meter's own uncertainty, a band where a point's whole one isn't known.
        marking: how the document's charts are marked.
    """
    known = load.known(lambda p: p.j_per_token)
    if len(known) < 2:  # noqa: PLR2004 - one point is no curve
        return None
    points = tuple(
        Point(p.rate_rps, j, f"{units.number(p.rate_rps, 'rps')} requests/s: "
              f"{units.number(j, 'j_per_token')} J/token", hollow=not p.passed)
        for p, j in known
    )  # fmt: skip
    bands, band = _band(known, gain_pct)
    first, at = points[0], points[-1]
    if load.at_rps is not None:
        rate = nearest([p for p, _ in known], load.at_rps).rate_rps
        at = next(p for p in points if p.x == rate)
    axis = rate_axis(load)
    panel = Panel(
        "Energy per output token against request rate",
        f"Energy per output token is {units.number(first.y, 'j_per_token')} J at "
        f"{units.number(first.x, 'rps')} requests/s and {units.number(at.y, 'j_per_token')} J at "
        f"{units.number(at.x, 'rps')}.",
        axis,
        scale.linear(0, _top(points, bands), "J/token"),
        (Series("energy", 2, points),),
        bands=bands,
        boundary=boundary_of(load),
        notes=_notes(first, at, axis),
    )
    return Chart(
        "energy-rate",
        _finding(first, at),
        f"energy per output token, J, {scope}{band}",
        (panel,),
        by_rate(
            "Energy by rate",
            load,
            (Column("Power", "W"), "power_w", "w"),
            (Column("Output", "tok/s"), "output_tok_s", "tok_s"),
            (Column("Energy", "J/token"), "j_per_token", "j_per_token"),
        ),
        marking.mark,
        marking.tag,
        (("within the SLO", 2, False), ("outside", 2, True)),
    )


def _top(points: Sequence[Point], bands: Sequence[Band]) -> float:
    highs = (high for band in bands for _, _, high in band.edges)
    return max(_HEADROOM * max(p.y for p in points), *highs, 0.0)


def _band(
    known: Sequence[tuple[LoadPoint, float]], gain_pct: float | None
) -> tuple[tuple[Band, ...], str]:
    """Return the band around the line, and its words: all that is unsure, else the gain alone."""
    parts = [p.unsure_pct for p, _ in known]
    words = "; band: 95 % interval of each point"
    if None in parts:
        parts = [gain_pct] * len(known)
        words = f"; band: gain of the meter, ± {units.significant(gain_pct or 0)} %"
    if not any(parts):
        return (), ""
    edges = (
        (p.rate_rps, max(j * (1 - (part or 0) / 100), 0.0), j * (1 + (part or 0) / 100))
        for (p, j), part in zip(known, parts, strict=True)
    )
    return (Band(2, tuple(edges)),), words


def _notes(first: Point, at: Point, axis: Axis) -> tuple[Note, ...]:
    """Label both ends of the story, or only the reported one where they lie close."""
    notes: list[Note] = []
    if axis.at(at.x) - axis.at(first.x) > _APART:
        text = units.number(first.y, "j_per_token")
        notes.append(Note(first.x, first.y, text, dx=10, dy=0.3))
    text = f"{units.number(at.y, 'j_per_token')} J/token"
    right = axis.at(at.x) < _APART
    notes.append(Note(at.x, at.y, text, "start" if right else "end", 8 if right else -8, 2.0))
    return tuple(notes)


def _finding(first: Point, at: Point) -> str:
    rate, low = units.number(at.x, "rps"), units.number(first.x, "rps")
    if at is first or first.y == 0:
        return f"A token costs {units.number(at.y, 'j_per_token')} J at {rate} requests/s"
    change = 100 * (at.y / first.y - 1)
    word = "less" if change < 0 else "more"
    share = units.fixed(abs(change), 0)
    return f"At {rate} requests/s a token costs {share} % {word} energy than at {low}"
