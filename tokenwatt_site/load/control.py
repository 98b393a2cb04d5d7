"""The control plane of a server: its short questions, with one clear error for each failure."""

from collections.abc import Mapping
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
        response = self.ask("GET", f"{self.url}/models")
        if not response.is_success:
            self._check_no_models(response)
            return None
        body = parsed(response.text)
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
            response = self.ask("GET", self._address.root + path, refuse=False)
        except ServerError:
            return {}
        body = parsed(response.text) if response.is_success else None
        return body if is_dict(body) else {}

    def root_text(self, path: str) -> str:
        """Return the text at a path of the server itself; empty where there is none."""
        try:
            response = self.ask("GET", self._address.root + path, refuse=False)
        except ServerError:
            return ""
        return response.text if response.is_success else ""

    def ask(
        self, method: str, url: str, body: bytes | None = None, *, refuse: bool = True
    ) -> httpx.Response:
        """Return the answer to one request, whatever its status.

        Raises:
            ServerError: no answer; with ``refuse``, also a redirect or a refused key.
        """
        content_type = {"Content-Type": "application/json"} if body else {}
        timeout = httpx.Timeout(_ANSWER_S if body else _SHORT_S, connect=_SHORT_S)
        try:
            response = self._client.request(
                method, url, content=body, headers=content_type, timeout=timeout
            )
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise self._unreachable(error) from None
        if refuse and response.is_redirect:
            place = self.clean(response.headers.get("location", "elsewhere"))
            raise ServerError(
                f"{url} redirects to {place}",
                "set engine.endpoint to where the API is; redirects are not followed",
            )
        if refuse and response.status_code in (401, 403):
            raise self._refused(response)
        return response

    def _check_no_models(self, response: httpx.Response) -> None:
        """Tell a server without a model list, which may do, from one that can't be measured."""
        status, words = response.status_code, self._words(response)
        if status in (429, 503):
            raise ServerError(
                f"the server at {self.url} is not ready ({status}: {words})",
                "wait until it has loaded its model, then try again",
            )
        if status == 404 and not self._address.path:  # noqa: PLR2004
            raise self._no_api(f"nothing at {self.url}/models")
        if "html" in response.headers.get("content-type", ""):
            raise self._no_api("it answers with a web page")

    def _words(self, response: httpx.Response) -> str:
        return self.clean(error_message(parsed(response.text)))

    def _no_api(self, why: str) -> ServerError:
        hint = "check the port and the path of engine.endpoint"
        if not self._address.path.endswith("/v1"):
            hint += f"; most servers have the API at {self._address.root}/v1"
        return ServerError(f"the server at {self.url} has no OpenAI-compatible API: {why}", hint)

    def _refused(self, response: httpx.Response) -> ServerError:
        words = self._words(response)
        shown = f" ({words})" if words else ""
        if self._headers:  # its words may repeat a part of the key
            return ServerError(
                f"the server at {self.url} refuses the API key with {response.status_code}",
                "check the value of the variable that engine.api_key_env names",
            )
        return ServerError(
            f"the server at {self.url} wants an API key: {response.status_code}{shown}",
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
