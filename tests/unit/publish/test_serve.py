import http.client
import socket
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tokenwatt_site.errors import UsageError
from tokenwatt_site.publish.build import Wanted
from tokenwatt_site.publish.output import Output
from tokenwatt_site.publish.render import CSP
from tokenwatt_site.publish.serve import Server, Told, content_type

SITE = {
    "index.html": b"<p>home",
    "404.html": b"<p>nothing here",
    "runs/x/index.html": b"<p>run",
    "runs/x/run.json": b"{}",
    "static/a.css": b"p{}",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A server over a site that a build made, with a secret beside it."""
    tmp_path = tmp_path_factory.mktemp("served")
    out = tmp_path / "site"
    output = Output(out)
    with output.claimed():
        output.swap(output.stage((PurePosixPath(name), data) for name, data in SITE.items()))
    (tmp_path / "secret.txt").write_text("secret")
    (out / "unlisted.txt").write_text("secret")
    (out / "link.txt").symlink_to(tmp_path / "secret.txt")
    server = Server(Wanted(tmp_path, out, "2026-11-30"), Told(print, print, print))
    server.site.refresh()
    with server.listening(0) as url:
        host, port = url.removeprefix("http://").rstrip("/").split(":")
        yield host, int(port)


def ask(
    address: tuple[str, int], path: str, method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"{address[0]}:{address[1]}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.headers.items()), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path,body,kind",
    [
        ("/", b"<p>home", "text/html; charset=utf-8"),
        ("/index.html", b"<p>home", "text/html; charset=utf-8"),
        ("/runs/x/", b"<p>run", "text/html; charset=utf-8"),
        ("/runs/x/?a=1", b"<p>run", "text/html; charset=utf-8"),
        ("/runs/%78/run.json", b"{}", "application/json"),
        ("/static/a.css", b"p{}", "text/css; charset=utf-8"),
    ],
)
def test_files_with_their_type(address: tuple[str, int], path: str, body: bytes, kind: str) -> None:
    status, headers, data = ask(address, path)
    assert (status, headers["Content-Type"], data) == (200, kind, body)


def test_the_policy_is_the_pages_own_and_nothing_frames_it(address: tuple[str, int]) -> None:
    _, headers, _ = ask(address, "/")
    assert headers["Content-Security-Policy"] == f"{CSP}; frame-ancestors 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_head_has_no_body(address: tuple[str, int]) -> None:
    status, headers, data = ask(address, "/", "HEAD")
    assert (status, headers["Content-Length"], data) == (200, "7", b"")


def test_a_page_without_its_slash_is_where_it_is(address: tuple[str, int]) -> None:
    status, headers, _ = ask(address, "/runs/x")
    assert (status, headers["Location"]) == (301, "/runs/x/")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/runs/../../secret.txt",
        "//secret.txt",
        "/static/..%5c..%5csecret.txt",
        "/unlisted.txt",
        "/link.txt",
        "/index.html%00",
        "/runs",
    ],
)
def test_anything_else_is_not_found(address: tuple[str, int], path: str) -> None:
    status, headers, data = ask(address, path)
    assert (status, data) == (404, b"<p>nothing here")
    assert headers["Content-Type"] == "text/html; charset=utf-8"


def test_another_sites_name_is_refused(address: tuple[str, int]) -> None:
    status, _, data = ask(address, "/", host="evil.example")
    assert status == 421
    assert b"home" not in data


def test_localhost_is_this_machine(address: tuple[str, int]) -> None:
    assert ask(address, "/", host=f"localhost:{address[1]}")[0] == 200
    assert ask(address, "/", host="localhost")[0] == 200


def test_other_methods_are_refused(address: tuple[str, int]) -> None:
    assert ask(address, "/", "DELETE")[0] == 501


def test_it_listens_on_this_machine_only(address: tuple[str, int]) -> None:
    assert address[0] == "127.0.0.1"


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    server = Server(Wanted(tmp_path, tmp_path, "2026-11-30"), Told(print, print, print))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port}"), server.listening(port):
            pass


def test_an_unknown_type_is_for_saving() -> None:
    assert content_type("a.exe") == "application/octet-stream"
