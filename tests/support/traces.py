"""Requests as a client would record them, for tests of windows."""

from array import array
from collections.abc import Sequence
from itertools import count

from tokenwatt_site.method.trace import Outcome, RequestTrace

_INDEX = count()


def request(
    sched_s: float,
    events_s: Sequence[float] = (),
    *,
    tokens: int | None = None,
    outcome: Outcome = "ok",
    asked: int | None = None,
) -> RequestTrace:
    """Return a request with token events at these times, one token each where ``tokens`` is None.

    Sent a millisecond after its schedule; it ended with its last event, unless it runs. ``asked``
    is max_tokens, the number of tokens by default.
    """
    n = len(events_s) if tokens is None else tokens
    return RequestTrace(
        index=next(_INDEX),
        t_sched_s=sched_s,
        input_tokens=100,
        output_tokens=n if asked is None else asked,
        t_send_s=sched_s + 0.001,
        events_s=array("d", events_s),
        n_output=n if outcome == "ok" else None,
        n_source="usage" if outcome == "ok" else None,
        outcome=outcome,
        reason="http_503" if outcome == "failed" else "",
        t_end_s=(events_s[-1] if events_s else sched_s + 1) if outcome != "running" else None,
    )


def steady(sched_s: float, ttft_s: float = 0.2, tpot_s: float = 0.02, n: int = 11) -> RequestTrace:
    """Return a finished request of n tokens, equally spaced."""
    first_s = sched_s + ttft_s
    return request(sched_s, [first_s + i * tpot_s for i in range(n)])
