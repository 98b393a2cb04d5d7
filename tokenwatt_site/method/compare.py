"""Two configurations against each other: differences, what the repeats can resolve, what differs.

An interval comes from repeats, three or more a side: Welch's on the ratio of the two means, its
variance by the delta method, (s/x̄)²/n of each side added, degrees of freedom by Satterthwaite.
What is promised, asked or measured differently is not compared, with the reason.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.documents.window import WindowRecord
from tokenwatt_site.method.derived import (
    MIN_REPEATS,
    Derived,
    derived,
    hardware_of,
    software_of,
    spec_of,
    window_j_per_token,
    window_power_w,
    window_tok_s_kw,
)
from tokenwatt_site.method.statistics import mean_interval, t95

Word = Literal[
    "better",
    "worse",
    "more",
    "less",
    "within noise",
    "not enough repeats",
    "no interval",
    "not comparable",
    "not recorded",
]


@dataclass(frozen=True, slots=True)
class Side:
    """One configuration of one document."""

    run: Run
    config: Config


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure of a candidate against the baseline's."""

    metric: str
    baseline: float | None
    candidate: float | None
    baseline_half: float | None
    """Half-width of the 95 % t interval over repeats; None under three."""
    candidate_half: float | None
    n: tuple[int, int]
    """Repeats of the baseline and of the candidate that have the figure."""
    difference: float | None
    """Percent of the baseline; points for accuracy. None where the two aren't compared."""
    half: float | None
    """Half-width of the difference's 95 % interval, in the same unit."""
    word: Word
    reason: str = ""
    """Why there is no interval or no comparison, as a clause."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against the baseline."""

    baseline: Side
    candidate: Side
    deltas: tuple[Delta, ...]
    reason: str
    """Why nothing is compared; empty where something is."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One setting that isn't the same for all sides."""

    key: str
    values: tuple[str | None, ...]
    """As JSON, texts without quotes; one a side, None where the side lacks the key."""


@dataclass(frozen=True, slots=True)
class _Metric:
    key: str
    good: Literal["more", "less"] | None
    whole: Callable[[Derived, Config], float | None]
    window: Callable[[WindowRecord], float | None] | None


def _score(_: Derived, config: Config) -> float | None:
    return config.accuracy.score if config.accuracy else None


_METRICS = (
    _Metric("j_per_token", "less", lambda d, _: d.j_per_token, window_j_per_token),
    _Metric("tok_s_kw", "more", lambda d, _: d.tok_s_kw, window_tok_s_kw),
    _Metric("goodput_tok_s", "more", lambda _, c: c.goodput_tok_s, lambda w: w.goodput_tok_s),
    _Metric("power_w", None, lambda d, _: d.power_w, window_power_w),
    _Metric("ttft_p99_ms", "less", lambda _, c: c.ttft_p99_ms, lambda w: w.ttft_p99_ms),
    _Metric("tpot_p99_ms", "less", lambda _, c: c.tpot_p99_ms, lambda w: w.tpot_p99_ms),
    _Metric("accuracy_pct", "more", _score, None),
)
_ENERGY = ("j_per_token", "tok_s_kw", "power_w")


def compare(baseline: Side, candidate: Side) -> Comparison:
    """Compare two configurations, figure by figure."""
    reason = _differs(baseline, candidate)
    energy_reason = reason or _energy_differs(baseline, candidate)
    deltas = tuple(
        _delta(metric, baseline, candidate, energy_reason if metric.key in _ENERGY else reason)
        for metric in _METRICS
    )
    return Comparison(baseline, candidate, deltas, reason)


def _delta(metric: _Metric, baseline: Side, candidate: Side, reason: str) -> Delta:
    one, two = (metric.whole(derived(s.run, s.config), s.config) for s in (baseline, candidate))
    many = [_repeats(metric, side.config) for side in (baseline, candidate)]
    difference, half = None, None
    word: Word
    if one is None or two is None:
        word, reason = "not recorded", _lacking(one, two)
    elif reason:
        word = "not comparable"
    elif metric.window is None:
        difference, word, reason = two - one, "no interval", "the documents carry none"
    elif one <= 0:
        word, reason = "not comparable", "the baseline's figure is 0"
    else:
        difference = 100 * (two / one - 1)
        half = _half_pct(two / one, *many)
        word = _word(metric, difference, half)
        reason = "" if half is not None else _few(many)
    return Delta(
        metric=metric.key,
        baseline=one,
        candidate=two,
        baseline_half=_interval(many[0]),
        candidate_half=_interval(many[1]),
        n=(len(many[0]), len(many[1])),
        difference=difference,
        half=half,
        word=word,
        reason=reason,
    )


def _interval(values: Sequence[float]) -> float | None:
    return mean_interval(values)[1] if len(values) >= MIN_REPEATS else None


