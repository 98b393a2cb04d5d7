"""A real server in a child process: started by the documented command, asked, stopped."""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

from tests.support.shared import ROOT

SERVE = ROOT / "specs" / "llamacpp" / "serve.py"
START_S = 60
STOP_S = 20


@dataclass(frozen=True)
class Server:
    """A server that answers."""

    url: str
    """Base of the API, with /v1."""
    model: str

    def get(self, path: str) -> str:
        """Return the body of a GET outside of the API."""
        return _get(self.url.removesuffix("/v1") + path)

    def counters(self) -> dict[str, float]:
        """Return the server's own figures from /metrics, by name without prefix."""
        lines = self.get("/metrics").splitlines()
        pairs = (line.rpartition(" ") for line in lines if line.startswith("llamacpp:"))
        return {name.removeprefix("llamacpp:"): float(value) for name, _, value in pairs}

    def idle_counters(self, timeout_s: float = 10) -> dict[str, float]:
        """Return the figures once no request is being worked on: they are counted at its end."""
        deadline_s = time.monotonic() + timeout_s
        while (found := self.counters())["requests_processing"] or found["requests_deferred"]:
            assert time.monotonic() < deadline_s, "requests are still running"
            time.sleep(0.05)
        return found


@contextmanager
def llamacpp(cache: Path, *options: str) -> Iterator[Server]:
    """Run specs/llamacpp/serve.py on a free port; ``cache`` is the folder it works in."""
    command = [sys.executable, str(SERVE), "--port", "0", *options]
    with subprocess.Popen(command, cwd=cache, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready = _first_line(process)
            wait_healthy(ready["url"])
            yield Server(url=ready["url"], model=ready["model"])
        finally:
            process.terminate()
            code = _end(process)
    assert code == 0, f"the server ended with {code} on SIGTERM"


def wait_healthy(url: str, timeout_s: float = START_S) -> None:
    """Poll /health until the server says that it is ready."""
    health = url.removesuffix("/v1") + "/health"
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            if json.loads(_get(health)) == {"status": "ok"}:
                return
        except URLError:
            pass
        assert time.monotonic() < deadline_s, f"{health} didn't say ok in {timeout_s} s"
        time.sleep(0.05)


def _first_line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout
    watchdog = threading.Timer(START_S, process.kill)
    watchdog.start()
    line = process.stdout.readline()
    watchdog.cancel()
    assert line, "the server ended before it was ready"
    found: dict[str, Any] = json.loads(line)
    return found


def _end(process: "subprocess.Popen[str]") -> int:
    try:
        return process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - a server of our own
        text: str = answer.read().decode()
        return text
