"""Redfish services: real dumps by sushy-static, and a controller that a test writes."""

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.shared import shared_path

PATIENCE_S = 20.0


@contextmanager
def dump(name: str) -> Iterator[str]:
    """Serve a recorded tree, and yield its address."""
    folder = shared_path(f"data/power/redfish/{name}")
    root = folder / "redfish/v1" if (folder / "redfish").is_dir() else folder
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("sushy-static")
    arguments = ["-i", "127.0.0.1", "-p", str(port), "--mockup-files", str(root)]
    with subprocess.Popen(
        [str(program), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait = threading.Event()
            for _ in range(int(PATIENCE_S / 0.05)):
                try:
                    socket.create_connection(("127.0.0.1", port), 1.0).close()
                    break
                except OSError:
                    wait.wait(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


class Controller:
    """What a controller has, whom it lets in, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.tree: dict[str, Any] = {}
        self.raw: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.user: tuple[str, str] | None = None
        """User and password; None lets everybody in."""
        self.sessions = True
        """It knows sessions."""
        self.deny = False
        """It opens sessions, and then lets nobody in."""
        self.forbidden: set[str] = set()
        self.open: set[str] = set()
        """Tokens of sessions that haven't ended."""
        self.asked: list[tuple[str, str]] = []
        self.silent = threading.Event()
        self.over = threading.Event()

    def chassis(self, name: str, **links: str) -> None:
        """Add a chassis with links to its parts."""
        path = f"/redfish/v1/Chassis/{name}"
        self.tree[path] = {key: {"@odata.id": where} for key, where in links.items()}
        self.tree["/redfish/v1"] = {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}}
        known = self.tree.setdefault("/redfish/v1/Chassis", {"Members": []})
        known["Members"].append({"@odata.id": path})

    def power(self, name: str, *controls: dict[str, Any], **more: Any) -> None:
        """Add a chassis whose ``Power`` has these members of PowerControl."""
        where = f"/redfish/v1/Chassis/{name}/Power"
        self.chassis(name, Power=where)
        self.tree[where] = {"PowerControl": list(controls), **more}


@contextmanager
def controller(  # noqa: C901 - a handler of short methods
    certificate: Path | None = None,
) -> Iterator[Controller]:
    """Serve a controller until the test is done; a certificate with its key makes it https."""
    told = Controller()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            told.asked.append(("GET", self.path))
            if told.silent.is_set():
                told.over.wait()
            if self.path in told.redirects:
                self._send(302, b"", Location=told.redirects[self.path])
            elif self.path in told.forbidden:
                self._send(403, b"{}")
            elif not self._let_in():
                self._send(401, b"{}")
            elif self.path in told.raw:
                self._send(200, told.raw[self.path])
            elif self.path in told.tree:
                self._send(200, json.dumps(told.tree[self.path]).encode())
            else:
                self._send(404, b"{}")

        def do_POST(self) -> None:
            told.asked.append(("POST", self.path))
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not told.sessions:
                self._send(405, b"{}")
            elif (body["UserName"], body["Password"]) != told.user:
                self._send(401, b"{}")
            else:
                token = f"token-{len(told.asked)}"
                told.open.add(token)
                place = f"/redfish/v1/SessionService/Sessions/{token}"
                self._send(201, b"{}", Location=place, **{"X-Auth-Token": token})

        def do_DELETE(self) -> None:
            told.asked.append(("DELETE", self.path))
            told.open.discard(self.path.rpartition("/")[2])
            self._send(204, b"")

        def _let_in(self) -> bool:
            if told.deny:
                return False
            if told.user is None or self.headers.get("X-Auth-Token") in told.open:
                return True
            return bool(self.headers.get("Authorization")) and not told.sessions

        def _send(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    told.url = f"{scheme}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        told.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
