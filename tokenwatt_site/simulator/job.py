"""What a request asks for: the JSON of /v1/completions and /v1/chat/completions, checked."""

import json
from dataclasses import dataclass
from typing import Any, TypeGuard

from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.shape import Shape

MODEL = "simulated"
CHAT_TEMPLATE_TOKENS = 8
"""What a chat template adds to the words of the messages."""
_DEFAULT_TOKENS = 16


class BadRequestError(UsageError):
    """A request that is refused, with its HTTP status."""

    def __init__(self, what: str, param: str | None = None, status: int = 400) -> None:
        super().__init__(what)
        self.param = param
        self.status = status


@dataclass(frozen=True, slots=True)
class Job:
    """A checked request."""

    chat: bool
    prompt_tokens: int
    output_tokens: int
    stream: bool
    usage: bool
    """A chunk with the usage is sent at the end of the stream."""
    continuous_usage: bool
    """Each chunk tells the usage so far."""


def read_job(body: bytes, shape: Shape, *, chat: bool) -> Job:
    """Return what a body asks of a server of ``shape``.

    Raises:
        BadRequestError: it isn't JSON, asks for what isn't served, or is too long.
    """
    asked = _object(body)
    if asked.get("model", MODEL) != MODEL:
        raise BadRequestError(
            f"The model {asked['model']!r} does not exist; here is {MODEL!r}", "model", 404
        )
    if asked.get("n", 1) != 1:
        raise BadRequestError("n must be 1: one answer a request", "n")
    prompt_tokens = _chat_tokens(asked) if chat else _prompt_tokens(asked, shape.vocab_size)
    output_tokens = _output_tokens(asked)
    if prompt_tokens + output_tokens > shape.longest_tokens:
        raise BadRequestError(
            f"This model's maximum context length is {shape.longest_tokens} tokens; the request has"
            f" {prompt_tokens} in the prompt and asks for {output_tokens}",
            "prompt",
        )
    options: object = asked.get("stream_options") or {}
    if not _is_dict(options):
        raise BadRequestError("stream_options must be an object", "stream_options")
    return Job(
        chat=chat,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        stream=bool(asked.get("stream")),
        usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("The body is not valid JSON") from None
    if not _is_dict(asked):
        raise BadRequestError("The body must be a JSON object")
    return asked


def _is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _prompt_tokens(asked: dict[str, Any], vocab_size: int) -> int:
    """Count token ids, or words: the embedded engine has no tokenizer."""
    prompt = asked.get("prompt")
    if isinstance(prompt, str):
        tokens = len(prompt.split())
    elif _is_list(prompt):
        tokens = len(prompt)
        if not all(type(token) is int and 0 <= token < vocab_size for token in prompt):
            raise BadRequestError(
                f"prompt must be a text or a list of ids from 0 to {vocab_size - 1}", "prompt"
            )
    else:
        raise BadRequestError("prompt must be a text or a list of token ids", "prompt")
    if not tokens:
        raise BadRequestError("prompt is empty", "prompt")
    return tokens


def _chat_tokens(asked: dict[str, Any]) -> int:
    messages = asked.get("messages")
    if not _is_list(messages) or not messages:
        raise BadRequestError("messages must be a list with at least one message", "messages")
    texts: list[str] = []
    for message in messages:
        content = message.get("content") if _is_dict(message) else None
        if not isinstance(content, str):
            raise BadRequestError("a message must have a text as its content", "messages")
        texts.append(content)
    return CHAT_TEMPLATE_TOKENS + sum(len(text.split()) for text in texts)


def _output_tokens(asked: dict[str, Any]) -> int:
    for key in ("max_completion_tokens", "max_tokens"):
        value = asked.get(key)
        if value is None:
            continue
        if type(value) is not int or value < 1:
            raise BadRequestError(f"{key} must be a whole number of at least 1", key)
        return value
    return _DEFAULT_TOKENS
