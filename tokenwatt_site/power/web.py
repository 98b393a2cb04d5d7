"""Meters over HTTP: address and password by the spec, answers bounded in bytes and time."""

import json
import os
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import UsageError

CALL_S = 3.0
"""Longest wait for a connection, or for the next bytes."""
ANSWER_S = 5.0
MOST_BYTES = 4_000_000
_LONGEST_WORDS = 300


class UnansweredError(Exception):
    """A question without a usable answer: a code, and words that may be shown."""

    def __init__(self, code: str, words: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.words = "".join(char if char.isprintable() else " " for char in words)[:_LONGEST_WORDS]


def base_url(power: SpecPower, what: str, example: str) -> str:
    """Return the address of a spec's meter, without a slash at its end.

    Args:
        power: what the spec says of it.
        what: what answers there, for the message.
        example: an address such as it has.

    Raises:
        UsageError: none is given, or it holds a password, a query or what is no address.
    """
    hint = f"set power.url to its address, such as {example}"
    try:
        parts = urlsplit(power.url or "")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise UsageError("power.url is no address", hint) from None
    if not usable or parts.query or parts.fragment or not (power.url or "").isprintable():
        raise UsageError(f"power.url is no http or https address of {what}", hint)
    if parts.username is not None:
        raise UsageError(
            "power.url holds a user name or a password",
            "put them into power.username and the variable that power.password_env names",
        )
    return (power.url or "").rstrip("/")


def password(power: SpecPower) -> str | None:
    """Return the password of a spec's meter, None where it names no variable.

    Raises:
        UsageError: the variable isn't set, or a user name is given without one.
    """
    if power.password_env is None:
        if power.username is not None:
            raise UsageError(
                "power.username is given without a password",
                "name the environment variable that holds it in power.password_env",
            )
        return None
    secret = os.environ.get(power.password_env)
    if not secret:
        raise UsageError(
            f"power.password_env: the variable {power.password_env} isn't set",
            f"export {power.password_env} with the password, or with the token",
        )
    if not (secret.isascii() and secret.isprintable()):
        raise UsageError(
            f"power.password_env: {power.password_env} holds characters that no header can",
            "take out line ends and such as isn't ASCII",
        )
    return secret


def client(power: SpecPower, transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Return a client that follows no redirect, reads no proxy setting and keeps its connection."""
    return httpx.Client(
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        timeout=CALL_S,
        # the system's certificates, and those of SSL_CERT_FILE: httpx alone knows neither
        verify=ssl.create_default_context() if power.verify_tls else False,
        follow_redirects=False,
        trust_env=False,
        transport=transport,
    )


def exchange(http: httpx.Client, request: httpx.Request) -> tuple[httpx.Response, bytes]:
    """Send a request and read its answer, which may be endless: so much, and so long.

    Raises:
        UnansweredError: timeout, unreachable or bad_answer.
    """
    try:
        return _exchange(http, request)
    except httpx.TimeoutException:
        raise UnansweredError("timeout") from None
    except httpx.DecodingError as error:
        raise UnansweredError("bad_answer", str(error)) from None
    except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
        raise UnansweredError("unreachable", str(error)) from None


def _exchange(http: httpx.Client, request: httpx.Request) -> tuple[httpx.Response, bytes]:
    until_s = time.monotonic() + ANSWER_S
    response = http.send(request, stream=True)
    try:
        # a few packed bytes may become any number
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx.DecodingError("it is compressed, and identity was asked for")
        data = bytearray()
        for piece in response.iter_bytes():
            data += piece
            if len(data) > MOST_BYTES:
                raise httpx.DecodingError(f"it is longer than {MOST_BYTES:,} bytes")
            if time.monotonic() > until_s:
                raise httpx.ReadTimeout("its answer doesn't end")
    finally:
        response.close()
    return response, bytes(data)


def status_code(response: httpx.Response) -> None:
    """Refuse an answer by its status.

    Raises:
        UnansweredError: unauthorized or redirected.
    """
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise UnansweredError("unauthorized", f"status {response.status_code}")
    if response.is_redirect or 300 <= response.status_code < 400:  # noqa: PLR2004
        raise UnansweredError("redirected", "redirects are not followed")


def parsed(data: bytes) -> Any:
    """Return the JSON of an answer.

    Raises:
        UnansweredError: it is none.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UnansweredError("bad_answer", "its answer is no JSON") from None
