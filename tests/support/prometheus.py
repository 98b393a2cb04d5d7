"""Debian's Prometheus, scraping pages that a test writes."""

import json
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.support.shared import require

DEADLINE_S = 20.0
SCRAPE = "100ms"
_THRICE = "count_over_time(up[1m]) > 2"
UUIDS = ("GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52", "GPU-0e1d5a31-7b44-4e0c-9a55-3f1c2f8e6b10")
WATTS = {UUIDS[0]: 500.0, UUIDS[1]: 600.0}


class Exporter:
    """A page at /metrics; what it says is the test's, per scrape."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.page: Callable[[], str] = lambda: ""
        self.up = True


@contextmanager
def exporter(page: Callable[[], str]) -> Iterator[Exporter]:
    """Serve a page until the test is done."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = mine.page().encode()
            self.send_response(200 if mine.up else 503)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mine = Exporter(f"127.0.0.1:{server.server_port}")
    mine.page = page
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield mine
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def prometheus(*exporters: Exporter, web: Path | None = None) -> Iterator[str]:
    """Run a server that scrapes exporters ten times a second; give its address when it is up.

    ``web`` is its web configuration, of TLS: the address is then that of https.
    """
    targets = [{"targets": [each.address]} for each in exporters]
    scrape = {"job_name": "dcgm", "static_configs": targets}
    every = {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "prometheus.yml"  # JSON is YAML
        config.write_text(json.dumps({"global": every, "scrape_configs": [scrape]}))
        options = {
            "config.file": config,
            "storage.tsdb.path": Path(folder) / "data",
            "web.listen-address": "127.0.0.1:0",
            **({"web.config.file": web} if web else {}),
        }
        process = subprocess.Popen(
            [require("prometheus"), *(f"--{name}={value}" for name, value in options.items())],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            url = f"{'https' if web else 'http'}://{_address(process)}"
            if exporters:  # the first scrapes are five seconds away
                until(lambda: _scraped(url) == len(exporters), "no target was scraped")
            yield url
        finally:
            process.kill()
            process.communicate()


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for something to happen, asking twenty times a second; fail when it never does."""
    never, end_s = threading.Event(), time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < end_s, what
        never.wait(0.05)


def dcgm_page(rows: Callable[[], dict[str, str]] = dict) -> str:
    """Return the energy (mJ, by the machine's clock) and power of two GPUs, as dcgm-exporter does.

    ``rows`` gives more series: text before the value -> value.
    """
    time_s = time.monotonic()
    lines: dict[str, str] = {}
    for index, uuid in enumerate(UUIDS):
        labels = f'gpu="{index}",UUID="{uuid}",device="nvidia{index}",Hostname="node"'
        lines[f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}"] = f"{WATTS[uuid]}"
        joules = WATTS[uuid] * time_s
        lines[f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{labels}}}"] = f"{joules * 1000:.0f}"
    return "".join(f"{series} {value}\n" for series, value in (lines | rows()).items())


def _address(process: "subprocess.Popen[str]") -> str:
    """Read its log until it tells where it listens."""
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r'msg="Listening on" address=(\S+)', line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found[1]
    raise AssertionError("prometheus didn't start")


def _scraped(url: str) -> int:
    """Return how many targets have been scraped often enough to know how often that is."""
    with suppress(httpx.TransportError):
        answer = httpx.get(f"{url}/api/v1/query", params={"query": _THRICE}, trust_env=False)
        return len(answer.json()["data"]["result"])
    return 0
