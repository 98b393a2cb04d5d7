"""Where a server is: the parts of an endpoint's URL, checked once."""

import ipaddress
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from tokenwatt_site.errors import UsageError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint such as ``http://127.0.0.1:8000/v1``.

    >>> Address.of("https://llm.example/v1/")
    Address(scheme='https', host='llm.example', port=443, path='/v1')
    """

    scheme: str
    host: str
    port: int
    path: str
    """Path of the API without a trailing slash, often ``/v1``."""

    @classmethod
    def of(cls, endpoint: str) -> Self:
        """Read an endpoint.

        Raises:
            UsageError: not an http(s) URL, or one with a user name, a query or a fragment.
        """
        try:
            parts = urlsplit(endpoint)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = None, None, None
        plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint
        if parts is None or not host or not plain or parts.scheme not in _PORTS or port == 0:
            raise UsageError(
                f"engine.endpoint {_shown(endpoint)!r} is no http or https URL",
                "write it like http://127.0.0.1:8000/v1",
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UsageError(
                f"engine.endpoint has more than a host and a path ({_shown(endpoint)})",
                "leave out user name, password, ?query and #fragment; a key goes into "
                "engine.api_key_env",
            )
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Return host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def root(self) -> str:
        """Return the URL of the server itself, without the API's path."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """Return the URL of the API."""
        return self.root + self.path

    @property
    def loopback(self) -> bool:
        """Tell whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")

    def proxy_variable(self) -> str | None:
        """Return the environment variable that would send requests to this server by a proxy."""
        proxies = getproxies_environment()
        name = next((name for name in (self.scheme, "all") if proxies.get(name)), None)
        if name is None or self._passed_by(proxies.get("no", "")):
            return None
        return f"{name.upper()}_PROXY"

    def _passed_by(self, no_proxy: str) -> bool:
        """Tell whether NO_PROXY names this server: its host, port, domain, address or network."""
        entries = [entry.strip().lower() for entry in no_proxy.split(",")]
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return any(_names(entry, self.host, self.port) for entry in entries)
        return "*" in entries or any(_holds(entry, address, self.port) for entry in entries)


def _names(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of NO_PROXY is this host or a domain of it, with or without port."""
    name = entry.removesuffix(f":{port}").removeprefix(".")
    return entry == "*" or host == name or (bool(name) and host.endswith(f".{name}"))


def _holds(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> bool:
    """Tell whether an entry of NO_PROXY is this address, with or without port, or its network."""
    try:
        return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        shown = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004
        return entry == f"{shown}:{port}"


def _shown(endpoint: str) -> str:
    """Return an endpoint without what may be a password."""
    _, at, rest = endpoint.rpartition("@")
    return f"…@{rest}" if at else endpoint
