"""What a search is told of the requests of a window: their records, and misses while it runs."""

from collections.abc import Sequence

from tokenwatt_site.method.flow import tokens_an_event
from tokenwatt_site.method.probe import Record
from tokenwatt_site.method.slo import (
    Slo,
    decided,
    n_output,
    tokens_seen,
    tpot_so_far_ms,
    ttft_so_far_ms,
)
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import Window


def records_of(traces: Sequence[RequestTrace]) -> tuple[Record, ...]:
    """Return the records of a load, whose times count from its start, in the traces' order."""
    an_event = tokens_an_event(traces)
    return tuple(_record(trace, an_event) for trace in traces)


def _record(trace: RequestTrace, an_event: float) -> Record:
    known = trace.n_output is not None or trace.event_tokens is not None
    return Record(
        arrival_s=trace.t_sched_s,
        first_s=trace.events_s[0] if trace.events_s else None,
        last_s=trace.events_s[-1] if trace.events_s else None,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        tokens=n_output(trace) if known else round(tokens_seen(trace) * an_event),
        finished=trace.outcome == "ok",
        failed=trace.outcome == "failed",
        injected=trace.injected,
    )


class Misses:
    """Counts the misses of a window while it runs, each look touching only what is undecided."""

    def __init__(self, window: Window, slo: Slo, *, ignore_eos: bool) -> None:
        self._window = window
        self._slo = slo
        self._ignore_eos = ignore_eos
        self._seen = 0
        self._open: list[RequestTrace] = []
        self._n = self._ttft = self._tpot = 0

    def look(self, traces: Sequence[RequestTrace], now_s: float) -> tuple[int, int]:
        """Return the larger of the two miss counts, and how many requests have a verdict.

        Args:
            traces: those of the looks before and what was sent since, in order.
            now_s: the time of looking.
        """
        slo, still = self._slo, list[RequestTrace]()
        new = filter(self._window.holds, traces[self._seen :])
        for trace in (*self._open, *new):
            if not decided(trace, slo, now_s, ignore_eos=self._ignore_eos):
                still.append(trace)
                continue
            late = ttft_so_far_ms(trace, now_s) > slo.ttft_p99_ms
            lost = trace.outcome == "running" and not late  # what else has decided it
            self._n += 1
            self._ttft += late
            self._tpot += lost or tpot_so_far_ms(trace) > slo.tpot_p99_ms
        self._open, self._seen = still, len(traces)
        return max(self._ttft, self._tpot), self._n
