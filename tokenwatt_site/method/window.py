"""A measurement window: its cohort of requests, its verdict and its rates."""

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from tokenwatt_site.method.decoding import Decoding
from tokenwatt_site.method.flow import (
    Flow,
    dispersion,
    gap_cv,
    gaps_ms,
    prompt_tokens,
    tokens_an_event,
)
from tokenwatt_site.method.slo import (
    Slo,
    decided,
    kept,
    n_output,
    tokens_seen,
    tpot_so_far_ms,
    tpot_value_ms,
    ttft_so_far_ms,
    ttft_value_ms,
)
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.trace import TOKEN_SOURCES, RequestTrace, TokenSource

Phase = Literal["search", "confirm", "rate"]

MIN_REQUESTS = 100
"""Fewer requests than this can't show a share of 1 %."""
MAX_STRETCH = 10
LAG_FLOOR_S = 0.005
COALESCED_MAX_PCT = 1.0
CACHED_MAX_PCT = 0.5


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds [w0_s, w1_s) of the client's clock whose arrivals and tokens count."""

    index: int
    phase: Phase
    rate_rps: float
    w0_s: float
    w1_s: float
    warmup_s: float
    tail_s: float | None = None
    """So long after the window the load ended, and what had no verdict is judged by what it had
    so far; None: the load went on for the verdicts, and what still had none is a miss."""
    aborted: bool = False
    """Given up at w1_s, before its time: no pass, and judged by what there was."""

    @property
    def early(self) -> bool:
        """Tell whether unfinished requests are judged by what they had so far."""
        return self.tail_s is not None or self.aborted

    @property
    def length_s(self) -> float:
        """Return the length in seconds."""
        return self.w1_s - self.w0_s

    def holds(self, trace: RequestTrace) -> bool:
        """Tell whether a request is of the cohort: scheduled in the window, not injected."""
        return self.w0_s <= trace.t_sched_s < self.w1_s and not trace.injected


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests of the cohort: sent = ok + failed + unfinished."""

    sent: int
    ok: int
    failed: int
    unfinished: int
    reasons: dict[str, int]
    """Failed requests by reason."""
    miss_ttft: int
    miss_tpot: int


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the cohort says of the load generator and of what lies between it and the server."""

    lag_p99_s: float | None
    """Send after schedule; a request not sent yet lags until now."""
    lag_max_s: float | None
    gap_cv: float | None
    """Standard deviation of the gaps between sends over their mean; 1 for Poisson."""
    dispersion: float | None
    """Variance of the sends in equal bins over their mean; 1 for Poisson."""
    mismatch_pct: float | None
    """Finished requests whose token count differs from the tokens of their events."""
    coalesced_pct: float | None
    cached_pct: float | None
    """Prompt tokens that came from a cache; None where the server doesn't tell."""
    planned_cached_pct: float | None
    """Prompt tokens that a cache may hold, by the workload's plan, of the same requests."""

    @classmethod
    def of(cls, cohort: Sequence[RequestTrace], window: Window, now_s: float) -> Self:
        """Gather the facts of a window's cohort."""
        finished = [t for t in cohort if t.outcome == "ok"]
        sent_s = [t.t_send_s for t in cohort if t.t_send_s is not None]
        # a connection that is refused is the server's doing: the request failed, it didn't lag
        due = [t for t in cohort if t.t_send_s is not None or t.outcome == "running"]
        lags = sorted((now_s if t.t_send_s is None else t.t_send_s) - t.t_sched_s for t in due)
        return cls(
            lag_p99_s=nearest_rank(lags, 0.99) if lags else None,
            lag_max_s=lags[-1] if lags else None,
            gap_cv=gap_cv(sent_s),
            dispersion=dispersion(sent_s, window.w0_s, window.w1_s),
            mismatch_pct=_pct(sum(n_output(t) != tokens_seen(t) for t in finished), len(finished)),
            coalesced_pct=_pct(sum(t.coalesced for t in cohort), len(cohort)),
            cached_pct=_told_pct(finished, lambda t: t.n_cached or 0),
            planned_cached_pct=_told_pct(finished, lambda t: t.n_planned),
        )


