"""The embedded engine on a socket of this machine, and as a process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.program import environment
from tests.support.raw_http import RawClient, request
from tests.support.steps import plain
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.overrides import Meter
from tokenwatt_site.simulator.server import Setup, serve

MODULE = "tokenwatt_site.simulator"


async def asked(setup: Setup, path: str, host: str) -> Any:
    """Serve, ask for one page over a real socket, stop."""
    loop = asyncio.get_running_loop()
    address: asyncio.Future[str] = loop.create_future()
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(setup, address.set_result, stop))
    url = await address
    port = int(url.rpartition(":")[2].removesuffix("/v1"))
    _, client = await loop.create_connection(RawClient, host, port)
    reply = await client.ask("GET", path)
    client.close()
    stop.set()
    await serving
    return url, reply.json()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_it_listens_on_this_machine_and_says_where(host: str) -> None:
    url, models = asyncio.run(asked(Setup(plain(), Meter(), host=host), "/v1/models", "127.0.0.1"))
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/v1")
    assert models["data"][0]["id"] == "simulated"


def test_it_stops_in_the_middle_of_a_stream() -> None:
    body = {"prompt": "x", "max_tokens": 10_000, "stream": True}

    async def scene() -> int:
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        serving = asyncio.create_task(serve(Setup(plain(), Meter()), address.set_result, stop))
        port = int((await address).rpartition(":")[2].removesuffix("/v1"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("POST", "/v1/completions", body))
        await reader.readuntil(b" t2")
        stop.set()
        await serving
        writer.close()
        return len(asyncio.all_tasks())

    assert asyncio.run(scene()) == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "::", "example.org", ""])
def test_it_listens_nowhere_else(host: str) -> None:
    with pytest.raises(RefusedError, match="this machine only") as caught:
        asyncio.run(serve(Setup(plain(), Meter(), host=host), print, asyncio.Event()))
    assert "127.0.0.1" in caught.value.hint


def test_a_taken_port_is_one_sentence() -> None:
    async def twice() -> None:
        taken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        first = asyncio.create_task(serve(Setup(plain(), Meter()), taken.set_result, stop))
        port = int((await taken).rpartition(":")[2].removesuffix("/v1"))
        try:
            await serve(Setup(plain(), Meter(), port=port), print, stop)
        finally:
            stop.set()
            await first

    with pytest.raises(UsageError, match=r"can't listen on 127\.0\.0\.1:\d+"):
        asyncio.run(twice())


@contextmanager
def child(*arguments: str, stdin: int = subprocess.PIPE) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(None),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_a_child_prints_its_address_and_ends_with_its_standard_input() -> None:
    with child("--port", "0", "--profile", "demo", "--override", "max_sequences=8") as process:
        assert set(first_line(process)) == {"url"}
        out, error = process.communicate(timeout=60)  # closes standard input
        assert (process.returncode, out, error) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_word(number: signal.Signals) -> None:
    with child(stdin=subprocess.DEVNULL) as process:  # no lifeline: it serves on
        first_line(process)
        os.kill(process.pid, number)
        _, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (0, "")


@pytest.mark.parametrize(
    "arguments,said",
    [
        (("--profile", "dem"), "did you mean demo?"),
        (("--override", "max_sequnces=8"), "did you mean max_sequences?"),
        (("--override", "max_sequences"), "has no '='"),
        (("--port", "99999"), "--port"),
    ],
)
def test_what_it_can_t_serve_is_one_message_with_exit_code_2(
    arguments: tuple[str, ...], said: str
) -> None:
    with child(*arguments) as process:
        _, error = process.communicate(timeout=60)
        assert process.returncode == 2
        assert said in error
        assert "Traceback" not in error
