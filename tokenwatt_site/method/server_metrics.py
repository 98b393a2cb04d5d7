"""What a server says of itself: its Prometheus page, read over a window, beside what was measured.

Nothing of it enters a verdict. It tells why: a queue that grows, sequences that were preempted, a
prompt that came from a cache, and what the server itself takes its latencies to be.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

_T = TypeVar("_T")

_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LE = re.compile(r'(?:^|,)\s*le="([^"]+)"')

GAUGES: dict[str, tuple[str, ...]] = {
    "running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "llamacpp:requests_processing",
    ),
    "waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "llamacpp:requests_deferred",
    ),
    "kv_share": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
}
"""Our name: theirs, of which the first that a page has counts. Engines behind one page are summed,
shares of memory are not: the fullest."""
COUNTERS: dict[str, tuple[str, ...]] = {
    "preemptions": ("vllm:num_preemptions_total",),
    "prompt_tokens": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
    ),
    "output_tokens": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "llamacpp:tokens_predicted_total",
    ),
    "cached_tokens": ("vllm:prefix_cache_hits_total", "llamacpp:prompt_tokens_cached_total"),
}
HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "ttft": (
        "vllm:time_to_first_token_seconds_bucket",
        "sglang:time_to_first_token_seconds_bucket",
    ),
    "tpot": ("vllm:request_time_per_output_token_seconds_bucket",),
}
"""In seconds, cumulative, a count a request. What others call time per output token, vLLM before
and SGLang now, counts each gap between tokens: that is no TPOT."""

_OURS = {theirs: ours for names in (GAUGES, COUNTERS, HISTOGRAMS)
         for ours, all_theirs in names.items() for theirs in all_theirs}  # fmt: skip
_MOST = 2.0**53
_MOST_BOUNDS = 200


@dataclass(slots=True)
class Page:
    """One reading of a server's page, under our names."""

    t_s: float
    values: dict[str, float] = field(default_factory=dict)
    buckets: dict[str, dict[float, float]] = field(default_factory=dict)
    """Of each histogram: requests up to a bound in seconds, so far."""


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """What the server said over a window. None where it doesn't say."""

    readings: int
    running_mean: float | None
    running_max: float | None
    waiting_mean: float | None
    waiting_max: float | None
    kv_max_pct: float | None
    preemptions: int | None
    prompt_tokens: int | None
    output_tokens: int | None
    cached_pct: float | None
    """Prompt tokens that came from a cache."""
    ttft_p99_ms: list[float] | None
    """Between which two of its histogram's bounds; it begins to count when it has the request."""
    tpot_p99_ms: list[float] | None


def page_of(text: str, t_s: float) -> Page:
    """Return a reading of a Prometheus page.

    Names that we don't know are passed over, and so is what can't be: the page is a stranger's.
    """
    values: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        ours = _OURS.get(match[1]) if match else None
        if match is None or ours is None:
            continue
        value = _number(match[3])
        theirs = match[1]
        if value is None:
            continue
        if ours in HISTOGRAMS:
            _bucket(buckets.setdefault(theirs, {}), match[2] or "", value)
        elif ours != "kv_share":
            values[theirs] = values.get(theirs, 0.0) + value
        elif value <= 1:
            values[theirs] = max(values.get(theirs, 0.0), value)
    counted = {theirs: value for theirs, value in values.items() if value <= _MOST}
    filled = {theirs: counts for theirs, counts in buckets.items() if counts}
    return Page(t_s, _ours(GAUGES | COUNTERS, counted), _ours(HISTOGRAMS, filled))


def page_row(page: Page, window: int, t0_s: float) -> dict[str, Any]:
    """Return the evidence row of a reading; times are microseconds from the window's start."""
    buckets = {
        name: [["+Inf" if math.isinf(le) else le, n] for le, n in sorted(counts.items())]
        for name, counts in page.buckets.items()
    }
    row: dict[str, Any] = {"w": window, "t_us": round((page.t_s - t0_s) * 1e6), **page.values}
    return row | ({"buckets": buckets} if buckets else {})


