"""One request in flight: what arrives becomes stamps and facts, and at the end a verdict."""

from collections.abc import Callable
from dataclasses import replace

from tokenwatt_site.load.api import Dialect
from tokenwatt_site.load.api.chunk import error_message, note_document, parsed
from tokenwatt_site.load.shape import Shape, Trust
from tokenwatt_site.load.sse import SseDecoder
from tokenwatt_site.method.outcome import Asked, Ending, StreamFacts, classify
from tokenwatt_site.method.trace import RequestTrace

_REFUSAL_KEPT = 4096  # bytes of a refusal's body, for its message
_SAMPLED = 63  # of so many and one events known by their shape, one is read in full all the same
_IN_VAIN = 4  # shapes taken in a row that no event fitted: this server's chunks differ in more


class Stream:
    """Fills in the trace of one request. A connection calls it; it does no I/O itself."""

    __slots__ = (
        "_asked",
        "_facts",
        "_in_vain",
        "_learned",
        "_on_end",
        "_read",
        "_read_s",
        "_refusal",
        "_shape",
        "_sse",
        "_stamps",
        "_trust",
        "ended",
        "message",
        "request",
        "trace",
    )

    def __init__(
        self,
        trace: RequestTrace,
        request: bytes,
        dialect: Dialect,
        asked: Asked,
        on_end: Callable[["Stream"], None],
        trust: Trust | None = None,
    ) -> None:
        self.trace = trace
        self.request = request
        """Head and body, kept until it is certain that they need not be sent again."""
        self.ended = False
        self.message = ""
        """The server's or the system's words about a failure. In no evidence."""
        self._asked = asked
        self._facts = StreamFacts()
        self._on_end = on_end
        self._read = dialect.read
        self._read_s = 0.0
        self._refusal: bytes | None = None
        self._sse = SseDecoder()
        self._trust = trust or Trust()
        self._shape: Shape | None = None
        self._stamps = trace.events_s
        self._learned = self._in_vain = 0

    def sent(self, now_s: float) -> None:
        """Note the time of the first byte written; the second try of a request keeps the first."""
        if self.trace.t_send_s is None:
            self.trace.t_send_s = now_s

    def head(self, status: int) -> None:
        """Note the status of the answer."""
        self.trace.status = status
        if not 200 <= status < 300:  # noqa: PLR2004
            self._refusal = b""

    def body(self, data: bytes, now_s: float) -> None:
        """Take in a piece of the answer that the read at ``now_s`` returned."""
        shape, trust = self._shape, self._trust
        if shape is not None and self._sse.plain and trust.on and shape.fits(data):
            trust.fitted += 1
            if trust.fitted & _SAMPLED or self._holds(data):
                self._facts.events += 1
                self._stamps.append(now_s)
                return
        self._read_in_full(data, now_s)

    def _read_in_full(self, data: bytes, now_s: float) -> None:
        if self._refusal is not None:
            self._refusal = (self._refusal + data)[:_REFUSAL_KEPT]
            return
        self._read_s = now_s
        try:
            events = self._sse.feed(data)
        except ValueError:
            self.end("malformed", now_s)
            return
        for name, payload in events:
            tokens = self._read(name, payload, self._facts)
            if tokens is not None:
                self._token(tokens, now_s)
            if tokens == -1 and len(events) == 1 and not self._facts.finish:
                self._learn(data, payload)

    def end(self, ending: Ending, now_s: float, message: str = "") -> None:
        """Conclude, once; later calls change nothing."""
        if self.ended:
            return
        self.ended = True
        facts, trace = self._facts, self.trace
        self._flush()
        conclusion = classify(trace, facts, self._asked, ending)
        trace.finish, trace.done = facts.finish, facts.done
        trace.n_prompt, trace.n_cached = facts.prompt_tokens, facts.cached_tokens
        trace.n_output, trace.n_source = conclusion.n_output, conclusion.n_source
        trace.coalesced = conclusion.coalesced
        trace.outcome, trace.reason = conclusion.outcome, conclusion.reason
        trace.t_end_s = now_s
        self.request = b""
        self.message = message or facts.message or self._refused()
        self._on_end(self)

    def cancel(self, now_s: float) -> None:
        """Leave the request undecided: the load has stopped."""
        self.ended = True
        self.trace.t_end_s = now_s

    def _learn(self, data: bytes, payload: bytes) -> None:
        """Take the shape of a token event that was just read in full."""
        seen = len(self._stamps)
        self._in_vain = self._in_vain + 1 if seen == self._learned + 1 else 0
        self._learned = seen
        if self._in_vain >= _IN_VAIN or not self._trust.on:
            return
        shape = Shape.of(payload)
        if shape is not None and shape.fits(data) and self._is_one_more(shape.example()):
            self._shape = shape

    def _holds(self, data: bytes) -> bool:
        """Tell whether an event that fits the shape means what the shape says, and count it."""
        events = self._sse.feed(data)
        holds = len(events) == 1 and not events[0][0] and self._is_one_more(events[0][1])
        self._trust.note(holds=holds)
        return holds

    def _is_one_more(self, payload: bytes) -> bool:
        """Tell whether an event reads as another token event and as nothing else."""
        trial = replace(self._facts, usage=dict(self._facts.usage))
        tokens = self._read(b"", payload, trial)
        trial.events -= 1
        return tokens == -1 and trial == self._facts

    def _token(self, tokens: int, now_s: float) -> None:
        trace = self.trace
        if not trace.events_s and tokens > 0:
            trace.event_tokens, trace.n_first = [], tokens
        if trace.event_tokens is not None:
            if tokens < 0:
                trace.event_tokens = None
            else:
                trace.event_tokens.append(tokens)
        trace.events_s.append(now_s)
        if trace.t_answer_s is None and self._facts.answered:
            trace.t_answer_s = now_s

    def _flush(self) -> None:
        """Take in the last event if only its blank line is missing; a cut one is no fault."""
        malformed = self._facts.malformed
        for name, payload in self._sse.close():
            tokens = self._read(name, payload, self._facts)
            if tokens is not None:
                self._token(tokens, self._read_s)
        self._facts.malformed = malformed
        if self._sse.stray and not self._facts.events:
            note_document(self._sse.stray, self._facts)

    def _refused(self) -> str:
        if not self._refusal:
            return ""
        return error_message(parsed(self._refusal.decode("utf-8", "replace")))
