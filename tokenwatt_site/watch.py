"""Looks at a window while it runs: when it may end, whether prompts arrive whole, what to show."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import ServerError
from tokenwatt_site.method.figures import percentile
from tokenwatt_site.method.probe import Cut
from tokenwatt_site.method.records import Misses
from tokenwatt_site.method.slo import tpot_value_ms, ttft_value_ms
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import Window, still_open
from tokenwatt_site.power.sampler import Sampler

OPEN_SHARE = 0.005
"""A ladder's window ends when at most this share of its requests has no verdict; they count as
misses."""
PATIENCE_S = 10.0
"""Until then every request is waited for, so that a short window's last ones aren't misses."""
RECENT = 500
"""Requests whose percentiles are shown; a look holds up the loop, so it must stay short."""
LOOKED_AT = 200
FIRST_ANSWERS = 20
"""Answers whose counted prompt is compared with the asked one."""
PROMPT_OFF = 0.01
TEXT_OFF = 0.05
"""Texts are as long as their calibration is good: more is told; the counted means are published."""
SHOW_S = 0.5
CUT_EVERY_S = 10.0


def open_share(spec: Spec) -> float:
    """Return the share of a window's requests that may be left without a verdict, as misses.

    None in an adaptive search: it confirms where it expects 0.75 % of misses, and half a percent
    of requests that were only long would decide against the rate.
    """
    return 0.0 if spec.sweep.strategy == "adaptive" else OPEN_SHARE


class Watch:
    """Asked about every 0.1 s while a window plays; True ends it."""

    def __init__(  # noqa: PLR0913 - what it is asked about, and where it shows it
        self,
        spec: Spec,
        window: Window,
        tell: Callable[[dict[str, Any]], None],
        samplers: Sequence[Sampler],
        *,
        exact_prompts: bool,
        ignore_eos: bool,
        cut: Cut | None = None,
        due: int = 0,
    ) -> None:
        """Take what is asked for, and how many requests are due before the window's end."""
        self.aborted = False
        """The window was given up by its cut."""
        self._spec = spec
        self._window = window
        self._tell = tell
        self._samplers = samplers
        self._exact = exact_prompts
        self._verify = exact_prompts or window.index == 0
        self._ignore_eos = ignore_eos
        self._due = due
        self._cut = cut
        self._cut_s = window.w0_s + CUT_EVERY_S
        self._misses = Misses(window, spec.slo, ignore_eos=ignore_eos)
        self._open: list[RequestTrace] | None = None
        self._allowed = 0.0
        self._shown_s = 0.0
        self._seen = self._cohort = 0
        self._flying: list[RequestTrace] = []
        self._ended: deque[RequestTrace] = deque(maxlen=RECENT)

    def __call__(self, traces: list[RequestTrace], now_s: float) -> bool:
        """Return whether the window may end.

        Raises:
            ServerError: the server counts other prompts than were sent.
        """
        if self._verify:
            self._check_prompts(traces)
        self._show(traces, now_s)
        if now_s < self._window.w1_s:
            self.aborted = self._given_up(traces, now_s)
            return self.aborted
        return self._decided(traces, now_s)

    def _given_up(self, traces: list[RequestTrace], now_s: float) -> bool:
        """Ask the cut, every ten seconds of the window."""
        if self._cut is None or now_s < self._cut_s:
            return False
        self._cut_s += CUT_EVERY_S
        return self._cut.hit(*self._misses.look(traces, now_s))

    def _decided(self, traces: list[RequestTrace], now_s: float) -> bool:
        late_s = now_s - self._window.w1_s
        timeout_s = self._spec.measurement.request_timeout_s
        if len(traces) < self._due and late_s < timeout_s:
            return False  # a client that is late must not lose what it was late with
        if self._open is None:
            self._gather(traces)
            self._open = list(filter(self._window.holds, self._flying))
            self._allowed = open_share(self._spec) * self._cohort
        self._open = still_open(
            self._open, self._window, self._spec.slo, now_s, ignore_eos=self._ignore_eos
        )
        tail_s = self._window.tail_s
        if tail_s is not None:
            return late_s >= tail_s or not self._open
        allowed = self._allowed if late_s >= PATIENCE_S else 0
        return len(self._open) <= allowed or late_s >= timeout_s

    def _check_prompts(self, traces: list[RequestTrace]) -> None:
        """Compare the first answers' counted prompts with what was asked."""
        first = traces[:LOOKED_AT]
        answered = [t for t in first if t.outcome == "ok" and t.n_prompt is not None]
        if len(answered) < FIRST_ANSWERS:
            return
        self._verify = False
        asked = sum(t.input_tokens for t in answered)
        counted = sum(t.n_prompt or 0 for t in answered)
        off = abs(counted - asked)
        if not self._exact and off > TEXT_OFF * asked:
            self._tell(
                {
                    "event": "note",
                    "about": "prompts",
                    "text": f"the server counts {counted} tokens in texts made for {asked}",
                }
            )
        if self._exact and off > PROMPT_OFF * asked:
            raise ServerError(
                f"the server counts {counted} prompt tokens where {asked} were sent as ids",
                "check model.vocab_size; a server that changes prompts can't be measured so",
            )

    def _gather(self, traces: list[RequestTrace]) -> None:
        """Go through what was in flight and what is new: looking at all would hold up the loop."""
        new = traces[self._seen :]
        self._seen = len(traces)
        self._cohort += sum(map(self._window.holds, new))
        self._flying += new
        # those of the stationary start all came at once, and are in no percentile
        self._ended.extend(t for t in self._flying if t.outcome != "running" and not t.injected)
        self._flying = [t for t in self._flying if t.outcome == "running"]

    def _show(self, traces: list[RequestTrace], now_s: float) -> None:
        if now_s - self._shown_s < SHOW_S:
            return
        self._shown_s = now_s
        self._gather(traces)
        self._tell(
            {
                "event": "tick",
                "phase": self._window.phase,
                "rate_rps": self._window.rate_rps,
                "in_flight": len(self._flying),
                "ttft_p99_ms": percentile(sorted(map(ttft_value_ms, self._ended)), 0.99),
                "tpot_p99_ms": percentile(sorted(map(tpot_value_ms, self._ended)), 0.99),
                "watts": self._watts(),
                "left_s": max(0.0, self._window.w1_s - now_s),
            }
        )

    def _watts(self) -> float | None:
        """Return the primary meter's last reading, summed over its devices."""
        if not self._samplers:
            return None
        sampler = self._samplers[0]
        last = {s.device: s.power_w for s in sampler.recent()}
        known = [w for w in last.values() if w is not None]
        return sum(known) if len(known) == len(sampler.meter.devices) else None
