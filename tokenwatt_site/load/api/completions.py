"""``/completions``: the prompt as token ids or text; each choice carries ``text``."""

from typing import Any

from tokenwatt_site.load.api import Prompt
from tokenwatt_site.load.api.chunk import Carried, read_choices, read_event
from tokenwatt_site.method.outcome import StreamFacts

PATH = "/completions"
LENGTH = "max_tokens"
ASK_USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


def prompt_fields(prompt: Prompt) -> dict[str, Any]:
    """Return the prompt's field; ids go as they are, so that no tokenizer changes the length."""
    return {"prompt": prompt}


def read(name: bytes, data: bytes, facts: StreamFacts) -> int | None:
    """Take in one event, see :class:`tokenwatt_site.load.api.Dialect`."""
    return read_event(name, data, facts, _read)


def _read(chunk: dict[str, Any], facts: StreamFacts) -> int | None:
    return read_choices(chunk, facts, _carried)


def _carried(choice: dict[str, Any]) -> Carried:
    text = choice.get("text")
    if text:
        return Carried.ANSWER
    return Carried.BLANK if text == "" else Carried.NOTHING
