"""A site on 127.0.0.1 while its content is written: built, served, built again when it changes."""

import contextlib
import http.server
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from tokenwatt_site import __version__
from tokenwatt_site.errors import TokenwattError, UsageError
from tokenwatt_site.publish.build import Built, Wanted, build_tree
from tokenwatt_site.publish.output import MANIFEST, read_manifest
from tokenwatt_site.publish.render import CSP
from tokenwatt_site.publish.tree import read_tree

HOST = "127.0.0.1"
_NAMES = ("127.0.0.1", "localhost")
_TYPES = {
    "bib": "text/plain; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "gz": "application/gzip",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "xml": "application/xml",
    "yaml": "application/yaml",
}
_HEADERS = {
    "Content-Security-Policy": f"{CSP}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@dataclass(slots=True)
class Site:
    """The files that are served: those that a build made, and no others."""

    root: Path
    names: frozenset[str] = frozenset()
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while one build takes another's place."""

    def refresh(self) -> None:
        """Take the names of the site that is there now."""
        manifest = read_manifest(self.root)
        self.names = frozenset() if manifest is None else frozenset({*manifest, MANIFEST})

    def find(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Return status, file name and bytes for the path of an address.

        A path is looked up among the names, never opened as it came. A page without its final
        slash is answered by where it is.
        """
        name = path.removeprefix("/")
        if path.endswith("/") or not name:
            name += "index.html"
        with self.lock:
            if name in self.names:
                return HTTPStatus.OK, name, (self.root / name).read_bytes()
            if f"{name}/index.html" in self.names:
                return HTTPStatus.MOVED_PERMANENTLY, f"/{name}/", b""
            if "404.html" in self.names:
                return HTTPStatus.NOT_FOUND, "404.html", (self.root / "404.html").read_bytes()
        return HTTPStatus.NOT_FOUND, "none.txt", b"not found\n"


def content_type(name: str) -> str:
    """Return the type of a file by its name; unknown ones are only for saving."""
    return _TYPES.get(name.rpartition(".")[2], "application/octet-stream")


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD from a `Site`."""

    server_version = f"tokenwatt-site/{__version__}"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(self, site: Site, *args: Any) -> None:
        self._site = site
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer with a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the head of a file."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in _NAMES:  # another site's name that was pointed at this machine
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        status, name, data = self._site.find(unquote(urlsplit(self.path).path))
        headers: Mapping[str, str] = {"Content-Type": content_type(name), **_HEADERS}
        if status == HTTPStatus.MOVED_PERMANENTLY:
            headers = {"Location": quote(name)}
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Requests aren't logged."""


class _Listener(http.server.ThreadingHTTPServer):
    """Serves until told otherwise; a reader that goes away is nothing to tell."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is called while a site is served."""

    started: Callable[[str], None]
    """With the address."""
    built: Callable[[Built], None]
    failed: Callable[[TokenwattError], None]
    """A build failed; the one before it is still served."""


class Server:
    """A site that is served and kept up with its content."""

    def __init__(self, wanted: Wanted, told: Told) -> None:
        self._wanted = wanted
        self._told = told
        self._digest = ""
        self.site = Site(wanted.out)

    def rebuild(self) -> bool:
        """Build if the content isn't what was built last; return whether it was tried."""
        try:
            tree = read_tree(self._wanted.content)
            digest = tree.digest()
            if digest == self._digest:
                return False
            self._digest = digest
            built = build_tree(tree, self._wanted, self.site.lock)
            self.site.refresh()
            self._told.built(built)
        except TokenwattError as error:
            self._told.failed(error)
        return True

    @contextlib.contextmanager
    def listening(self, port: int) -> Generator[str]:
        """Serve in the background; yield the address.

        Raises:
            UsageError: the port can't be had.
        """
        site = self.site

        def handler(*args: Any) -> _Handler:
            return _Handler(site, *args)

        try:
            server = _Listener((HOST, port), handler)
        except OSError as error:
            raise UsageError(
                f"port {port}: {error.strerror or error}", "choose another --port; 0 takes any"
            ) from None
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def serve(wanted: Wanted, port: int, told: Told, poll_s: float = 0.5) -> None:
    """Build and serve until interrupted; the site's own output folder isn't touched.

    Args:
        wanted: what to build; its ``out`` is left alone, a folder of this process is used.
        port: the port on 127.0.0.1; 0 takes any that is free.
        told: what is called meanwhile.
        poll_s: seconds between two looks at the content.

    Raises:
        UsageError: the port can't be had, or there is no content folder.
    """
    read_tree(wanted.content)
    with tempfile.TemporaryDirectory(prefix="tokenwatt-serve-") as folder:
        server = Server(replace(wanted, out=Path(folder) / "site"), told)
        with server.listening(port) as url:
            server.rebuild()
            told.started(url)
            while True:
                time.sleep(poll_s)
                server.rebuild()
