"""A workload before it is sent: how long its requests are, and how they come."""

import math
from dataclasses import replace

from tokenwatt_site import units
from tokenwatt_site.method.workload_look import LengthLook, Look
from tokenwatt_site.publish.charts import scale
from tokenwatt_site.publish.charts.cells import cell, word
from tokenwatt_site.publish.charts.chart import Axis, Chart, Column, Panel, Point, Series, Table

_STEPS = 200
_WIDEST = 100_000
_MOST_POINTS = 200
_SHARE = scale.linear(0, 100, "share of requests, %", parts=4)


def workload_chart(look: Look) -> Chart:
    """Return the lengths' distributions over the arrivals' course."""
    means = (units.fixed(part.drawn_mean, 0) for part in (look.input, look.output))
    return Chart(
        "workload",
        "{} tokens in and {} out on average".format(*means),
        f"{look.workload.name}: share of requests, %, by tokens; below, requests/s over time",
        (_lengths(look), _arrivals(look)),
        _table(look),
        key=(("prompt", 1, False), ("answer", 2, False)),
    )


def _lengths(look: Look) -> Panel:
    every = (look.input.ordered, look.output.ordered)
    low, high = min(o[0] for o in every), max(o[-1] for o in every)
    # whole decades: ticks of 100,000 and 200,000 would touch
    ends = (10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high + 1)))
    axis = scale.logarithmic(*ends, "tokens")
    if ends[1] > _WIDEST:
        axis = replace(axis, ticks=axis.ticks[:-1])  # its text would leave the drawing
    series = (_curve("prompt", 1, look.input, axis), _curve("answer", 2, look.output, axis))
    return Panel(
        "Distribution of lengths",
        f"Prompts: {_sentence(look.input)}. Answers: {_sentence(look.output)}.",
        axis,
        _SHARE,
        series,
    )


def _curve(name: str, slot: int, lengths: LengthLook, axis: Axis) -> Series:
    """Return the distribution as steps at evenly spaced ranks."""
    ordered = lengths.ordered
    n = len(ordered)
    ranks = sorted({max(1, round(n * i / _STEPS)) for i in range(_STEPS + 1)})
    ends = [(axis.lo, 0.0), (float(ordered[0]), 0.0)]
    spots = [*ends, *((float(ordered[r - 1]), 100 * r / n) for r in ranks), (axis.hi, 100.0)]
    points = tuple(Point(x, y, marker=False) for x, y in spots)
    return Series(name, slot, points, dashed=True)


def _sentence(lengths: LengthLook) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in lengths.quantiles().items())


def _arrivals(look: Look) -> Panel:
    every = -(-len(look.counts) // _MOST_POINTS)
    step_s = every * look.bin_s
    groups = [look.counts[i : i + every] for i in range(0, len(look.counts), every)]
    rates = [sum(group) / len(group) / look.bin_s for group in groups]
    points = tuple(Point((i + 0.5) * step_s, rate, marker=False) for i, rate in enumerate(rates))
    cv = "unknown" if look.gap_cv is None else units.significant(look.gap_cv, 3)
    return Panel(
        "Arrivals over time",
        f"{units.fmt(look.rate_rps, 'rps')} on average; gaps between arrivals vary by {cv} of"
        f" their mean; each point is the mean of {units.significant(step_s, 3)} s.",
        scale.linear(0, len(look.counts) * look.bin_s, "s"),
        scale.linear(0, max(*rates, look.rate_rps), "requests/s", parts=3),
        (Series("arrivals", 0, points, thin=True),),
        size="sm",
    )


def _table(look: Look) -> Table:
    rows = [
        (word(name), cell(float(one), "count"), cell(float(two), "count"))
        for (name, one), two in zip(
            look.input.quantiles().items(), look.output.quantiles().values(), strict=True
        )
    ]
    means = [cell(part.drawn_mean, "tokens") for part in (look.input, look.output)]
    rows.append((word("mean"), means[0], means[1]))
    return Table(
        f"Lengths of {len(look.schedule):,} requests",
        (Column("Quantile"), Column("Prompt", "tokens"), Column("Answer", "tokens")),
        tuple(rows),
    )
