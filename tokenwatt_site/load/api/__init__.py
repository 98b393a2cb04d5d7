"""API dialects: how a request is written and what an event of its answer means. No I/O."""

import importlib
from functools import cache
from typing import Any, Protocol

from tokenwatt_site.errors import RefusedError
from tokenwatt_site.method.outcome import StreamFacts

Prompt = list[int] | str
"""Token ids, or text."""


class Dialect(Protocol):
    """What a module of this folder offers."""

    PATH: str
    """Path below the API's base URL."""
    LENGTH: str
    """Field of a request's body for the most tokens of the answer."""
    ASK_USAGE: dict[str, Any]
    """Fields that ask for usage in the stream; none where it comes unasked."""

    def prompt_fields(self, prompt: Prompt) -> dict[str, Any]:
        """Return the fields of a request's body that carry the prompt."""
        ...

    def read(self, name: bytes, data: bytes, facts: StreamFacts) -> int | None:
        """Take in one server-sent event.

        Returns:
            None when it is no token event; else its tokens, -1 where the server doesn't tell.
        """
        ...


DIALECTS: dict[str, str] = {
    "completions": "tokenwatt_site.load.api.completions",
    "chat": "tokenwatt_site.load.api.chat",
    "responses": "tokenwatt_site.load.api.responses",
}


@cache
def dialect(name: str) -> Dialect:
    """Return a dialect by its name in ``engine.api``.

    >>> dialect("chat").PATH
    '/chat/completions'

    Raises:
        RefusedError: a dialect that this version doesn't speak.
    """
    if name not in DIALECTS:
        raise RefusedError(f"engine.api {name!r}", f"use one of: {', '.join(sorted(DIALECTS))}")
    module: Any = importlib.import_module(DIALECTS[name])
    spoken: Dialect = module
    return spoken
