"""The control plane of a server: its short questions, with one clear error for each failure."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from tokenwatt_site.errors import ServerError
from tokenwatt_site.load.address import Address
from tokenwatt_site.load.api.chunk import dicts, error_message, is_dict, parsed
from tokenwatt_site.load.target import without_key
from tokenwatt_site.load.tls import tls_context

_SHORT_S = 10.0
_LONGEST_WORDS = 300
_ANSWER_S = 300.0  # a server that compiles on its first request takes minutes
_MOST_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whole and as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as UTF-8, whatever charset the server names: JSON knows no other."""
        return self.body.decode("utf-8", "replace")

    @property
    def is_success(self) -> bool:
        """Tell whether the status is a 2xx."""
        return 200 <= self.status < 300  # noqa: PLR2004


class Control:
    """Short requests to one server."""

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, str],
        transport: httpx.BaseTransport | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Take the server, what goes with each request, and whose signatures are trusted.

        Raises:
            UsageError: ``ca_file`` can't be used.
        """
        self.url = address.url
        self._address = address
        self._headers = headers
        self._client = httpx.Client(
            headers={"Accept-Encoding": "identity", **headers},
            timeout=_SHORT_S,
            verify=tls_context(address, ca_file) or False,
            # llama.cpp hangs up after a stream without having said so: a kept connection is dead
            limits=httpx.Limits(max_keepalive_connections=0),
            transport=transport,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def models(self) -> list[dict[str, Any]] | None:
        """Return the entries of ``/models``, each with an ``id``; None where there is no such list.

        Raises:
            ServerError: nothing there, no OpenAI API, or refusing.
        """
        reply = self.ask("GET", f"{self.url}/models")
        if not reply.is_success:
            self._check_no_models(reply)
            return None
        body = parsed(reply.text)
        data = body.get("data") if is_dict(body) else None
        if not isinstance(data, list):
            raise self._no_api("its /models is no list of models")
        return [entry for entry in dicts(data) if _is_name(entry.get("id"))]

    def clean(self, words: str) -> str:
        """Return a server's words as they may be shown: one printable line without the API key."""
        line = without_key(words, self._headers)[:_LONGEST_WORDS]
        return "".join(char if char.isprintable() else " " for char in line)

    def root_json(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path of the server itself; empty where there is none."""
        try:
            reply = self.ask("GET", self._address.root + path, refuse=False)
        except ServerError:
            return {}
        body = parsed(reply.text) if reply.is_success else None
        return body if is_dict(body) else {}

    def root_text(self, path: str) -> str:
        """Return the text at a path of the server itself; empty where there is none."""
        try:
            reply = self.ask("GET", self._address.root + path, refuse=False)
        except ServerError:
            return ""
        return reply.text if reply.is_success else ""

    def ask(
        self, method: str, url: str, body: bytes | None = None, *, refuse: bool = True
    ) -> Reply:
        """Return the answer to one request, whatever its status.

        Raises:
            ServerError: no answer, or one too long or too slow to be one; with ``refuse``, also a
                redirect or a refused key.
        """
        try:
            reply = self._exchange(method, url, body)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise self._unreachable(error) from None
        if refuse and 300 <= reply.status < 400:  # noqa: PLR2004
            place = self.clean(reply.headers.get("location", "elsewhere"))
            raise ServerError(
                f"{url} redirects to {place}",
                "set engine.endpoint to where the API is; redirects are not followed",
            )
        if refuse and reply.status in (401, 403):
            raise self._refused(reply)
        return reply

    def _exchange(self, method: str, url: str, body: bytes | None) -> Reply:
        """Send a request and read its answer, which may be endless: so much, and so long."""
        content_type = {"Content-Type": "application/json"} if body else {}
        wait_s = _ANSWER_S if body else _SHORT_S
        timeout = httpx.Timeout(wait_s, connect=_SHORT_S)
        with self._client.stream(
            method, url, content=body, headers=content_type, timeout=timeout
        ) as response:
            coding = response.headers.get("content-encoding", "identity")
            # a few packed bytes may become any number
            if coding.strip().lower() not in ("", "identity"):
                raise httpx.DecodingError("it is compressed, and identity was asked for")
            data, until_s = bytearray(), time.monotonic() + wait_s
            for piece in response.iter_bytes():
                data += piece
                if len(data) > _MOST_BYTES:
                    raise httpx.RemoteProtocolError(f"it is longer than {_MOST_BYTES:,} bytes")
                if time.monotonic() > until_s:
                    raise httpx.ReadTimeout("its answer doesn't end")
        return Reply(response.status_code, response.headers, bytes(data))

    def _check_no_models(self, reply: Reply) -> None:
        """Tell a server without a model list, which may do, from one that can't be measured."""
        status, words = reply.status, self._words(reply)
        if status in (429, 503):
            raise ServerError(
                f"the server at {self.url} is not ready ({status}: {words})",
                "wait until it has loaded its model, then try again",
            )
        if status == 404 and not self._address.path:  # noqa: PLR2004
            raise self._no_api(f"nothing at {self.url}/models")
        if "html" in reply.headers.get("content-type", ""):
            raise self._no_api("it answers with a web page")

    def _words(self, reply: Reply) -> str:
        return self.clean(error_message(parsed(reply.text)))

    def _no_api(self, why: str) -> ServerError:
        hint = "check the port and the path of engine.endpoint"
        if not self._address.path.endswith("/v1"):
            hint += f"; most servers have the API at {self._address.root}/v1"
        return ServerError(f"the server at {self.url} has no OpenAI-compatible API: {why}", hint)

    def _refused(self, reply: Reply) -> ServerError:
        words = self._words(reply)
        shown = f" ({words})" if words else ""
        if self._headers:  # its words may repeat a part of the key
            return ServerError(
                f"the server at {self.url} refuses the API key with {reply.status}",
                "check the value of the variable that engine.api_key_env names",
            )
        return ServerError(
            f"the server at {self.url} wants an API key: {reply.status}{shown}",
            "put it into an environment variable and name that in engine.api_key_env",
        )

    def _unreachable(self, error: Exception) -> ServerError:
        words = self.clean(str(error)) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in words:
            other_name = "mismatch" in words
            return ServerError(
                f"the certificate of {self._address.authority} can't be verified: {words}",
                "write the name that the certificate is for into engine.endpoint"
                if other_name
                else "name the PEM file of the authority that signed it in engine.ca_file",
            )
        if "SSL" in words:
            return ServerError(
                f"{self._address.authority} speaks no TLS: {words}",
                f"try engine.endpoint http://{self._address.authority}{self._address.path}",
            )
        if isinstance(error, httpx.InvalidURL | UnicodeError):
            return ServerError(
                f"{self._address.host} can't be looked up ({words})", "correct engine.endpoint"
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ServerError(
                f"nothing answers at {self.url} ({words})",
                "start the server, or correct engine.endpoint",
            )
        if isinstance(error, httpx.TimeoutException):
            return ServerError(
                f"the server at {self.url} takes connections and doesn't answer",
                "look into its log; it may still be loading, or be stuck",
            )
        return ServerError(
            f"the server at {self.url} gave no valid HTTP answer ({words})",
            "check that engine.endpoint is its HTTP port (https:// if it speaks TLS), "
            "and its log for an error",
        )


def _is_name(value: Any) -> bool:
    """Tell whether a value is a name that can be shown, stored and sent back as it is."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_WORDS and value.isprintable()
