"""``/responses``: the prompt is ``input``; named events, of which the deltas carry the answer.

Usage comes unasked, with the event that ends the answer. Token ids have no place here; servers that
don't know ``ignore_eos`` refuse it or pass it by, which the preflight finds out.
"""

from typing import Any

from tokenwatt_site.errors import RefusedError
from tokenwatt_site.load.api import Prompt
from tokenwatt_site.load.api.chunk import dicts, is_count, is_dict, note_error, read_event
from tokenwatt_site.method.outcome import StreamFacts

PATH = "/responses"
LENGTH = "max_output_tokens"
ASK_USAGE: dict[str, Any] = {}

_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_CUT = ("max_output_tokens", "max_tokens")


def prompt_fields(prompt: Prompt) -> dict[str, Any]:
    """Return the prompt's field.

    Raises:
        RefusedError: token ids, which the API has no place for.
    """
    if not isinstance(prompt, str):
        raise RefusedError(
            "responses takes text, not token ids", "set engine.api: completions to send token ids"
        )
    return {"input": prompt}


def read(name: bytes, data: bytes, facts: StreamFacts) -> int | None:
    """Take in one event, see :class:`tokenwatt_site.load.api.Dialect`."""
    return read_event(name, data, facts, _read)


def _read(event: dict[str, Any], facts: StreamFacts) -> int | None:
    kind = event.get("type")
    if event.get("error") or kind == "error" or event.get("object") == "error":
        note_error(event, facts)
    if not isinstance(kind, str):
        return None
    if kind in _ENDS:
        response = event.get("response")
        _end(kind, response if is_dict(response) else {}, facts)
        return None
    if kind.endswith(".delta"):
        return _delta(event, kind, facts) if isinstance(event.get("delta"), str) else None
    if kind == "response.output_item.added":
        item = event.get("item")
        if is_dict(item) and item.get("type") in _CALLS and item.get("name"):
            facts.answered = True
            return _token(facts, 0)  # a call's name is written by the model, as in chat
    return None


def _delta(event: dict[str, Any], kind: str, facts: StreamFacts) -> int:
    facts.answered = facts.answered or "reasoning" not in kind
    return _token(facts, len(dicts(event.get("logprobs"))))


def _token(facts: StreamFacts, known: int) -> int:
    facts.events += 1
    facts.choices = 1
    facts.ids += known
    facts.ids_missing = facts.ids_missing or not known
    return known or -1


def _end(kind: str, response: dict[str, Any], facts: StreamFacts) -> None:
    """Take in the last event: usage, and how the answer ended, in the words of chat."""
    usage = response.get("usage")
    if is_dict(usage):
        _read_usage(usage, facts)
    if kind == "response.failed" or response.get("error"):
        note_error(response, facts)
    elif kind == "response.completed":
        called = any(item.get("type") in _CALLS for item in dicts(response.get("output")))
        facts.finish = "tool_calls" if called else "stop"
    elif kind == "response.incomplete":
        details = response.get("incomplete_details")
        facts.finish = _cut(details.get("reason") if is_dict(details) else None)
    else:
        facts.finish = "cancelled"


def _cut(reason: Any) -> str:
    if reason in _CUT:
        return "length"
    return "content_filter" if reason == "content_filter" else "incomplete"


def _read_usage(usage: dict[str, Any], facts: StreamFacts) -> None:
    prompt, count = usage.get("input_tokens"), usage.get("output_tokens")
    details = usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if is_dict(details) else None
    facts.prompt_tokens = prompt if is_count(prompt) else facts.prompt_tokens
    facts.cached_tokens = cached if is_count(cached) else facts.cached_tokens
    if is_count(count):
        facts.usage[0] = count
