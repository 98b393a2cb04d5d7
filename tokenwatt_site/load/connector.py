"""The way to a server: the seam that tests replace by a pair of connected protocols."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from tokenwatt_site.load.target import Target
from tokenwatt_site.load.tls import tls_context


class Connector(Protocol):
    """Opens connections to one server."""

    async def connect(self, protocol_factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Return the transport of a new connection.

        Raises:
            OSError: it can't be opened.
        """
        ...


class TcpConnector:
    """TCP, and TLS with the certificate verified where the endpoint says https. No proxies."""

    def __init__(self, target: Target) -> None:
        self._address = target.address
        self._tls = tls_context(target.address, target.ca_file)
        if self._tls is not None:
            self._tls.set_alpn_protocols(["http/1.1"])

    async def connect(self, protocol_factory: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Return the transport of a new connection."""
        transport, _ = await asyncio.get_running_loop().create_connection(
            protocol_factory, self._address.host, self._address.port, ssl=self._tls
        )
        return transport
