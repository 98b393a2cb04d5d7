"""What requests are sent to, and what each of them asks."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.address import Address
from tokenwatt_site.load.api import Prompt, dialect
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.method.outcome import Asked

_OURS = (
    *("model", "stream", "stream_options", "prompt", "messages", "input"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A server and the form of its requests.

    >>> target = Target("http://127.0.0.1:8000/v1", "completions", "m")
    >>> target.body([5, 6], 2)  # doctest: +ELLIPSIS
    b'{"model":"m","prompt":[5,6],"max_tokens":2,"stream":true,...}'
    """

    base_url: str
    api: str
    model: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers of every request; the key is among them, so they are in no text and no error."""
    ignore_eos: bool = True
    """Ask for exactly max_tokens."""
    lengths_ok: bool = True
    """Hold answers to it; not where the server's counts don't tell."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    text_prompts: bool = False
    ca_file: str | None = None
    """PEM file of the authorities that are trusted; None means the system's."""
    timeout_s: float = 300.0
    """Seconds from sending after which a request has failed."""
    max_concurrency: int = 8192
    ask_usage: bool = True

    @classmethod
    def of(
        cls, spec: Spec, url: str, facts: ServerFacts, environ: Mapping[str, str] = os.environ
    ) -> Self:
        """Return the target of a measurement.

        Args:
            spec: what is asked.
            url: base URL of the API; the spec's endpoint, or that of the embedded engine.
            facts: what the preflight found.
            environ: where the API key is looked up.

        Raises:
            UsageError: an extra_body that can't be merged, or a key that isn't there.
            RefusedError: a dialect that this version doesn't speak.
        """
        engine = spec.engine
        dialect(engine.api)
        return cls(
            base_url=Address.of(url).url,
            api=engine.api,
            model=facts.model,
            headers=key_headers(engine.api_key_env, environ),
            ignore_eos=engine.ignore_eos and facts.ignore_eos_ok,
            lengths_ok=facts.lengths_ok,
            extra_body=checked_extra(engine.extra_body),
            text_prompts=not facts.ids_ok,
            ca_file=engine.ca_file,
            timeout_s=spec.measurement.request_timeout_s,
            max_concurrency=spec.measurement.max_concurrency,
            ask_usage=facts.usage_ok,
        )

    def without_key(self, text: str) -> str:
        """Return a text of the server's without the API key, should it repeat it."""
        return without_key(text, self.headers)

    @property
    def address(self) -> Address:
        """Return where the server is."""
        return Address.of(self.base_url)

    @property
    def asked(self) -> Asked:
        """Return what an answer is held to."""
        exact = self.ignore_eos and self.lengths_ok
        return Asked(ignore_eos=exact, tools=bool(self.extra_body.get("tools")))

    def body(self, prompt: Prompt, max_tokens: int) -> bytes:
        """Return the JSON body of one request; ``extra_body`` is merged last."""
        spoken = dialect(self.api)
        fields: dict[str, Any] = {"model": self.model}
        fields |= spoken.prompt_fields(prompt)
        fields |= {spoken.LENGTH: max_tokens, "stream": True}
        if self.ask_usage:
            fields |= spoken.ASK_USAGE
        if self.ignore_eos:
            fields["ignore_eos"] = True
        return json.dumps(fields | dict(self.extra_body), separators=(",", ":")).encode()

    def head(self) -> bytes:
        """Return the head of every request up to the value of Content-Length."""
        address = self.address
        lines = [
            f"POST {address.path}{dialect(self.api).PATH} HTTP/1.1",
            f"Host: {address.authority}",
            "Accept: text/event-stream",
            "Content-Type: application/json",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            "Content-Length: ",
        ]
        return "\r\n".join(lines).encode("ascii")


def checked_extra(extra_body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``engine.extra_body`` if it may be merged into a request.

    Raises:
        UsageError: it replaces what the measurement sets, asks for several answers, or is no JSON.
    """
    for name in _OURS:
        if name in extra_body:
            raise UsageError(
                f"engine.extra_body can't replace {name!r}: the measurement sets it",
                "leave it out; model and api have keys of their own under engine",
            )
    if extra_body.get("n", 1) != 1:
        raise UsageError(
            f"engine.extra_body asks for n = {extra_body['n']!r} answers a request; "
            "latencies are those of one",
            "leave n out",
        )
    try:
        json.dumps(extra_body, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        raise UsageError(
            "engine.extra_body holds a value that JSON has none for, such as a date or .inf",
            "put quotes around it to send it as text",
        ) from None
    return extra_body


def without_key(text: str, headers: Mapping[str, str]) -> str:
    """Return a text of the server's without the API key that ``headers`` carry.

    >>> without_key("no such key: sesame, I said sesa", {"Authorization": "Bearer sesame"})
    'no such key: …, I said …'
    """
    for value in headers.values():
        key = value.removeprefix("Bearer ")
        text = text.replace(key, "…")
        # a text that was cut may end within the key
        cut = next((n for n in range(len(key) - 1, 3, -1) if text.endswith(key[:n])), 0)
        text = text[: len(text) - cut] + "…" if cut else text
    return text


def key_headers(api_key_env: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header that carries the API key, from the variable that the spec names.

    Raises:
        UsageError: the variable is empty, or holds what no header can. The value is never shown,
            nor the name: it may be a key that was put there by mistake.
    """
    if api_key_env is None:
        return {}
    key = environ.get(api_key_env, "").strip()
    if not key:
        raise UsageError(
            "the environment variable that engine.api_key_env names is not set",
            "export it in this shell; engine.api_key_env is its name, not the key",
        )
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            "the API key in the variable that engine.api_key_env names has characters that no HTTP "
            "header can carry",
            "set it to the key alone",
        )
    return {"Authorization": f"Bearer {key}"}
