"""What a finished stream was: ok, or failed and why, and how many tokens it gave.

A dialect gathers :class:`StreamFacts` event by event, the client adds how the connection ended, and
:func:`classify` decides by the rules of the method: never by the requested length, and never "ok"
for an answer that stopped without saying that it was finished.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tokenwatt_site.method.trace import Outcome, RequestTrace, TokenSource

WHOLE = -1
"""Key of a usage that counts all choices together."""

Ending = Literal[
    "complete", "closed", "reset", "timeout", "protocol", "connect", "client_limit", "malformed"
]
"""How the exchange ended: whole HTTP message; closed early; reset; request_timeout_s over; no valid
HTTP; no connection; given up by the client at max_concurrency; an event that is no JSON."""


@dataclass(slots=True)
class StreamFacts:
    """What an answer said, without times."""

    usage: dict[int, int] = field(default_factory=dict)
    """Output tokens by choice, or under ``WHOLE``: the last count seen of each."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    ids: int = 0
    """Tokens by their ids or logprobs."""
    ids_missing: bool = False
    """A token event had neither ids nor logprobs."""
    events: int = 0
    """Token events."""
    answered: bool = False
    """A token event carried the answer itself, not reasoning."""
    choices: int = 0
    finish: str | None = None
    done: bool = False
    """``[DONE]`` was seen."""
    error: bool = False
    """An error object, or ``event: error``."""
    malformed: bool = False
    """An event's data was no JSON object."""
    message: str = ""
    """The server's own words about the error."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of every request of a load."""

    ignore_eos: bool = True
    """Exactly the requested length."""
    tools: bool = False
    """Tools were offered: ending in tool_calls is an end."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the fields of a trace become."""

    outcome: Outcome
    reason: str
    n_output: int | None
    n_source: TokenSource | None
    coalesced: bool


def classify(
    trace: RequestTrace, facts: StreamFacts, asked: Asked, ending: Ending = "complete"
) -> Conclusion:
    """Return what the stream of ``trace`` was.

    ``trace`` has its status, stamps and tokens an event; its other results are not read.
    """
    n, source = count_tokens(facts) if trace.status is not None else (None, None)
    reason = _http(trace.status, ending) or _stream(facts, ending) or _answer(facts, asked)
    if not reason and asked.ignore_eos and n != trace.output_tokens:
        reason = "short" if (n or 0) < trace.output_tokens else "long"
    lumped = coalesced(n or 0, trace.events_s, trace.event_tokens)
    return Conclusion("failed" if reason else "ok", reason, n, source, lumped)


def count_tokens(facts: StreamFacts) -> tuple[int, TokenSource]:
    """Return the output tokens by the best count there is, and which one that was."""
    if facts.usage:
        return facts.usage.get(WHOLE, sum(facts.usage.values())), "usage"
    if facts.ids and not facts.ids_missing:
        return facts.ids, "ids"
    return facts.events, "chunks"


def coalesced(n: int, events_s: Sequence[float], event_tokens: Sequence[int] | None) -> bool:
    """Tell whether more than half of the tokens came in one read: the same stamp.

    Where the server doesn't tell the tokens of an event, each counts the same.
    """
    if n < 2:  # noqa: PLR2004 - one token is no stream
        return False
    repeated = len(events_s) - len(set(events_s))
    if event_tokens is None and 2 * (repeated + 1) <= len(events_s):
        return False  # at once for the usual stream: none of its runs can be that long
    weights = [1] * len(events_s) if event_tokens is None else event_tokens
    most, run, last_s = 0, 0, None
    for t_s, weight in zip(events_s, weights, strict=True):
        run = run + weight if t_s == last_s else weight
        last_s = t_s
        most = max(most, run)
    return 2 * most > sum(weights)


def _http(status: int | None, ending: Ending) -> str:
    if status is None:
        return "no_response" if ending in ("closed", "complete") else ending
    return "" if 200 <= status < 300 else f"http_{status}"  # noqa: PLR2004


def _stream(facts: StreamFacts, ending: Ending) -> str:
    if facts.error:
        return "error"
    if facts.malformed or ending == "malformed":
        return "malformed"
    if facts.finish is not None or facts.done:
        return ""  # what follows the end is a tail, however it goes
    if ending == "complete" and not facts.events:
        return "empty"
    return "truncated" if ending in ("complete", "closed") else ending


def _answer(facts: StreamFacts, asked: Asked) -> str:
    ends = ("stop", "length", "tool_calls") if asked.tools else ("stop", "length")
    if facts.finish is not None and facts.finish not in ends:
        word = re.sub(r"[^a-z_]", "", facts.finish.lower())[:24]
        return f"finish_{word}" if word else "finish"
    if facts.choices > 1:
        return "choices"
    return "" if facts.events and count_tokens(facts)[0] else "empty"
