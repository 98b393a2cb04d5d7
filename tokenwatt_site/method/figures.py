"""The figures of one window and of several pooled, as a run document holds them."""

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tokenwatt_site.method.energy_report import energy, further_meters
from tokenwatt_site.method.idle import Idle
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.slo import Slo
from tokenwatt_site.method.statistics import mean_interval, nearest_rank
from tokenwatt_site.method.trace import TOKEN_SOURCES
from tokenwatt_site.method.window import WindowStats

CDF_POINTS = 80


def window_record(measured: MeasuredWindow) -> dict[str, Any]:
    """Return the window as ``documents.run.WindowRecord`` holds it."""
    stats, window = measured.stats, measured.window
    record: dict[str, Any] = {
        "index": window.index,
        "phase": window.phase,
        "rate_rps": window.rate_rps,
        "passed": stats.passed,
        "valid": measured.valid,
        "reasons": list(measured.reasons),
        "started": measured.started,
        "window_s": window.length_s,
        "warmup_s": window.warmup_s,
        "counts": _counts([stats]),
        "ttft_p99_ms": percentile(stats.ttft_ms, 0.99),
        "tpot_p99_ms": percentile(stats.tpot_ms, 0.99),
        "ttft_p50_ms": percentile(stats.ttft_ms, 0.5),
        "tpot_p50_ms": percentile(stats.tpot_ms, 0.5),
        "output_tok_s": stats.output_tok_s,
        "input_tok_s": stats.input_tok_s,
        "goodput_tok_s": stats.goodput_tok_s,
        "goodput_rps": stats.goodput_rps,
        "slo_attainment_pct": stats.slo_attainment_pct,
        "mean_concurrency": stats.mean_concurrency,
        "client": measured.client,
        "stationary": measured.stationary,
    }
    if window.tail_s is not None:
        record["tail_s"] = window.tail_s
    if window.aborted:
        record["aborted"] = True
    if measured.inject:
        record["inject"] = measured.inject
    if measured.server:
        record["server"] = asdict(measured.server)
    if measured.meters:
        record["energy"] = energy([measured])
        record |= _further([measured])
        record["throttle_counts"] = dict(measured.meters[0].energy.throttle_counts)
    return record


def pooled(
    windows: Sequence[MeasuredWindow], slo: Slo, idle: Sequence[Idle] = ()
) -> dict[str, Any]:
    """Return the keys of ``documents.run.Config`` that windows at one rate give together.

    Percentiles are those of the pooled cohorts, rates are sums over summed seconds.

    Args:
        windows: the windows, at least one.
        slo: the limits.
        idle: what the meters read without load.
    """
    stats = [w.stats for w in windows]
    seconds = sum(w.window.length_s for w in windows)
    figures: dict[str, Any] = {
        "rate_rps": windows[0].window.rate_rps,
        **{
            key: _rate(windows, key)
            for key in ("output_tok_s", "input_tok_s", "goodput_tok_s", "goodput_rps")
        },
        "slo_attainment_pct": _share_kept(windows),
        "counts": _counts(stats),
        "ttft_ms": distribution([s.ttft_ms for s in stats], slo.ttft_p99_ms),
        "tpot_ms": distribution([s.tpot_ms for s in stats], slo.tpot_p99_ms),
        "itl_ms": distribution([s.itl_ms for s in stats], None),
        "e2e_ms": distribution([s.e2e_ms for s in stats], None),
        "mean_concurrency": sum(w.stats.mean_concurrency * w.window.length_s for w in windows)
        / seconds,
        "tokens": _tokens(stats),
        "realised": _realised(stats),
        "client": _client(windows),
    }
    figures["ttft_p99_ms"] = figures["ttft_ms"]["p99"]
    figures["tpot_p99_ms"] = figures["tpot_ms"]["p99"]
    if windows[0].meters:
        figures |= _power(windows, idle)
    return figures


def percentile(ordered: Sequence[float], q: float) -> float | None:
    """Return the nearest-rank percentile, None where it is unknown or has no bound."""
    value = nearest_rank(ordered, q) if len(ordered) else math.inf
    return value if math.isfinite(value) else None


def distribution(parts: Sequence[Sequence[float]], limit_ms: float | None) -> dict[str, Any]:
    """Return a pooled latency distribution, ms, as ``documents.run.Dist`` holds it.

    Args:
        parts: ascending values of each window; +inf failed or unknown, -inf not applicable.
        limit_ms: the limit, which an infinite p99 is known to exceed.
    """
    values = list(heapq.merge(*parts))
    finite = [value for value in values if math.isfinite(value)]
    dist: dict[str, Any] = {name: percentile(values, q) for name, q in _QUANTILES.items()}
    dist["mean"] = math.fsum(finite) / len(finite) if finite else None
    dist["n"] = len(values)
    if values and dist["p99"] is None and limit_ms is not None and nearest_rank(values, 0.99) > 0:
        dist["censored_over"] = limit_ms
    tails = [value for part in parts if (value := percentile(part, 0.99)) is not None]
    if len(tails) >= 3 and len(tails) == len(parts):  # noqa: PLR2004 - an interval needs three
        mean, half = mean_interval(tails)
        if half is not None:
            dist["interval"] = [max(0.0, mean - half), mean + half]
    if finite:
        dist["cdf"] = _cdf(values)
    return dist


