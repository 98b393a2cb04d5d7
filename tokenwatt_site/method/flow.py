"""What flowed during the seconds of a window, whichever request it belongs to."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from tokenwatt_site.method.trace import RequestTrace

_BIN_EVENTS = 5
_BINS_LEAST = 10
_BINS_MOST = 300


@dataclass(frozen=True, slots=True)
class Flow:
    """Rates over [w0_s, w1_s)."""

    output_tok_s: float
    """All token events inside, those of failed and unfinished requests included."""
    goodput_tok_s: float
    """Those of requests that kept both limits, from before the window too."""
    input_tok_s: float
    """Prompts whose first token came inside."""
    mean_concurrency: float
    """Mean number of requests between send and end."""

    @classmethod
    def of(
        cls,
        traces: Sequence[RequestTrace],
        span_s: tuple[float, float],
        met: Callable[[RequestTrace], bool],
        now_s: float,
    ) -> Self:
        """Sum over all requests of the load; one still running at now_s is in flight until then.

        Args:
            traces: the requests.
            span_s: start and end of the seconds that count.
            met: tells whether a request kept both limits.
            now_s: when the load ended.
        """
        w0_s, w1_s = span_s
        usual = tokens_an_event(traces)
        output = good = prompts = flight_s = 0.0
        for trace in traces:
            tokens = _tokens_inside(trace, w0_s, w1_s, usual)
            if tokens:
                output += tokens
                good += tokens if met(trace) else 0
                prompts += prompt_tokens(trace) if trace.events_s[0] >= w0_s else 0
            if trace.t_send_s is not None:
                end_s = now_s if trace.t_end_s is None else trace.t_end_s
                flight_s += max(0.0, min(end_s, w1_s) - max(trace.t_send_s, w0_s))
        length_s = w1_s - w0_s
        return cls(output / length_s, good / length_s, prompts / length_s, flight_s / length_s)


def prompt_tokens(trace: RequestTrace) -> int:
    """Return the prompt's tokens by the server's count, else as scheduled."""
    return trace.input_tokens if trace.n_prompt is None else trace.n_prompt


def gaps_ms(traces: Iterable[RequestTrace]) -> tuple[list[float], bool]:
    """Return the gaps between token events in ms, ascending, and whether each is one token's.

    Where an event is known to carry m tokens, its gap counts as m gaps of an m-th each.
    """
    gaps: list[float] = []
    by_token = True
    for trace in traces:
        stamps = trace.events_s
        between = [1000 * (b - a) for a, b in pairwise(stamps)]
        if trace.event_tokens is None:
            by_token = by_token and trace.n_output == len(stamps)
            gaps += between
        else:
            waited = 0.0  # by events that carried no token of their own
            for gap, m in zip(between, trace.event_tokens[1:], strict=True):
                waited += gap
                if m > 0:
                    gaps += [waited / m] * m
                    waited = 0.0
    gaps.sort()
    return gaps, by_token


def gap_cv(times_s: Iterable[float]) -> float | None:
    """Return the coefficient of variation of the gaps: 1 for Poisson, 0 for a clock."""
    ordered = sorted(times_s)
    gaps = [b - a for a, b in pairwise(ordered)]
    mean_s = math.fsum(gaps) / len(gaps) if gaps else 0.0
    if len(gaps) < 2 or mean_s == 0:  # noqa: PLR2004 - a spread needs two
        return None
    spread = math.fsum((gap - mean_s) ** 2 for gap in gaps) / (len(gaps) - 1)
    return math.sqrt(spread) / mean_s


def dispersion(times_s: Iterable[float], w0_s: float, w1_s: float) -> float | None:
    """Return the index of dispersion of counts: variance over mean of the events in equal bins.

    I = Var N / E N (Cox and Lewis, The Statistical Analysis of Series of Events, 1966): 1
    for Poisson whatever the rate, 0 for a clock, more where events come in bursts. [w0_s, w1_s)
    is cut into at most 300 bins of five events each or more; for Poisson I then scatters by
    √(2 / (bins - 1)). None below ten bins, which say nothing.
    """
    inside = [t for t in times_s if w0_s <= t < w1_s]
    bins = min(len(inside) // _BIN_EVENTS, _BINS_MOST)
    if bins < _BINS_LEAST:
        return None
    counts = [0] * bins
    for t in inside:
        counts[min(int((t - w0_s) / (w1_s - w0_s) * bins), bins - 1)] += 1
    mean = len(inside) / bins
    return sum((count - mean) ** 2 for count in counts) / (bins - 1) / mean


def tokens_an_event(traces: Iterable[RequestTrace]) -> float:
    """Return the mean tokens of an event of finished requests, a running one's best guess."""
    counted = [t for t in traces if t.n_output is not None and t.event_tokens is None]
    events = sum(len(t.events_s) for t in counted)
    return sum(t.n_output or 0 for t in counted) / events if events else 1.0


def _tokens_inside(trace: RequestTrace, w0_s: float, w1_s: float, usual: float) -> float:
    start, stop = bisect_left(trace.events_s, w0_s), bisect_left(trace.events_s, w1_s)
    if trace.event_tokens is not None:
        return sum(trace.event_tokens[start:stop])
    if trace.n_output is None or start == stop:
        return (stop - start) * usual
    return (stop - start) * trace.n_output / len(trace.events_s)
