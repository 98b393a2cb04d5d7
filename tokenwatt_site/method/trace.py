"""What the client records of one request; everything else is derived from it."""

from array import array
from dataclasses import dataclass, field
from typing import Literal, get_args

Outcome = Literal["running", "ok", "failed"]
TokenSource = Literal["usage", "ids", "tokenizer", "chunks"]
TOKEN_SOURCES: tuple[TokenSource, ...] = get_args(TokenSource)
"""From the best to the worst."""


def _stamps() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class RequestTrace:
    """One request as the client saw it. Times are seconds on the client's monotonic clock.

    ``events_s`` holds the time at which the socket read that carried a token event returned; one
    float a token event is all that is allocated while a stream runs.
    """

    index: int
    t_sched_s: float
    """Scheduled arrival."""
    input_tokens: int
    """Prompt tokens asked for by the schedule."""
    output_tokens: int
    """max_tokens asked for by the schedule."""
    injected: bool = False
    """Sent at the start of the load to stand for what was in flight before: in no cohort."""
    n_planned: int = 0
    """Leading prompt tokens with which an earlier prompt of the load begins too, by plan."""
    t_send_s: float | None = None
    """First byte written."""
    events_s: "array[float]" = field(default_factory=_stamps)
    t_answer_s: float | None = None
    """The first token event that carried the answer itself rather than reasoning."""
    event_tokens: list[int] | None = None
    """Tokens of each event, where the server tells them."""
    n_output: int | None = None
    """Output tokens of the finished request."""
    n_source: TokenSource | None = None
    n_first: int = 1
    """Tokens in the first event."""
    n_prompt: int | None = None
    """Prompt tokens by the server's count."""
    n_cached: int | None = None
    """Prompt tokens that the server took from a cache."""
    status: int | None = None
    """HTTP status."""
    finish: str | None = None
    done: bool = False
    """``[DONE]`` was seen."""
    coalesced: bool = False
    """More than half of its tokens came in one read: TPOT is unknown."""
    outcome: Outcome = "running"
    reason: str = ""
    """Class of the failure, such as truncated, timeout, http_503, short, empty, client_limit."""
    t_end_s: float | None = None
    """Last byte, failure or cancellation."""
