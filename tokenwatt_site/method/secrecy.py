"""What looks like a key, a token or a password, and a spec that holds one.

A spec stands in the run document, word for word, and the document is published.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tokenwatt_site.documents.doors import dump
from tokenwatt_site.documents.jsonfile import is_array, is_object
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import UsageError

SECRET = re.compile(
    r"\bsk-[\w-]{16,}|\bhf_\w{20,}"
    r"|\b[Bb]earer\s+(?=[\w.~+/=-]*\d)[\w.~+/=-]{16,}"
    r"|\b\w+://[^/\s@]+@"
)
"""Texts that are secrets by their form."""

# matched against a key without case and punctuation; stop_token_ids or min_tokens are none of them
_SECRET_KEY = re.compile(
    r".*(?:apikey|accesskey|authorization|credential|passw|secret).*"
    r"|(?:access|api|auth|bearer|hf|id|refresh|session|user|x)*token"
)
_HINT = "keep it out of the spec, which is published; an API key goes into engine.api_key_env"


def refuse_secrets(spec: Spec) -> None:
    """Refuse a spec that would publish a key, a token or a password.

    Raises:
        UsageError: naming the key of the spec, never its value.
    """
    for place, name, value in _walk(dump(spec), ""):
        if place.startswith("engine.extra_body.") and _SECRET_KEY.fullmatch(_bare(name)):
            raise UsageError(f"spec field {place} is named like a secret", _HINT)
        option = value.partition("=")[0] if isinstance(value, str) else ""
        if option.startswith("-") and _SECRET_KEY.fullmatch(_bare(option)):
            raise UsageError(
                f"spec field {place} is an option that is named like a secret",
                "let the program read it from its environment: the spec is published",
            )
        if isinstance(value, str) and (SECRET.search(value) or _has_user(value)):
            raise UsageError(
                f"spec field {place} holds what looks like a key, token or password", _HINT
            )


def _walk(value: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    """Yield place, last key and value of everything in a spec; a key may be a secret itself."""
    if is_object(value):
        for key, each in value.items():
            inner = f"{place}.{key}" if place else key
            if SECRET.search(key):
                yield place, "", key
                continue
            yield inner, key, each
            yield from _walk(each, inner)
    elif is_array(value):
        for number, each in enumerate(value):
            yield f"{place}[{number}]", "", each
            yield from _walk(each, f"{place}[{number}]")


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _has_user(text: str) -> bool:
    """Tell whether a URL has a user name or a password in it."""
    if "://" not in text or "@" not in text:
        return False
    try:
        parts = urlsplit(text.strip())
        _ = parts.port
    except ValueError:  # no port, but the first half of a password with a slash in it
        return True
    return "@" in parts.netloc