def page_of_row(row: Mapping[str, Any], t0_s: float = 0.0) -> Page:
    """Return the reading of a row; ``page_row`` of it gives the same row."""
    values = {k: v for k, v in row.items() if k not in ("w", "t_us", "buckets")}
    buckets = {
        name: {math.inf if le == "+Inf" else le: n for le, n in pairs}
        for name, pairs in row.get("buckets", {}).items()
    }
    return Page(t0_s + row["t_us"] / 1e6, values, buckets)


def server_window(pages: Sequence[Page], w0_s: float, w1_s: float) -> ServerWindow | None:
    """Return what the readings, in the order of their time, say of [w0_s, w1_s).

    Gauges are those read inside. Counters are differences between the last reading before the
    window and the first after it, so that they hold a little more than the window. None without a
    reading inside.
    """
    inside = [page for page in pages if w0_s <= page.t_s < w1_s]
    if not inside:
        return None
    first = next((page for page in reversed(pages) if page.t_s <= w0_s), inside[0])
    last = next((page for page in pages if page.t_s >= w1_s), inside[-1])
    prompts, cached = _gain(first, last, "prompt_tokens"), _gain(first, last, "cached_tokens")
    return ServerWindow(
        readings=len(inside),
        running_mean=_over(inside, "running", _mean),
        running_max=_over(inside, "running", max),
        waiting_mean=_over(inside, "waiting", _mean),
        waiting_max=_over(inside, "waiting", max),
        kv_max_pct=_times(100, _over(inside, "kv_share", max)),
        preemptions=_gain(first, last, "preemptions"),
        prompt_tokens=prompts,
        output_tokens=_gain(first, last, "output_tokens"),
        cached_pct=100 * cached / prompts if prompts and cached is not None else None,
        ttft_p99_ms=_quantile_ms(first, last, "ttft", 0.99),
        tpot_p99_ms=_quantile_ms(first, last, "tpot", 0.99),
    )


def _number(text: str) -> float | None:
    """Return a count, a share or a time; None of what is none, or too large to be counted."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _MOST else None


def _bucket(counts: dict[float, float], labels: str, value: float) -> None:
    bound = _LE.search(labels)
    if bound is None:
        return
    le = math.inf if bound[1] == "+Inf" else _number(bound[1])
    if le is not None and (le in counts or len(counts) < _MOST_BOUNDS):
        counts[le] = counts.get(le, 0.0) + value


def _ours(names: Mapping[str, Sequence[str]], found: Mapping[str, _T]) -> dict[str, _T]:
    """Return what was found under our names; of several of theirs the first, never the sum."""
    return {
        ours: found[theirs]
        for ours, all_theirs in names.items()
        if (theirs := next(filter(found.__contains__, all_theirs), None)) is not None
    }


def _over(
    pages: Sequence[Page], name: str, fold: Callable[[Sequence[float]], float]
) -> float | None:
    found = [page.values[name] for page in pages if name in page.values]
    return fold(found) if found else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _gain(first: Page, last: Page, name: str) -> int | None:
    """Return the rise of a counter; None where it isn't there, or fell, by a restart."""
    before, after = first.values.get(name), last.values.get(name)
    if before is None or after is None or after < before:
        return None
    return round(after - before)


def _quantile_ms(first: Page, last: Page, name: str, q: float) -> list[float] | None:
    """Return the bounds between which a quantile of the requests counted in between lies.

    None where no request was, where the counts fell, and where it lies above the last bound.
    """
    before, after = first.buckets.get(name, {}), last.buckets.get(name, {})
    gained = sorted((le, n - before.get(le, 0.0)) for le, n in after.items())
    if not gained or gained[-1][1] <= 0 or any(n < 0 for _, n in gained):
        return None
    rank, below_s = math.ceil(q * gained[-1][1]), 0.0
    for le, n in gained:
        if n >= rank:
            return None if math.isinf(le) else [1000 * below_s, 1000 * le]
        below_s = le
    return None
