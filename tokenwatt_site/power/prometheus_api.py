"""Instant queries to a Prometheus server: short, bounded, and never at another host."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import httpx

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import UsageError

CALL_S = 3.0
"""Longest wait for a connection, or for the next bytes."""
ANSWER_S = 5.0
MOST_BYTES = 4_000_000
_LONGEST_WORDS = 300
Kind = Literal["vector", "matrix", "scalar"]


class UnansweredError(Exception):
    """A query without a usable answer: a code, and words that may be shown."""

    def __init__(self, code: str, words: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.words = "".join(char if char.isprintable() else " " for char in words)[:_LONGEST_WORDS]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer, its values as the server wrote them."""

    labels: dict[str, str]
    points: list[tuple[float, str]]
    """Time on the server's clock, s, and value; one of them in an instant vector."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an instant query gave."""

    kind: Kind
    series: list[Series]


class PrometheusApi:
    """Asks one server."""

    def __init__(self, power: SpecPower, transport: httpx.BaseTransport | None = None) -> None:
        """Take address and rights from a spec; nothing is sent yet.

        With ``username`` it is basic authentication, with ``password_env`` alone a bearer token.

        Raises:
            UsageError: no usable address, or a password variable that isn't set.
        """
        self._url = f"{_base(power)}/api/v1/query"
        auth, headers = _rights(power)
        self._client = httpx.Client(
            auth=auth,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"} | headers,
            timeout=CALL_S,
            verify=power.verify_tls,
            follow_redirects=False,
            trust_env=False,
            transport=transport,
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def ask(self, query: str) -> Answer:
        """Return the answer to an instant query, evaluated at the server's now.

        Raises:
            UnansweredError: timeout, unreachable, unauthorized, redirected or bad_answer.
        """
        try:
            status, data = self._exchange(query)
        except httpx.TimeoutException:
            raise UnansweredError("timeout") from None
        except httpx.DecodingError as error:
            raise UnansweredError("bad_answer", str(error)) from None
        except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
            raise UnansweredError("unreachable", str(error)) from None
        if status in (401, 403):
            raise UnansweredError("unauthorized", f"status {status}")
        if 300 <= status < 400:  # noqa: PLR2004
            raise UnansweredError("redirected", "redirects are not followed")
        try:
            return _answer(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise UnansweredError("bad_answer", f"status {status}, no answer to a query") from None

    def _exchange(self, query: str) -> tuple[int, bytes]:
        """Send a query and read its answer, which may be endless: so much, and so long."""
        until_s = time.monotonic() + ANSWER_S
        with self._client.stream("GET", self._url, params={"query": query}) as response:
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
        return response.status_code, bytes(data)


def _base(power: SpecPower) -> str:
    hint = "set power.url to the server's address, such as http://prometheus.example:9090"
    try:
        parts = urlsplit(power.url or "")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise UsageError("power.url is no address", hint) from None
    if not usable or parts.query or parts.fragment or not (power.url or "").isprintable():
        raise UsageError("power.url is no http or https address of a Prometheus server", hint)
    if parts.username is not None:
        raise UsageError(
            "power.url holds a user name or a password",
            "put them into power.username and the variable that power.password_env names",
        )
    return (power.url or "").rstrip("/")


def _rights(power: SpecPower) -> tuple[httpx.BasicAuth | None, dict[str, str]]:
    if power.password_env is None:
        if power.username is not None:
            raise UsageError(
                "power.username is given without a password",
                "name the environment variable that holds it in power.password_env",
            )
        return None, {}
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
    if power.username is not None:
        return httpx.BasicAuth(power.username, secret), {}
    return None, {"Authorization": f"Bearer {secret}"}


def _answer(body: Mapping[str, Any]) -> Answer:
    """Return what a query gave.

    Raises:
        UnansweredError: the server says why there is nothing.
        ValueError, LookupError, TypeError, AttributeError: it has another shape.
    """
    if body["status"] != "success":
        raise UnansweredError("bad_answer", f"{body.get('errorType')}: {body.get('error')}")
    kind, result = body["data"]["resultType"], body["data"]["result"]
    if kind == "scalar":
        return Answer("scalar", [Series({}, [_point(result)])])
    if kind not in {"vector", "matrix"}:
        raise ValueError(f"no numbers: {kind}")
    return Answer(
        cast("Kind", kind),
        [
            Series(
                {str(name): str(value) for name, value in entry["metric"].items()},
                [_point(pair) for pair in entry.get("values") or [entry["value"]]],
            )
            for entry in result
        ],
    )


def _point(pair: Sequence[Any]) -> tuple[float, str]:
    time_s, value = pair
    return float(time_s), str(value)
