"""What the finished requests of a window say of decoding: its speed, and how long contexts are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tokenwatt_site.method.flow import prompt_tokens
from tokenwatt_site.method.slo import n_output, tpot_s
from tokenwatt_site.method.trace import RequestTrace


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sums over finished requests, so that windows can be put together."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    squares: int = 0
    """Of the output tokens, summed."""
    seconds: float = 0.0
    """From first to last token, of those whose TPOT is known."""
    decoded: int = 0
    """Their tokens after the first event."""

    @classmethod
    def of(cls, finished: Iterable[RequestTrace]) -> Self:
        """Return the sums over finished requests."""
        requests = inputs = outputs = squares = decoded = 0
        seconds = 0.0
        for trace in finished:
            n = n_output(trace)
            requests += 1
            inputs += prompt_tokens(trace)
            outputs += n
            squares += n * n
            each_s = tpot_s(trace)
            if each_s is not None:
                seconds += each_s * (n - trace.n_first)
                decoded += n - trace.n_first
        return cls(requests, inputs, outputs, squares, seconds, decoded)

    @classmethod
    def together(cls, parts: Iterable["Decoding"]) -> Self:
        """Return the sums over several windows."""
        listed = list(parts)
        return cls(
            sum(each.requests for each in listed),
            sum(each.input_tokens for each in listed),
            sum(each.output_tokens for each in listed),
            sum(each.squares for each in listed),
            sum(each.seconds for each in listed),
            sum(each.decoded for each in listed),
        )

    @property
    def tpot_ms(self) -> float | None:
        """Return the token-weighted time per output token; None where it isn't known."""
        return 1000 * self.seconds / self.decoded if self.decoded and self.seconds else None

    @property
    def ctx_tokens(self) -> float | None:
        """Return the mean context of a sequence in a batch: E[in] + E[out²] / (2 E[out]).

        Requests with long answers are in a batch for longer, and half through them on average.
        """
        if not self.output_tokens:
            return None
        return self.input_tokens / self.requests + self.squares / (2 * self.output_tokens)

    @property
    def mean_input_tokens(self) -> float | None:
        """Return the mean prompt."""
        return self.input_tokens / self.requests if self.requests else None
