"""The way to a power agent on another host: both sides prove that they know a shared token.

The token itself never travels. A request carries a number that is used once and a keyed hash of it
and of what is asked; the answer carries a keyed hash of that number and of its body, so that nobody
in between can make up watts. What is read is no secret and isn't hidden; use https for that.
"""

import hashlib
import hmac
import http.client
import json
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.errors import UsageError

HEADER = "X-Tokenwatt-Proof"
LEAST_TOKEN = 16
TIMEOUT_S = 2.0
_MOST_BYTES = 8_000_000


def proof(token: str, *parts: bytes) -> str:
    """Return the keyed hash of some parts, in hexadecimal digits."""
    digest = hmac.new(token.encode(), digestmod=hashlib.sha256)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def same(one: str, other: str) -> bool:
    """Compare two proofs in a time that doesn't tell where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def checked_token(token: str | None, variable: str | None) -> str:
    """Return the shared token of an environment variable.

    Raises:
        UsageError: no variable is named, it isn't set, or what it holds is too short to be secret.
    """
    if variable is None:
        raise UsageError(
            "a host with an agent needs token_env",
            "name the environment variable that holds the token shared with the agent",
        )
    if not token or len(token) < LEAST_TOKEN:
        raise UsageError(
            f"the environment variable {variable} holds no token of {LEAST_TOKEN} characters",
            f'set it to the same on both hosts: export {variable}="$(openssl rand -hex 16)"',
        )
    return token


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent said, or why it said nothing."""

    data: dict[str, Any] | None
    code: str | None
    """unreachable, timeout, unauthorized or bad_answer."""
    sent_s: float
    """This host's clock before the request and after the answer."""
    received_s: float


class AgentClient:
    """Asks one agent over one connection that is kept, and made anew after a failure."""

    def __init__(self, url: str, token: str, timeout_s: float = TIMEOUT_S) -> None:
        """Take the agent's address; connect on the first question.

        Raises:
            UsageError: no http(s) address, or one with a user name, a path or a query.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        more = parts.query or parts.fragment or parts.path.strip("/")
        plain = "@" not in parts.netloc and not more
        if parts.scheme not in ("http", "https") or not host or not plain:
            raise UsageError(
                "hosts: agent is no agent's address", "use http://HOST:PORT, without a path"
            )
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(host, port, timeout=timeout_s)
        self._token = token
        self._timeout_s = timeout_s

    def ask(self, target: str) -> Answer:
        """Return the answer to ``GET target``."""
        sent_s = time.monotonic()
        data, code = None, None
        # each wait has its limit, and all of them together: an answer may come drop by drop
        watchdog = threading.Timer(2 * self._timeout_s, self._cut)
        watchdog.daemon = True
        watchdog.start()
        try:
            data, sent_s = self._ask(target)
        except TimeoutError:
            code = "timeout"
        except PermissionError:
            code = "unauthorized"
        except OSError:
            code = "unreachable"
        except (http.client.HTTPException, ValueError, RecursionError):
            code = "bad_answer"
        finally:
            watchdog.cancel()
        if code:
            self.close()
        return Answer(data, code, sent_s, time.monotonic())

    def _ask(self, target: str) -> tuple[dict[str, Any], float]:
        nonce = secrets.token_hex(16)
        said = f"{nonce} {proof(self._token, b'GET', target.encode(), nonce.encode())}"
        if self._connection.sock is None:
            self._connection.connect()  # no part of the time that the clocks are compared over
        sent_s = time.monotonic()
        self._connection.request("GET", target, headers={HEADER: said})
        answer = self._connection.getresponse()
        body = answer.read(_MOST_BYTES)
        if answer.status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            raise PermissionError
        if answer.status != http.client.OK or answer.read(1):
            raise ValueError("no agent's answer")
        if not same(answer.getheader(HEADER, ""), proof(self._token, nonce.encode(), body)):
            raise PermissionError
        data = json.loads(body, parse_constant=_refuse)
        if not jsonfile.is_object(data):
            raise ValueError("no object")
        return data, sent_s

    def _cut(self) -> None:
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
