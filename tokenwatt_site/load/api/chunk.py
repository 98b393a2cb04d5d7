"""What streamed events share in every dialect, and the chunks with choices of two of them.

Real servers disagree on nearly all of it: usage comes in a last chunk without choices, in the last
chunk with one, in every chunk, or once a choice; the finish comes with a token or alone; a batch
comes as a list of chunks in one event.
"""

import json
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeGuard

from tokenwatt_site.method.outcome import WHOLE, StreamFacts

_decode = json.JSONDecoder().decode
_LONGEST_WORD = 32
_UNKNOWN = "unknown"  # a finish that no evidence and no terminal should hold
_LONGEST_MESSAGE = 300
_WORDS = ("error", "message", "detail", "msg")


class Carried(Enum):
    """What the delta of a choice carries."""

    NOTHING = 0
    BLANK = 1  # empty text: a token that decodes to "", unless the chunk ends the choice
    REASONING = 2
    ANSWER = 3


def read_event(
    name: bytes,
    data: bytes,
    facts: StreamFacts,
    read_object: Callable[[dict[str, Any], StreamFacts], int | None],
) -> int | None:
    """Take in one event; return its tokens (-1 unknown), or None if it is no token event.

    ``read_object`` does the same for a JSON object of the event.
    """
    if name == b"error":
        facts.error = True
    data = data.strip()
    if not data:
        return None
    if data == b"[DONE]":
        facts.done = True
        return None
    try:
        chunk = _decode(str(data, "utf-8"))
    except (ValueError, RecursionError):
        facts.malformed = True
        facts.message = facts.message or "an event that is no JSON"
        return None
    if name == b"error":
        note_error(chunk, facts)
        return None
    if is_dict(chunk):
        return read_object(chunk, facts)
    told = [read_object(part, facts) for part in dicts(chunk)]
    return _sum([tokens for tokens in told if tokens is not None])


def read_choices(
    chunk: dict[str, Any], facts: StreamFacts, carried: Callable[[dict[str, Any]], Carried]
) -> int | None:
    """Take in a chunk with ``choices``, of which ``carried`` tells what each one carries."""
    usage = chunk.get("usage")
    count = _read_usage(usage, facts) if is_dict(usage) else None
    choices = dicts(chunk.get("choices"))
    if chunk.get("error") or chunk.get("object") == "error":
        note_error(chunk, facts)
        if count is not None:  # what an error says beside it is no token
            facts.usage[_index(choices[0], facts) if len(choices) == 1 else WHOLE] = count
        return None
    if len(choices) == 1:
        choice = choices[0]
        return _read_choice(choice, count, facts, carried(choice))
    if count is not None:
        facts.usage[WHOLE] = count
    told = [_read_choice(choice, None, facts, carried(choice)) for choice in choices]
    return _sum([tokens for tokens in told if tokens is not None])


def _read_choice(
    choice: dict[str, Any], count: int | None, facts: StreamFacts, carried: Carried
) -> int | None:
    index = _index(choice, facts)
    finish = choice.get("finish_reason")
    if finish and isinstance(finish, str):
        known = len(finish) <= _LONGEST_WORD and finish.isprintable()
        facts.finish = finish if known else _UNKNOWN
    before = facts.usage.get(index)
    if count is not None:
        facts.usage[index] = count
    rise = count - before if count is not None and before is not None else 0
    if carried is Carried.NOTHING or (carried is Carried.BLANK and finish):
        if rise <= 0:
            return None
    elif carried is not Carried.REASONING:
        facts.answered = True
    facts.events += 1
    if facts.events == 1 and before is None and count is not None:
        before, rise = 0, count  # the first token event says how many tokens it holds
    known = count is not None and before is not None
    return _tell(choice, facts, rise if known else -1)


def _index(choice: dict[str, Any], facts: StreamFacts) -> int:
    """Return the number of a choice, and keep how many there are."""
    index = choice.get("index")
    number = index if is_count(index) else 0
    if number >= facts.choices:
        facts.choices = number + 1
    return number


def _tell(choice: dict[str, Any], facts: StreamFacts, by_usage: int) -> int:
    """Return the tokens of a token event: by ids, logprobs or the rise of the usage; else -1."""
    ids = choice.get("token_ids")
    if not ids:
        logprobs = choice.get("logprobs")
        if is_dict(logprobs):
            ids = logprobs.get("content") or logprobs.get("tokens")
    if not _is_list(ids) or not ids:
        facts.ids_missing = True
        return by_usage
    facts.ids += len(ids)
    return len(ids)


def _read_usage(usage: dict[str, Any], facts: StreamFacts) -> int | None:
    prompt = usage.get("prompt_tokens")
    if is_count(prompt):
        facts.prompt_tokens = prompt
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_dict(details) else None
    cached = usage.get("prompt_cache_hit_tokens") if cached is None else cached
    if is_count(cached):
        facts.cached_tokens = cached
    count = usage.get("completion_tokens")
    return count if is_count(count) else None


def note_error(body: Any, facts: StreamFacts) -> None:
    """Note that an event is an error, and the server's words about the first one."""
    facts.error = True
    facts.message = facts.message or error_message(body)


def note_document(line: bytes, facts: StreamFacts) -> None:
    """Note what a line says that belongs to no event stream: often an error, with HTTP 200."""
    document = parsed(line.decode("utf-8", "replace"))
    if is_dict(document) and (document.get("error") or document.get("object") == "error"):
        note_error(document, facts)
    facts.message = facts.message or "the answer is no event stream"


def error_message(body: Any) -> str:
    """Return a server's words about an error, from any of the usual shapes; one line, cut.

    >>> error_message({"error": {"message": "no such model"}})
    'no such model'
    """
    value: Any = body
    while is_dict(value) or _is_list(value):
        inner: Iterable[Any] = map(value.get, _WORDS) if is_dict(value) else value
        value = next(filter(None, inner), None)
    text = "" if value is None else str(value)[:_LONGEST_MESSAGE]
    return "".join(char if char.isprintable() else " " for char in text)


def parsed(text: str) -> Any:
    """Return what a JSON text means, or the text itself where it is no JSON."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return text


def _sum(told: list[int]) -> int | None:
    if not told:
        return None
    return -1 if -1 in told else sum(told)


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a JSON array; none where the value is no array."""
    if not _is_list(value):
        return []
    return value if all(map(is_dict, value)) else [item for item in value if is_dict(item)]


def is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_count(value: Any) -> TypeGuard[int]:
    """Tell whether a JSON value is a number of tokens."""
    return type(value) is int and 0 <= value < 2**53
