"""A configuration over load: one point a rate, from the sweep and the reported windows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.documents.window import Energy, WindowRecord
from tokenwatt_site.method.derived import (
    derived,
    spec_of,
    window_j_per_token,
    window_power_w,
    window_within,
)


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What was measured at one rate."""

    rate_rps: float
    passed: bool
    reported: bool
    """The rate that the document reports."""
    ttft_p99_ms: float | None
    tpot_p99_ms: float | None
    goodput_tok_s: float | None
    output_tok_s: float | None
    power_w: float | None
    j_per_token: float | None
    unsure_pct: float | None = None
    """Half-width of the 95 % interval of ``j_per_token``, percent."""


@dataclass(frozen=True, slots=True)
class Load:
    """The points in order of rate, and where the reported rate lies."""

    points: tuple[LoadPoint, ...]
    at_rps: float | None
    """The reported rate."""
    is_boundary: bool
    """The reported rate is the highest that kept the limits in a search."""
    fails_at_rps: float | None
    """The lowest rate above it that failed."""
    estimate_rps: float | None = None
    """Where an adaptive search takes the boundary to be,"""
    interval_rps: tuple[float, float] | None = None
    """and the 95 % interval of that."""

    def known(self, value: Callable[[LoadPoint], float | None]) -> list[tuple[LoadPoint, float]]:
        """Return the points that have ``value``, and it."""
        return [(p, v) for p in self.points if (v := value(p)) is not None]


def load_of(run: Run, config: Config) -> Load:
    """Return ``config`` over load.

    Where a rate was measured more than once the reported windows count, then a confirm window,
    then the last search window. Invalid windows are left out.
    """
    order = {"search": 0, "rate": 1, "confirm": 2}
    records = [w for w in [*(config.sweep or ()), *(config.windows or ())] if w.valid]
    chosen: dict[float, WindowRecord] = {}
    for record in records:
        before = chosen.get(record.rate_rps)
        if before is None or order[record.phase] >= order[before.phase]:
            chosen[record.rate_rps] = record
    points = {rate: _point(record) for rate, record in chosen.items()}
    at = config.rate_rps
    if at is not None and config.repeats:
        points[at] = _reported(run, config, at)
    ordered = tuple(points[rate] for rate in sorted(points))
    fails = [p.rate_rps for p in ordered if not p.passed and at is not None and p.rate_rps > at]
    found = Load(ordered, at, _is_boundary(run, config), min(fails, default=None))
    return _estimated(found, run) if len(run.configs) == 1 else found


def _estimated(load: Load, run: Run) -> Load:
    """Return the load with the estimate of an adaptive search."""
    if run.search is None or run.search.est_rps is None:
        return load
    ends = run.search.interval_rps
    interval = None if ends is None else (float(ends[0]), float(ends[1]))
    return replace(load, estimate_rps=float(run.search.est_rps), interval_rps=interval)


def _is_boundary(run: Run, config: Config) -> bool:
    decided = run.verdict is None or run.verdict.word in {"met", "proven"}
    kept = decided and _kept(run, config)
    return kept and config.rate_rps is not None and spec_of(run, config).sweep.rates is None


def _kept(run: Run, config: Config) -> bool:
    """Tell whether the reported rate kept the limits: in each window, or counted over all."""
    if spec_of(run, config).sweep.strategy == "adaptive" and config.counts is not None:
        missed = (config.counts.miss_ttft or 0, config.counts.miss_tpot or 0)
        return 100 * max(missed) <= config.counts.sent > 0
    return 0 < config.repeats == config.slo_pass_count


def _point(record: WindowRecord) -> LoadPoint:
    return LoadPoint(
        record.rate_rps,
        window_within(record),
        reported=False,
        ttft_p99_ms=record.ttft_p99_ms,
        tpot_p99_ms=record.tpot_p99_ms,
        goodput_tok_s=record.goodput_tok_s,
        output_tok_s=record.output_tok_s,
        power_w=window_power_w(record),
        j_per_token=window_j_per_token(record),
        unsure_pct=_unsure_pct(record.energy),
    )


def _reported(run: Run, config: Config, rate_rps: float) -> LoadPoint:
    figures = derived(run, config)
    return LoadPoint(
        rate_rps,
        _kept(run, config),
        reported=True,
        ttft_p99_ms=config.ttft_p99_ms,
        tpot_p99_ms=config.tpot_p99_ms,
        goodput_tok_s=config.goodput_tok_s,
        output_tok_s=config.output_tok_s,
        power_w=figures.power_w,
        j_per_token=figures.j_per_token,
        unsure_pct=_unsure_pct(config.energy),
    )


def _unsure_pct(energy: Energy | None) -> float | None:
    return ((energy and energy.uncertainty) or {}).get("combined_pct")


def crossing(
    load: Load, value: Callable[[LoadPoint], float | None], limit: float
) -> tuple[float | None, float | None]:
    """Return the last rate before ``value`` first exceeds ``limit``, and that rate."""
    known = load.known(value)
    over = next((i for i, (_, v) in enumerate(known) if v > limit), None)
    if over is None:
        return (known[-1][0].rate_rps if known else None), None
    return (known[over - 1][0].rate_rps if over else None), known[over][0].rate_rps


def nearest(points: Sequence[LoadPoint], rate_rps: float) -> LoadPoint:
    """Return the point measured nearest to ``rate_rps``."""
    return min(points, key=lambda p: abs(p.rate_rps - rate_rps))
