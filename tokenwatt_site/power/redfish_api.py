"""A management controller's Redfish tree: a session that ends, links that stay on its host."""

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.power.web import (
    UnansweredError,
    base_url,
    client,
    exchange,
    parsed,
    password,
    status_code,
)

ROOT = "/redfish/v1"
_SESSIONS = f"{ROOT}/SessionService/Sessions"
_OK, _FORBIDDEN, _NOT_FOUND = 200, 403, 404
_LOGIN_REFUSED = frozenset({404, 405, 501})
"""A controller without sessions: each request carries the password then."""

Resource = dict[str, Any]


class RedfishApi:
    """Reads one controller; ``close`` ends its session, of which controllers allow few."""

    def __init__(self, power: SpecPower, transport: httpx.BaseTransport | None = None) -> None:
        """Take address and rights from a spec; nothing is sent yet.

        Raises:
            UsageError: no usable address, or a password variable that isn't set.
        """
        self._url = base_url(power, "a Redfish service", "https://bmc.example")
        self._user, self._secret = power.username, password(power)
        self._client = client(power, transport)
        self._session: str | None = None
        self._new = False
        """Nothing was answered in this session yet: another one would be no better."""

    def get(self, path: str) -> Resource:
        """Return a resource by its path.

        Raises:
            UnansweredError: not_found, forbidden, unauthorized, redirected, timeout, unreachable or
                bad_answer.
        """
        self._log_in()
        try:
            found = self._get(path)
        except UnansweredError as error:
            if error.code != "unauthorized" or self._session is None or self._new:
                raise
            self._end_session()  # the controller ended it: once more, then it is refused
            self._log_in()
            found = self._get(path)
        self._new = False
        return found

    def close(self) -> None:
        """End the session and close the connection."""
        self._end_session()
        self._client.close()

    def _end_session(self) -> None:
        if self._session is None:
            return
        with suppress(UnansweredError):  # it ends by itself in some minutes
            exchange(self._client, self._client.build_request("DELETE", self._session))
        self._session = None
        self._client.headers.pop("X-Auth-Token", None)

    def _get(self, path: str) -> Resource:
        request = self._client.build_request("GET", self._url + safe_path(path))
        response, data = exchange(self._client, request)
        if response.status_code == _FORBIDDEN:
            raise UnansweredError("forbidden", f"status 403 at {path}")
        status_code(response)
        if response.status_code == _NOT_FOUND:
            raise UnansweredError("not_found", f"status 404 at {path}")
        if response.status_code != _OK:
            raise UnansweredError("bad_answer", f"status {response.status_code} at {path}")
        found = parsed(data)
        if not jsonfile.is_object(found):
            raise UnansweredError("bad_answer", f"no object at {path}")
        return found

    def _log_in(self) -> None:
        if self._user is None or self._session is not None or self._client.auth is not None:
            return
        asked = {"UserName": self._user, "Password": self._secret or ""}
        request = self._client.build_request("POST", self._url + _SESSIONS, json=asked)
        response, _ = exchange(self._client, request)
        token, place = response.headers.get("X-Auth-Token"), response.headers.get("Location")
        if response.status_code in _LOGIN_REFUSED:
            self._client.auth = httpx.BasicAuth(self._user, self._secret or "")
            return
        status_code(response)
        if not response.is_success or not token or not place:
            raise UnansweredError("unauthorized", f"status {response.status_code} at the login")
        self._client.headers["X-Auth-Token"] = token
        self._session = self._url + safe_path(str(urlsplit(str(place)).path))
        self._new = True


def safe_path(path: str) -> str:
    """Return a path of the tree as it stands.

    Raises:
        UnansweredError: it isn't one: a controller's links don't lead anywhere else.
    """
    parts = path.split("/")
    plain = path.isascii() and path.isprintable() and not set(path) & set(" ?#\\@%")
    if not path.startswith(ROOT) or not plain or ".." in parts or "//" in path:
        raise UnansweredError("bad_answer", "a link leaves the tree")
    return path


def link(resource: Resource, name: str) -> str | None:
    """Return where a resource's link leads, None without one."""
    found = resource.get(name)
    path: Any = found.get("@odata.id") if jsonfile.is_object(found) else None
    return path if isinstance(path, str) else None


def members(collection: Resource, most: int) -> list[str]:
    """Return the first links of a collection."""
    paths: list[Any] = [row.get("@odata.id") for row in objects(collection, "Members")[:most]]
    return [path for path in paths if isinstance(path, str)]


def objects(resource: Resource, key: str) -> list[Resource]:
    """Return the objects of a list; what isn't one is left out."""
    listed: Any = resource.get(key)
    return [row for row in listed if jsonfile.is_object(row)] if jsonfile.is_array(listed) else []