@dataclass(frozen=True, slots=True)
class WindowStats:
    """What a window says. Shares and percentiles are the cohort's, token rates the seconds'."""

    window: Window
    counts: Tally
    passed: bool
    """Both miss shares are at most 1 %, of at least 100 requests."""
    undecided_n: bool
    """Fewer than 100 requests: no verdict."""
    valid: bool
    reasons: list[str]
    """Codes of what makes the window invalid: LAG, CLIENT_LIMIT, COALESCED, CACHED."""
    ttft_ms: "array[float]"
    """Ascending, one a request; +inf failed or no token."""
    tpot_ms: "array[float]"
    """Ascending, one a request; +inf failed or unknown, -inf not applicable."""
    itl_ms: "array[float]"
    """Ascending gaps of finished requests, one a token where counts are known, else an event."""
    itl_by_token: bool
    """Whether every gap in itl_ms is a token's; else the gaps are inter-chunk."""
    e2e_ms: "array[float]"
    """Ascending, finished requests."""
    output_tok_s: float
    input_tok_s: float
    """Prompts whose first token came inside the window."""
    goodput_tok_s: float
    """Tokens of requests that kept both limits."""
    goodput_rps: float
    """Requests of the cohort that kept both limits."""
    slo_attainment_pct: float | None
    mean_concurrency: float
    client: ClientFacts
    n_source: TokenSource | None
    """Where the output counts come from: the worst source of a finished request."""
    mean_input_tokens: float | None
    """Of finished requests."""
    mean_output_tokens: float | None
    asked_input_tokens: float | None
    """Mean of the cohort, as it was scheduled."""
    asked_output_tokens: float | None
    planned_cached_pct: float | None
    """Prompt tokens of the cohort that a cache may hold, by the workload's plan."""
    decoding: Decoding
    """Of the finished requests of the cohort."""


def window_length_s(nominal_s: float, rate_rps: float, min_requests: int) -> float:
    """Return how long a window runs: its seconds, or longer for enough requests, at most 10 times.

    Long enough that fewer than ``min_requests`` Poisson arrivals have a chance under 0.1 %: the
    expected number is min_requests + 3.1 √min_requests + 4.
    """
    expected = min_requests + 3.1 * math.sqrt(min_requests) + 4
    return max(nominal_s, min(expected / rate_rps, MAX_STRETCH * nominal_s))


def still_open(
    traces: Iterable[RequestTrace],
    window: Window,
    slo: Slo,
    now_s: float,
    *,
    ignore_eos: bool = True,
) -> list[RequestTrace]:
    """Return the cohort's requests without a verdict; asking again, give the last answer back.

    What is decided stays decided, so each look needs only what the one before left open.
    """
    return [
        trace
        for trace in traces
        if window.holds(trace) and not decided(trace, slo, now_s, ignore_eos=ignore_eos)
    ]


