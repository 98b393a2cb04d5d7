"""``/chat/completions``: the prompt is one user message; each choice carries a ``delta``."""

from typing import Any

from tokenwatt_site.errors import RefusedError
from tokenwatt_site.load.api import Prompt
from tokenwatt_site.load.api.chunk import Carried, is_dict, read_choices, read_event
from tokenwatt_site.method.outcome import StreamFacts

PATH = "/chat/completions"
LENGTH = "max_tokens"
ASK_USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


def prompt_fields(prompt: Prompt) -> dict[str, Any]:
    """Return the prompt's field.

    Raises:
        RefusedError: token ids, which the API has no place for.
    """
    if not isinstance(prompt, str):
        raise RefusedError(
            "chat takes text, not token ids", "set engine.api: completions to send token ids"
        )
    return {"messages": [{"role": "user", "content": prompt}]}


def read(name: bytes, data: bytes, facts: StreamFacts) -> int | None:
    """Take in one event, see :class:`tokenwatt_site.load.api.Dialect`."""
    return read_event(name, data, facts, _read)


def _read(chunk: dict[str, Any], facts: StreamFacts) -> int | None:
    return read_choices(chunk, facts, _carried)


def _carried(choice: dict[str, Any]) -> Carried:
    delta = choice.get("delta")
    if not is_dict(delta):
        return Carried.NOTHING
    content = delta.get("content")
    if content or delta.get("tool_calls"):
        return Carried.ANSWER
    if delta.get("reasoning_content") or delta.get("reasoning"):
        return Carried.REASONING
    blank = content == "" and not delta.get("role")
    return Carried.BLANK if blank else Carried.NOTHING