_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def _cdf(values: list[float]) -> list[list[float]]:
    """Pairs of (ms, percent at or under) at evenly spaced ranks, finite values only."""
    n = len(values)
    ranks = sorted(
        {max(1, round(n * i / CDF_POINTS)) for i in range(CDF_POINTS + 1)}
        | {n, math.ceil(0.99 * n)}
    )
    return [[values[r - 1], 100 * r / n] for r in ranks if math.isfinite(values[r - 1])]


def _counts(stats: Sequence[WindowStats]) -> dict[str, Any]:
    keys = ("sent", "ok", "failed", "unfinished", "miss_ttft", "miss_tpot")
    counts: dict[str, Any] = {key: sum(getattr(s.counts, key) for s in stats) for key in keys}
    counts["reasons"] = dict(sum((Counter(s.counts.reasons) for s in stats), Counter[str]()))
    return counts


def _rate(windows: Sequence[MeasuredWindow], key: str) -> float:
    total = math.fsum(getattr(w.stats, key) * w.window.length_s for w in windows)
    return total / math.fsum(w.window.length_s for w in windows)


def _share_kept(windows: Sequence[MeasuredWindow]) -> float:
    kept = math.fsum((w.stats.slo_attainment_pct or 0.0) * w.stats.counts.sent for w in windows)
    sent = sum(w.stats.counts.sent for w in windows)
    return kept / sent if sent else 0.0


def _tokens(stats: Sequence[WindowStats]) -> dict[str, Any]:
    source = max((s.n_source for s in stats if s.n_source), key=TOKEN_SOURCES.index, default="")
    return {
        "input": _weighted([(s.mean_input_tokens, s.counts.ok) for s in stats]),
        "output": _weighted([(s.mean_output_tokens, s.counts.ok) for s in stats]),
        "source": source,
        # events counted against themselves say nothing
        "mismatch_pct": None
        if source == "chunks"
        else _weighted([(s.client.mismatch_pct, s.counts.ok) for s in stats]),
    }


def _realised(stats: Sequence[WindowStats]) -> dict[str, Any]:
    """Return what was drawn, whatever became of the requests."""
    return {
        "input_tokens": _weighted([(s.asked_input_tokens, s.counts.sent) for s in stats]),
        "output_tokens": _weighted([(s.asked_output_tokens, s.counts.sent) for s in stats]),
        "n": sum(s.counts.sent for s in stats),
        "planned_cached_pct": _weighted([(s.planned_cached_pct, s.counts.sent) for s in stats]),
    }


def _weighted(pairs: Sequence[tuple[float | None, int]]) -> float | None:
    known = [(value, weight) for value, weight in pairs if value is not None]
    weight = sum(weight for _, weight in known)
    return math.fsum(value * weight for value, weight in known) / weight if weight else None


def _client(windows: Sequence[MeasuredWindow]) -> dict[str, float | None]:
    """The worst of each figure that the load generator gives of itself; means of the arrivals'."""
    worst: dict[str, float | None] = {}
    for key in windows[0].client:
        values = [value for w in windows if (value := w.client[key]) is not None]
        if key in {"gap_cv", "dispersion"}:
            worst[key] = math.fsum(values) / len(values) if values else None
        else:
            worst[key] = max(values, key=abs) if values else None
    return worst


def _power(windows: Sequence[MeasuredWindow], idle: Sequence[Idle]) -> dict[str, Any]:
    primary = [w.meters[0].energy for w in windows]
    document = energy(windows, idle)
    figures: dict[str, Any] = {
        "energy": document,
        **_further(windows, idle),
        "throttle_counts": dict(sum((Counter(e.throttle_counts) for e in primary), Counter[str]())),
    }
    if document["joules"] is not None:
        figures["node_power_kw"] = document["joules"] / document["seconds"] / 1000
    throttled = [(e.throttled_pct, round(1000 * e.seconds)) for e in primary]
    if all(share is not None for share, _ in throttled):
        figures["throttle_share_pct"] = _weighted(throttled)
    return figures


def _further(windows: Sequence[MeasuredWindow], idle: Sequence[Idle] = ()) -> dict[str, Any]:
    """Return the key for the meters after the primary one; a run with one meter has none."""
    reports = further_meters(windows, idle)
    return {"meters": reports} if reports else {}