def judge(traces: Sequence[RequestTrace], window: Window, slo: Slo, now_s: float) -> WindowStats:
    """Return the final account of a window.

    What has no verdict by the end of the load is a miss; in a window that ended early (a short
    tail, or given up) it is judged by its age, or by its mean time per token so far.

    Args:
        traces: every request of the load, those of the warm-up and after the window included.
        window: which seconds count.
        slo: the limits.
        now_s: when the load ended.
    """
    cohort = [t for t in traces if window.holds(t)]
    finished = [t for t in cohort if t.outcome == "ok"]
    n = len(cohort)
    ttft_of, tpot_of = _rules(traces, window, now_s)
    ttft_ms = array("d", sorted(map(ttft_of, cohort)))
    tpot_ms = array("d", sorted(map(tpot_of, cohort)))
    tally = _tally(cohort, _over(ttft_ms, slo.ttft_p99_ms), _over(tpot_ms, slo.tpot_p99_ms))

    def met(trace: RequestTrace) -> bool:
        return kept(trace, ttft_of(trace), tpot_of(trace), slo)

    good = sum(map(met, cohort))
    flow = Flow.of(traces, (window.w0_s, window.w1_s), met, now_s)
    client = ClientFacts.of(cohort, window, now_s)
    reasons = _invalid(traces, window, slo, client)
    itl_ms, itl_by_token = gaps_ms(finished)
    return WindowStats(
        window=window,
        counts=tally,
        passed=n >= MIN_REQUESTS
        and 100 * max(tally.miss_ttft, tally.miss_tpot) <= n
        and not window.aborted,
        undecided_n=n < MIN_REQUESTS,
        valid=not reasons,
        reasons=reasons,
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        itl_ms=array("d", itl_ms),
        itl_by_token=itl_by_token,
        e2e_ms=array("d", sorted(1000 * (t.events_s[-1] - t.t_sched_s) for t in finished)),
        output_tok_s=flow.output_tok_s,
        input_tok_s=flow.input_tok_s,
        goodput_tok_s=flow.goodput_tok_s,
        goodput_rps=good / window.length_s,
        slo_attainment_pct=_pct(good, n),
        mean_concurrency=flow.mean_concurrency,
        client=client,
        n_source=_worst_source(finished),
        mean_input_tokens=_mean([prompt_tokens(t) for t in finished]),
        mean_output_tokens=_mean([n_output(t) for t in finished]),
        asked_input_tokens=_mean([t.input_tokens for t in cohort]),
        asked_output_tokens=_mean([t.output_tokens for t in cohort]),
        planned_cached_pct=_pct(
            sum(t.n_planned for t in cohort), sum(t.input_tokens for t in cohort)
        ),
        decoding=Decoding.of(finished),
    )


def _rules(
    traces: Sequence[RequestTrace], window: Window, now_s: float
) -> tuple[Callable[[RequestTrace], float], Callable[[RequestTrace], float]]:
    """Return how a request's TTFT and TPOT are taken, ms."""
    if not window.early:
        return ttft_value_ms, tpot_value_ms
    an_event = tokens_an_event(traces)
    return (
        lambda trace: ttft_so_far_ms(trace, now_s),
        lambda trace: tpot_so_far_ms(trace, an_event),
    )


def _over(ordered: Sequence[float], limit: float) -> int:
    return len(ordered) - bisect_right(ordered, limit)


def _tally(cohort: Sequence[RequestTrace], miss_ttft: int, miss_tpot: int) -> Tally:
    outcomes = Counter(t.outcome for t in cohort)
    reasons = Counter(t.reason for t in cohort if t.outcome == "failed")
    return Tally(
        sent=len(cohort),
        ok=outcomes["ok"],
        failed=outcomes["failed"],
        unfinished=outcomes["running"],
        reasons=dict(sorted(reasons.items())),
        miss_ttft=miss_ttft,
        miss_tpot=miss_tpot,
    )


def _invalid(
    traces: Iterable[RequestTrace], window: Window, slo: Slo, client: ClientFacts
) -> list[str]:
    """Return the codes of what keeps a window from saying anything about the server."""
    lag_limit_s = max(LAG_FLOOR_S, 0.01 * slo.ttft_p99_ms / 1000)
    refused = any(t.reason == "client_limit" and t.t_sched_s < window.w1_s for t in traces)
    found = {
        "LAG": (client.lag_p99_s or 0) > lag_limit_s,
        "CLIENT_LIMIT": refused,
        "COALESCED": (client.coalesced_pct or 0) > COALESCED_MAX_PCT,
        "CACHED": (client.cached_pct or 0) - (client.planned_cached_pct or 0) > CACHED_MAX_PCT,
    }
    return [code for code, true in found.items() if true]


def _pct(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


def _worst_source(finished: Iterable[RequestTrace]) -> TokenSource | None:
    found = {trace.n_source for trace in finished}
    return next((source for source in reversed(TOKEN_SOURCES) if source in found), None)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _told_pct(
    finished: Iterable[RequestTrace], tokens: Callable[[RequestTrace], int]
) -> float | None:
    """Return the share of prompt tokens, of the requests whose cached ones the server tells."""
    told = [t for t in finished if t.n_cached is not None]
    return _pct(sum(map(tokens, told)), sum(prompt_tokens(t) for t in told))