def _word(metric: _Metric, difference: float, half: float | None) -> Word:
    if half is None:
        return "not enough repeats"
    if abs(difference) <= half:
        return "within noise"
    direction: Literal["more", "less"] = "more" if difference > 0 else "less"
    if metric.good is None:
        return direction
    return "better" if direction == metric.good else "worse"


def _repeats(metric: _Metric, config: Config) -> list[float]:
    """Return the figure of each valid confirm window; none if a window lacks it."""
    windows = [window for window in config.windows or () if window.valid]
    values = [metric.window(window) for window in windows] if metric.window else []
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _few(many: Sequence[Sequence[float]]) -> str:
    counts = " and ".join(str(len(values)) for values in many)
    return f"an interval needs {MIN_REPEATS} repeats a side, here are {counts}"


def _lacking(one: float | None, two: float | None) -> str:
    if one is None and two is None:
        return "neither document has it"
    return f"the {'baseline' if one is None else 'candidate'}’s document lacks it"


def _half_pct(ratio: float, one: Sequence[float], two: Sequence[float]) -> float | None:
    """Return the half-width of the 95 % interval of a ratio of means, in percent.

    The degrees of freedom are rounded down, which widens it.
    """
    if min(len(one), len(two)) < MIN_REPEATS or min(math.fsum(one), math.fsum(two)) <= 0:
        return None
    parts = [_relative_variance(values) for values in (one, two)]
    whole = math.fsum(parts)
    if whole == 0:
        return 0.0
    freedom = whole**2 / math.fsum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (one, two), strict=True)
    )
    return 100 * ratio * t95(math.floor(freedom + 1e-9) + 1) * math.sqrt(whole)


def _relative_variance(values: Sequence[float]) -> float:
    """Return the squared standard error of a mean over the squared mean."""
    n = len(values)
    mean = math.fsum(values) / n
    return math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n / mean**2


def _differs(baseline: Side, candidate: Side) -> str:
    """Return why no figure of the two can be compared; empty where they can."""
    checks: tuple[tuple[str, Callable[[Side], Any]], ...] = (
        ("the latency limits differ", lambda s: s.run.slo),
        ("the workloads differ", _workload),
        ("one is simulated", lambda s: bool(s.run.simulated)),
        ("the method versions differ", lambda s: s.run.method_version),
    )
    for text, value in checks:
        if value(baseline) != value(candidate):
            return text
    for role, side in (("baseline", baseline), ("candidate", candidate)):
        if side.run.status == "retracted":
            return f"the {role} is retracted"
    return ""


def _workload(side: Side) -> tuple[Any, ...]:
    """What requests look like; the seed only picks the draw."""
    workload = spec_of(side.run, side.config).workload
    asked = workload.model_dump(exclude={"seed", "trace"})
    sha256 = side.run.workload.sha256
    # a recorded trace is the same one wherever it lies
    return asked, sha256 or workload.trace


def _energy_differs(baseline: Side, candidate: Side) -> str:
    one, two = (derived(side.run, side.config) for side in (baseline, candidate))
    if one.scope != two.scope:
        return f"power scopes differ: {one.scope or 'no meter'} and {two.scope or 'no meter'}"
    if one.tokens != two.tokens:
        return "one divides by all tokens, the other by goodput"
    for role, side in (("baseline", baseline), ("candidate", candidate)):
        energy = side.config.energy
        if energy is not None and not energy.valid:
            return f"the {role}’s meter reading is invalid"
    return ""


def differing(sides: Sequence[Side]) -> tuple[tuple[KeyRow, ...], int]:
    """Return the settings that differ between the sides, and the number of those that don't."""
    each = [_settings(side) for side in sides]
    keys = list(dict.fromkeys(key for settings in each for key in settings))
    rows = [KeyRow(key, tuple(settings.get(key) for settings in each)) for key in keys]
    rows = [row for row in rows if len(set(row.values)) > 1]
    return tuple(rows), len(keys) - len(rows)


def _settings(side: Side) -> dict[str, str]:
    """Return what was asked and what ran, by dotted key; names and prose are no settings."""
    hardware = hardware_of(side.run, side.config)
    limit_w = side.config.power_limit_w or hardware.power_limit_w
    found = {
        "hardware": hardware.model_dump(mode="json", exclude={"uuids", "host"})
        | {"power_limit_w": limit_w},
        "software": software_of(side.run, side.config).model_dump(mode="json"),
        "spec": spec_of(side.run, side.config).model_dump(
            mode="json", exclude={"name", "text", "not_covered"}
        ),
    }
    return dict(_flat("", found))


def _flat(key: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        prefix = f"{key}." if key else ""
        items = cast("dict[str, Any]", value).items()
        return [row for name, each in items for row in _flat(f"{prefix}{name}", each)]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [(key, text)]
