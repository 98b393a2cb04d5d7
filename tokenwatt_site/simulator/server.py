"""The embedded engine as a server on this machine."""

import asyncio
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.overrides import Meter
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.simulator.app import App
from tokenwatt_site.simulator.engine import Engine

API_KEY_ENV = "TOKENWATT_SIMULATOR_API_KEY"
_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class Setup:
    """What is served, and where."""

    shape: Shape
    meter: Meter
    seed: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    api_key: str = ""


async def serve(setup: Setup, ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Serve until ``stop`` is set; ``ready`` is told the API's base URL.

    Raises:
        RefusedError: the host isn't this machine's loopback.
        UsageError: the port is taken or may not be used.
    """
    _check_loopback(setup.host)
    loop = asyncio.get_running_loop()
    engine = Engine(StepModel(setup.shape, setup.seed), loop)
    app = App(engine, setup.meter, setup.api_key)
    try:
        server = await loop.create_server(app.connection, setup.host, setup.port, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"can't listen on {setup.host}:{setup.port}: {error.strerror}",
            "choose another port, or 0 for any free one",
        ) from None
    host, port = server.sockets[0].getsockname()[:2]
    ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/v1")
    try:
        await stop.wait()
    finally:
        engine.close()
        server.close()


def _check_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise RefusedError(
            f"the embedded engine listens on this machine only, not on {host!r}",
            "use 127.0.0.1, and a tunnel to reach it from another machine",
        )
