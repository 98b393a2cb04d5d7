"""The power agent: on one of several hosts, shows what its meters read to who knows the token."""

import json
import re
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tokenwatt_site.drivers.agent import HEADER, proof, same
from tokenwatt_site.method.evidence import power_row
from tokenwatt_site.power.opened import facts
from tokenwatt_site.power.sampler import Sampler

KEPT_S = 600.0
"""How long readings are kept for a measuring host that comes back."""
MOST_READINGS = 20_000
"""In one answer; the rest comes with the next."""
_PROOF = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})")


class Agent(ThreadingHTTPServer):
    """Serves ``/v1/facts`` and ``/v1/readings?meter=N&after=T``; ``serve_forever`` runs it."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], host: str, samplers: Sequence[Sampler], token: str
    ) -> None:
        """Listen; ``samplers`` are the host's meters, which are being read."""
        self.host = host
        self.samplers = list(samplers)
        self.token = token
        super().__init__(address, _Handler)

    def answer(self, target: str) -> dict[str, Any] | None:
        """Return what a path gives, None for one that isn't known."""
        parts = urlsplit(target)
        stamps = {"now_s": time.monotonic(), "wall_s": time.time()}
        if parts.path == "/v1/facts":
            meters = [facts(sampler).row() for sampler in self.samplers]
            return {"host": self.host, "meters": meters, **stamps}
        if parts.path != "/v1/readings":
            return None
        query = parse_qs(parts.query)
        number, after_s = int(query["meter"][0]), float(query["after"][0])
        sampler = self.samplers[number]
        sampler.forget(stamps["now_s"] - KEPT_S)
        new = [s for s in sampler.between(after_s, stamps["now_s"]) if s.t_s > after_s]
        return {"rows": [power_row(s, 0, 0.0) for s in new[:MOST_READINGS]], **stamps}


class _Handler(BaseHTTPRequestHandler):
    """One question: proved, answered, and proved again."""

    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer a question."""
        server = self.server
        assert isinstance(server, Agent)  # noqa: S101 - it made this handler
        token = server.token
        said = _PROOF.fullmatch(self.headers.get(HEADER, ""))
        expected = proof(token, b"GET", self.path.encode(), said[1].encode()) if said else ""
        if said is None or not same(said[2], expected):
            self._send(HTTPStatus.UNAUTHORIZED, b"{}", "")
            return
        try:
            found = server.answer(self.path)
        except (LookupError, ValueError):
            found = None
        if found is None:
            self._send(HTTPStatus.NOT_FOUND, b"{}", "")
            return
        body = json.dumps(found, allow_nan=False).encode()
        self._send(HTTPStatus.OK, body, proof(token, said[1].encode(), body))

    def _send(self, status: HTTPStatus, body: bytes, proved: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if proved:
            self.send_header(HEADER, proved)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing: a question comes twice a second."""
