"""A page of accelerators at /power that a test writes, over real HTTP."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def device(index: int, **more: Any) -> dict[str, Any]:
    """Return one accelerator as the page shows it."""
    return {
        "uuid": f"SIM-{index}",
        "name": "Simulated H200",
        "power_w": 500.0 + index,
        "energy_j": 1000.0,
        "limit_w": 700.0,
        "rated_bw_tbs": 4.8,
        "throttle_ns": {"sw_power_cap": 0},
        "throttled": [],
        **more,
    }


class PowerServer:
    """What the page answers next: a status and a body, or nothing at all."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status = 200
        self.body: Any = {"t_s": 0.0, "devices": [device(k) for k in range(4)]}
        self.paths: list[str] = []
        self.silent = threading.Event()
        self.over = threading.Event()
        self.connections = 0


@contextmanager
def power_server() -> Iterator[PowerServer]:
    """Serve a page until the test is done, then cut every connection."""
    sockets: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            page.connections += 1
            sockets.append(self.connection)

        def do_GET(self) -> None:
            page.paths.append(self.path)
            if page.silent.is_set():
                page.over.wait()
            raw = page.body
            body = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
            self.send_response(page.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # joined by server_close
    page = PowerServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield page
    finally:
        page.over.set()
        server.shutdown()
        for connection in sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.server_close()
