"""The embedded engine as a child process: prints its address, ends with its parent.

    python -m tokenwatt_site.simulator --port 0 --profile demo --seed 0 --override max_sequences=8

prints ``{"url": "http://127.0.0.1:PORT/v1"}`` once it listens, and serves until SIGTERM, SIGINT or
the end of its standard input.
"""

import argparse
import asyncio
import json
import os
import signal
import stat
import sys

from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.method.overrides import parse, split
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.simulator.server import API_KEY_ENV, Setup, serve

_LAST_PORT = 65_535


def _setup() -> Setup:
    parser = argparse.ArgumentParser(prog="python -m tokenwatt_site.simulator")
    parser.add_argument("--port", type=_port, default=0)
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args()
    overrides = parse(asked.override)
    return Setup(
        shape_of(asked.profile, overrides),
        split(overrides).meter,
        seed=asked.seed,
        port=asked.port,
        api_key=os.environ.get(API_KEY_ENV, ""),
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= _LAST_PORT:
        raise ValueError(text)
    return port


def _ready(url: str) -> None:
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()


async def _child(setup: Setup) -> None:
    """Serve until a signal comes or the parent's end of standard input is closed."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if stat.S_ISFIFO(os.fstat(0).st_mode):  # a terminal or /dev/null is nobody's lifeline
        loop.add_reader(0, lambda: stop.set() if not os.read(0, 1024) else None)
    await serve(setup, _ready, stop)


def main() -> int:
    """Serve; return the exit code."""
    try:
        asyncio.run(_child(_setup()))
    except TokenwattError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
