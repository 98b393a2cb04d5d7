"""A server of scripts in memory or on a socket: the conformance suite's stub, and what it saw."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from tokenwatt_site.load.conformance.script import END, HEAD, Do, Script, chunk, event
from tokenwatt_site.load.conformance.stub import Request, StubConnection

__all__ = ["END", "HEAD", "Do", "Handler", "Script", "ScriptedServer", "Seen", "chunk", "event"]


@dataclass(slots=True)
class Seen:
    """A request that the server got."""

    t_s: float
    body: dict[str, Any]
    connection: int


@dataclass(slots=True)
class ScriptedServer:
    """Answers request i (from 0) with ``script(i, body)``."""

    script: Callable[[int, dict[str, Any]], Script]
    seen: list[Seen] = field(default_factory=list)
    connections: list["Handler"] = field(default_factory=list)

    def __call__(self) -> "Handler":
        """Return the protocol of a new connection."""
        handler = Handler(self, len(self.connections))
        self.connections.append(handler)
        return handler


class Handler(StubConnection):
    """One connection to the scripted server."""

    def __init__(self, server: ScriptedServer, number: int) -> None:
        super().__init__(self._script)
        self._server = server
        self._number = number

    def _script(self, request: Request) -> Script:
        body = json.loads(request.body)
        number = len(self._server.seen)
        self._server.seen.append(Seen(asyncio.get_running_loop().time(), body, self._number))
        return self._server.script(number, body)

    def reset(self) -> None:
        """Do as a TCP reset does, in memory too."""
        if self.transport.get_extra_info("socket") is None:
            cast("Any", self.transport).reset()
        else:
            super().reset()
