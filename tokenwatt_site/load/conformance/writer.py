"""Writes the events of each dialect, as servers send them."""

from dataclasses import dataclass
from typing import Any

from tokenwatt_site.load.conformance.script import Body, event, tokens

DONE = event("[DONE]")
PROMPT_TOKENS = 5
WORDS = "engine died"
"""What a stub says about its errors."""


def usage_of(n: int) -> dict[str, Any]:
    """Return the usage field of chat and completions."""
    counts = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": n}
    return {"usage": counts | {"total_tokens": n + PROMPT_TOKENS}}


@dataclass(frozen=True, slots=True)
class Writer:
    """Events of ``chat`` or ``completions``."""

    api: str

    def token(self, text: str = "x", finish: str | None = None, **more: Any) -> bytes:
        """Return a chunk with text; ``more`` are fields beside its choice."""
        carried = {"text": text} if self.api == "completions" else {"delta": {"content": text}}
        return event({"choices": [{"index": 0, **carried, "finish_reason": finish}], **more})

    def last(self, n: int = 8, finish: str = "length", text: str = "x") -> bytes:
        """Return the last token and what ends an answer of ``n`` tokens: finish, usage, [DONE]."""
        return self.token(text, finish) + self.usage(n) + DONE

    def end(self, n: int, finish: str = "stop") -> bytes:
        """Return the end alone: a chunk without text, usage, [DONE]."""
        return self.token("", finish) + self.usage(n) + DONE

    def usage(self, n: int) -> bytes:
        """Return the chunk without choices that tells usage."""
        return event({"choices": [], **usage_of(n)})

    def error(self) -> bytes:
        """Return an error object inside the stream."""
        return event({"error": {"message": WORDS, "code": 500}})

    def whole(self) -> Body:
        """Return the plain answer: 8 tokens, each in an event of its own."""
        return tokens(*[self.token()] * 7, self.last())


class ResponsesWriter(Writer):
    """Events of ``responses``: a delta each, and a last one that tells all."""

    __slots__ = ()

    def token(self, text: str = "x", finish: str | None = None, **more: Any) -> bytes:
        """Return a text delta; here no delta says that the answer is finished."""
        del finish
        return named("response.output_text.delta", delta=text, logprobs=[], **more)

    def last(self, n: int = 8, finish: str = "length", text: str = "x") -> bytes:
        """Return the last delta and the event that ends the answer."""
        return self.token(text) + self.end(n, finish)

    def end(self, n: int, finish: str = "stop") -> bytes:
        """Return the event that ends an answer, with its usage."""
        counts = {"input_tokens": PROMPT_TOKENS, "output_tokens": n}
        response: dict[str, Any] = {"object": "response", "error": None, "usage": counts}
        if finish == "length":
            cut = {"reason": "max_output_tokens"}
            return named("response.incomplete", response=response | {"incomplete_details": cut})
        return named("response.completed", response=response)

    def error(self) -> bytes:
        """Return an event that is an error."""
        return named("error", code="server_error", message=WORDS)


def named(kind: str, **fields: Any) -> bytes:
    """Return an event of the Responses API, with its name on a line of its own."""
    return b"event: " + kind.encode() + b"\n" + event({"type": kind, **fields})


WRITERS: dict[str, Writer] = {
    "completions": Writer("completions"),
    "chat": Writer("chat"),
    "responses": ResponsesWriter("responses"),
}
