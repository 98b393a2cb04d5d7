"""Candidates against a baseline: the table of differences and the settings that differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Run
from tokenwatt_site.method.compare import Comparison, Delta, KeyRow, Side, compare, differing
from tokenwatt_site.publish.charts.efficiency import Curve
from tokenwatt_site.publish.charts.load import load_of
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.standing import is_quick, is_simulated
from tokenwatt_site.publish.views.windows import Number

_METRICS = {
    "j_per_token": ("Energy", "J/token", "j_per_token"),
    "tok_s_kw": ("Efficiency", "tok/s/kW", "tok_s_kw"),
    "goodput_tok_s": ("Goodput", "tok/s", "tok_s"),
    "power_w": ("Power", "W", "w"),
    "ttft_p99_ms": ("p99 TTFT", "ms", "ms"),
    "tpot_p99_ms": ("p99 TPOT", "ms", "ms"),
    "accuracy_pct": ("Accuracy", "%", "pct"),
}
_LOOKS = {"better": "w-good", "worse": "w-bad", "more": "", "less": ""}
_NAME_MAX = 40
_STEPS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class Named:
    """A configuration of a comparison and how the page calls it."""

    side: Side
    letter: str
    name: str
    """``Baseline``, or the letter, with what sets it apart."""
    address: str

    @property
    def source(self) -> Source:
        """The configuration with its derived figures."""
        index = list(self.side.run.configs).index(self.side.config)
        return Source.of(self.side.run, index)


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One figure: difference first, then its picture, words, and the two values."""

    key: str
    name: str
    unit: str
    difference: str
    half: str
    words: str
    look: str
    reason: str
    baseline: Number
    candidate: Number
    at_pct: str
    """Places along the picture, in percent of its width; empty without a difference."""
    low_pct: str
    high_pct: str
    hollow: bool
    text: str


@dataclass(frozen=True, slots=True)
class DeltaGroup:
    """The differences of one candidate."""

    name: str
    note: str
    rows: tuple[DeltaRow, ...]


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """The differences of all candidates on one scale."""

    groups: tuple[DeltaGroup, ...]
    scale_pct: int
    """The picture goes from minus to plus this."""
    caption: str


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The settings that differ, a column a configuration."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    """Key; value and whether it differs from the baseline's, a pair a configuration."""
    same: int


def name_sides(sides: Sequence[tuple[Side, str]]) -> list[Named]:
    """Name configurations, the baseline first, by what sets their labels apart."""
    parts = [side.config.label.split(" · ") for side, _ in sides]
    shared = set(parts[0]).intersection(*parts) if parts else set[str]()
    named: list[Named] = []
    for number, ((side, address), each) in enumerate(zip(sides, parts, strict=True)):
        apart = " · ".join(part for part in each if part not in shared)
        head = letter_of(number)
        if len(apart) > _NAME_MAX:
            apart = "" if number == 0 else apart[:_NAME_MAX].rstrip() + "…"
        named.append(Named(side, head, f"{head}: {apart}" if apart else head, address))
    return named


def letter_of(number: int) -> str:
    """Return Baseline, A, B, …, Z, A2, …."""
    if number == 0:
        return "Baseline"
    letter, turn = chr(ord("A") + (number - 1) % 26), (number - 1) // 26
    return f"{letter}{turn + 1}" if turn else letter


def configs_of(run: Run) -> list[Named]:
    """Return the configurations of a joined document, the baseline first."""
    ordered = sorted(run.configs, key=lambda config: config.key != "baseline")
    return name_sides([(Side(run, config), "") for config in ordered])


def delta_table(named: Sequence[Named]) -> DeltaTable:
    """Return every candidate against the first configuration."""
    comparisons = [(one, compare(named[0].side, one.side)) for one in named[1:]]
    scale = _scale([delta for _, each in comparisons for delta in each.deltas])
    groups = tuple(_group(one, each, named[0], scale) for one, each in comparisons)
    return DeltaTable(groups, scale, _caption([each for _, each in comparisons]))


