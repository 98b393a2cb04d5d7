"""The latency rules for one request: TTFT, TPOT, and when a miss is certain."""

import math
from typing import Protocol

from tokenwatt_site.method.trace import RequestTrace


class Slo(Protocol):
    """The latency promise, as a spec or a run document holds it."""

    @property
    def ttft_p99_ms(self) -> float:
        """Return the limit of the time to first token in ms."""
        ...

    @property
    def tpot_p99_ms(self) -> float:
        """Return the limit of the time per output token in ms."""
        ...


def ttft_s(trace: RequestTrace) -> float | None:
    """Return the first token's time after the *scheduled* arrival; None while there is no token.

    Counted from the schedule, so that a client or server that holds requests back can't hide it.
    """
    return trace.events_s[0] - trace.t_sched_s if trace.events_s else None


def tpot_s(trace: RequestTrace) -> float | None:
    """Return (last − first token event) / (tokens − those of the first event), once finished.

    None where it is not applicable (see :func:`tpot_applies`) or unknown: unfinished, failed, or
    most tokens came in one read.
    """
    if trace.outcome != "ok" or trace.coalesced or not tpot_applies(trace):
        return None
    decoded = n_output(trace) - trace.n_first
    return (trace.events_s[-1] - trace.events_s[0]) / decoded


def tpot_applies(trace: RequestTrace) -> bool:
    """Tell whether a finished request has tokens after its first event.

    A coalesced answer of several tokens would have had them: its TPOT is unknown, not inapplicable.
    """
    n = n_output(trace)
    return n > 1 if trace.coalesced else n > trace.n_first


def n_output(trace: RequestTrace) -> int:
    """Return the output tokens by the best count there is; never the requested number."""
    return tokens_seen(trace) if trace.n_output is None else trace.n_output


def tokens_seen(trace: RequestTrace) -> int:
    """Return the tokens of the events so far, one an event where the server doesn't tell."""
    return len(trace.events_s) if trace.event_tokens is None else sum(trace.event_tokens)


def ttft_value_ms(trace: RequestTrace) -> float:
    """Return TTFT for percentiles, in ms: +∞ for a request that failed or has no token yet."""
    seconds = ttft_s(trace)
    return math.inf if trace.outcome == "failed" or seconds is None else 1000 * seconds


def tpot_value_ms(trace: RequestTrace) -> float:
    """Return TPOT for percentiles, in ms: +∞ failed, unfinished or unknown, −∞ not applicable."""
    if trace.outcome == "ok" and not tpot_applies(trace):
        return -math.inf
    seconds = tpot_s(trace)
    return math.inf if seconds is None else 1000 * seconds


def ttft_so_far_ms(trace: RequestTrace, now_s: float) -> float:
    """Return TTFT as the search judges it, in ms: of a running request without a token, its age."""
    if trace.outcome == "running" and not trace.events_s:
        return 1000 * (now_s - trace.t_sched_s)
    return ttft_value_ms(trace)


def tpot_so_far_ms(trace: RequestTrace, an_event: float = 1.0) -> float:
    """Return TPOT as the search judges it, in ms: of a running request, the mean up to now.

    Args:
        trace: the request.
        an_event: tokens of an event, where its own events don't tell.
    """
    if trace.outcome != "running":
        return tpot_value_ms(trace)
    known = trace.event_tokens is not None
    decoded = tokens_seen(trace) * (1.0 if known else an_event) - trace.n_first
    if not trace.events_s or decoded <= 0:
        return -math.inf
    return 1000 * (trace.events_s[-1] - trace.events_s[0]) / decoded


def kept(trace: RequestTrace, ttft_ms: float, tpot_ms: float, slo: Slo) -> bool:
    """Tell whether a request with these latencies keeps both limits.

    An injected one has no arrival of its own: its TPOT decides.
    """
    return (trace.injected or ttft_ms <= slo.ttft_p99_ms) and tpot_ms <= slo.tpot_p99_ms


def decided(trace: RequestTrace, slo: Slo, now_s: float, *, ignore_eos: bool = True) -> bool:
    """Tell whether a request has finished, failed, or is certain to miss a limit.

    Args:
        trace: the request, perhaps still running.
        slo: the limits.
        now_s: the time of looking, on the client's clock.
        ignore_eos: the answer has exactly the requested length, or fails.
    """
    if trace.outcome != "running":
        return True
    first_s = ttft_s(trace)
    elapsed_s = now_s - trace.t_sched_s if first_s is None else first_s
    if 1000 * elapsed_s > slo.ttft_p99_ms:
        return True
    return first_s is not None and _tpot_lost(trace, slo.tpot_p99_ms / 1000, now_s, ignore_eos)


def _tpot_lost(trace: RequestTrace, limit_s: float, now_s: float, ignore_eos: bool) -> bool:  # noqa: FBT001
    """Tell whether a running request that has its first token can't meet the TPOT limit any more.

    The best end there can be is one of two. It goes on: then the most tokens that it may have,
    all the missing ones arriving this very moment, give (now − first)/(max_tokens − k); every
    real course is later, or has fewer tokens, or both. Or it has its last token already: then
    (last − first)/(n − k), n the tokens so far; not applicable, and so met, when n = k. The second
    is open only if the answer may stop short, or all of its tokens have come.
    """
    first_s, last_s = trace.events_s[0], trace.events_s[-1]
    seen, k, most = tokens_seen(trace), trace.n_first, trace.output_tokens
    may_go_on = seen < most and now_s - first_s <= limit_s * (most - k)
    may_stop = (not ignore_eos or seen >= most) and last_s - first_s <= limit_s * (seen - k)
    return not (may_go_on or may_stop)
