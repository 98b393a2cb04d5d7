"""A case: what a server answers, and what a client must make of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenwatt_site.load.conformance.script import FIRST_S, GAP_S, LAST_S, TOKENS, Script
from tokenwatt_site.load.conformance.writer import Writer

ALL = ("completions", "chat", "responses")
CHOICES = ("completions", "chat")
"""The dialects whose chunks have choices."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is so. Times in seconds, from the request."""

    reason: str = ""
    """Class of the failure; empty where the request is ok."""
    tokens: int | None = TOKENS
    """Output tokens; None where no answer came."""
    ttft_s: float | None = FIRST_S
    """First token event; None where there is none."""
    tpot_s: float | None = GAP_S
    """(last − first token event)/(tokens − those of the first); None: failed or unknown."""
    source: str | None = "usage"
    """What tells the tokens: usage, ids, chunks (their number)."""
    answer_s: float | None = None
    """First token of the answer itself, where reasoning comes first."""
    end_s: float = LAST_S
    """The request is concluded by then."""
    coalesced: bool = False
    """Most tokens come in one read."""
    lenient: bool = False
    """A client may call it ok, with these tokens, that asks for no exact length or takes several
    choices."""

    @property
    def outcome(self) -> Literal["ok", "failed"]:
        """Return what the request is."""
        return "failed" if self.reason else "ok"


@dataclass(frozen=True, slots=True)
class Case:
    """One hostile stream."""

    name: str
    about: str
    """What the server does, in a sentence."""
    script: Callable[[Writer], Script]
    truth: Truth = field(default_factory=Truth)
    apis: tuple[str, ...] = ALL
    asked: int = TOKENS
    """max_tokens of the request."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that the request must have beside the usual ones."""


def failed(
    reason: str, tokens: int | None = 3, source: str | None = "chunks", **more: Any
) -> Truth:
    """Return the truth of a request that fails, after 3 tokens unless told otherwise."""
    return Truth(reason, tokens, tpot_s=None, source=source, **more)


def nothing(reason: str, tokens: int = 0, source: str | None = "chunks", **more: Any) -> Truth:
    """Return the truth of a request that fails without a token event."""
    return failed(reason, tokens, source, ttft_s=None, **more)


def no_answer(reason: str, **more: Any) -> Truth:
    """Return the truth of a request that gets no HTTP answer at all."""
    return failed(reason, None, None, ttft_s=None, **more)