def _caption(comparisons: Sequence[Comparison]) -> str:
    counts = {n for each in comparisons for delta in each.deltas if delta.half for n in delta.n}
    if not counts:
        return "No intervals: they need three or more repeats a side."
    low, high = min(counts), max(counts)
    n = f"n = {low}" if low == high else f"n = {low} to {high}"
    return f"{n} windows a configuration. Intervals 95 %, Welch’s, on the ratio of the means."


def _scale(deltas: Sequence[Delta]) -> int:
    ends = [
        abs(delta.difference) + (delta.half or 0)
        for delta in deltas
        if delta.difference is not None and delta.metric != "accuracy_pct"
    ]
    widest = max(ends, default=0)
    return next((step for step in _STEPS if step >= widest), math.ceil(widest))


def _group(one: Named, comparison: Comparison, baseline: Named, scale: int) -> DeltaGroup:
    rows = tuple(
        _row(delta, scale)
        for delta in comparison.deltas
        if delta.baseline is not None or delta.candidate is not None
    )
    return DeltaGroup(one.name, comparison.reason or _rates(baseline, one), rows)


def _rates(baseline: Named, one: Named) -> str:
    pair = (one.side.config.rate_rps, baseline.side.config.rate_rps)
    if pair[0] is None or pair[1] is None:
        return ""
    first, second = (units.number(float(rate), "rps") for rate in pair if rate is not None)
    return f"at {first} requests/s, baseline {second}"


def _row(delta: Delta, scale: int) -> DeltaRow:
    name, unit, quantity = _METRICS[delta.metric]
    points = delta.metric == "accuracy_pct"
    difference, half = delta.difference, delta.half
    shown = units.difference(difference) if difference is not None else ""
    plus = f"±\u00a0{units.fixed(half, 1)}" if half is not None else ""
    picture = difference is not None and not points
    at, low, high = (
        (_place(difference + d, scale) for d in (0, -(half or 0), half or 0))
        if picture and difference is not None
        else ("", "", "")
    )
    return DeltaRow(
        delta.metric,
        name,
        unit,
        f"{shown} points" if points and shown else shown,
        plus,
        _in_words(delta),
        _LOOKS.get(delta.word, "w-noise"),
        delta.reason,
        _value(delta.baseline, delta.baseline_half, quantity),
        _value(delta.candidate, delta.candidate_half, quantity),
        at,
        low,
        high,
        hollow=delta.word not in _LOOKS,
        text=f"{name}: {shown} {plus} %".replace("  ", " "),
    )


def _value(value: float | None, half: float | None, quantity: str) -> Number:
    if value is None:
        return Number("not recorded")
    plus = units.half_width(value, half, quantity) if half is not None else ""
    return Number(units.number(value, quantity), units.exact(value), plus)


def _place(value: float, scale: int) -> str:
    return f"{50 + 50 * value / scale:.4g}%"


def _in_words(delta: Delta) -> str:
    """Return ``better by 11.7–13.0 %``, or why no such thing can be said."""
    if delta.word not in _LOOKS or delta.difference is None or delta.half is None:
        return str(delta.word)
    size = abs(delta.difference)
    low, high = max(size - delta.half, 0.0), size + delta.half
    return f"{delta.word} by {units.fixed(low, 1)}–{units.fixed(high, 1)} %"


def key_table(named: Sequence[Named]) -> KeyTable:
    """Return the settings that aren't the same for all."""
    rows, same = differing([one.side for one in named])
    return KeyTable(tuple(one.name for one in named), tuple(_key(row) for row in rows), same)


def _key(row: KeyRow) -> tuple[str, tuple[tuple[str, bool], ...]]:
    first = row.values[0]
    return row.key, tuple(
        (value if value is not None else "", value != first) for value in row.values
    )


def curves_of(named: Sequence[Named]) -> list[Curve]:
    """Return the configurations over load, for charts."""
    return [
        Curve(
            one.name,
            load_of(one.side.run, one.side.config),
            hollow=is_quick(one.side.run) or is_simulated(one.side.run),
        )
        for one in named
    ]


def scope_of_all(named: Sequence[Named]) -> str:
    """Return the power scope that all share, in words; empty where they don't."""
    scopes = {words.scope_words(one.source.figures.scope) for one in named}
    return scopes.pop() if len(scopes) == 1 else ""
