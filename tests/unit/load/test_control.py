"""What the system really says of dead ports, other protocols and certificates, and our words."""

import gzip
import itertools
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from tests.unit.load.conftest import Certificates
from tokenwatt_site.errors import ServerError, UsageError
from tokenwatt_site.load.address import Address
from tokenwatt_site.load.control import Control

MODELS = b'HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{"data": [{"id": "tiny"}]}'


@contextmanager
def listening(greeting: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer every connection with the same bytes; yield the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                connection.recv(4096)
                connection.sendall(greeting)
            except OSError:
                pass
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def tls(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    return context


def refusal(endpoint: str, ca_file: str | None = None) -> ServerError:
    with (
        pytest.raises(ServerError) as refused,
        Control(Address.of(endpoint), {}, ca_file=ca_file) as control,
    ):
        control.models()
    return refused.value


def test_a_dead_port() -> None:
    assert "refused" in refusal("http://127.0.0.1:9/v1").what


def test_a_name_that_is_none() -> None:
    assert "nothing answers" in refusal("http://nowhere.invalid/v1").what


@pytest.mark.parametrize("host", ["a..b", "xn--0", "a" * 64])
def test_a_name_that_no_resolver_takes(host: str) -> None:
    refused = refusal(f"http://{host}/v1")
    assert host in refused.what
    assert refused.hint


def test_no_http() -> None:
    with listening(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        assert "no valid HTTP answer" in refusal(f"http://127.0.0.1:{port}/v1").what


def test_https_to_plain_http() -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        refused = refusal(f"https://127.0.0.1:{port}/v1")
    assert "speaks no TLS" in refused.what
    assert f"http://127.0.0.1:{port}/v1" in refused.hint


def test_an_authority_that_nobody_knows(certificates: Certificates) -> None:
    with listening(b"", tls(certificates)) as port:
        refused = refusal(f"https://localhost:{port}/v1")
    assert "can't be verified" in refused.what
    assert "engine.ca_file" in refused.hint


def test_a_certificate_of_another_host(certificates: Certificates) -> None:
    with listening(b"", tls(certificates)) as port:
        refused = refusal(f"https://127.0.0.1:{port}/v1", str(certificates.authority))
    assert "can't be verified" in refused.what
    assert "the name that the certificate is for" in refused.hint


def test_an_authority_of_our_own(certificates: Certificates) -> None:
    endpoint, ca_file = "https://localhost:{}/v1", str(certificates.authority)
    with (
        listening(MODELS, tls(certificates)) as port,
        Control(Address.of(endpoint.format(port)), {}, ca_file=ca_file) as control,
    ):
        assert control.models() == [{"id": "tiny"}]


@pytest.mark.parametrize(
    "text, what",
    [(None, "can't be read: No such file"), ("", "holds no certificate"), ("x", "no certificate")],
)
def test_a_file_that_holds_no_authority(tmp_path: Path, text: str | None, what: str) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=what) as refused:
        Control(Address.of("https://localhost/v1"), {}, ca_file=str(file))
    assert refused.value.hint
    with Control(Address.of("http://localhost/v1"), {}, ca_file=str(file)):
        pass


def test_a_list_of_models() -> None:
    with (
        listening(MODELS) as port,
        Control(Address.of(f"http://127.0.0.1:{port}/v1"), {}) as control,
    ):
        assert control.models() == [{"id": "tiny"}]


@pytest.mark.parametrize("charset", ["undefined", "hex", "utf-16", "no-such"])
def test_the_charset_that_a_server_names_is_not_asked(charset: str) -> None:
    kind = f"Content-Type: application/json; charset={charset}\r\nContent-Length".encode()
    with (
        listening(MODELS.replace(b"Content-Length", kind)) as port,
        Control(Address.of(f"http://127.0.0.1:{port}/v1"), {}) as control,
    ):
        assert control.models() == [{"id": "tiny"}]
        assert "tiny" in control.root_text("/metrics")


def test_an_answer_that_goes_on_and_on_is_none() -> None:
    pieces = (b" " * 1_000_000 for _ in range(20))
    long = httpx.MockTransport(lambda _: httpx.Response(200, content=pieces))
    with Control(Address.of("http://127.0.0.1:1/v1"), {}, long) as control:
        with pytest.raises(ServerError, match="longer than 4,000,000 bytes"):
            control.models()
        assert control.root_text("/metrics") == ""


def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr("tokenwatt_site.load.control.time", clock)
    slow = httpx.MockTransport(lambda _: httpx.Response(200, content=itertools.repeat(b" ", 99)))
    with (
        pytest.raises(ServerError, match="doesn't answer"),
        Control(Address.of("http://127.0.0.1:1/v1"), {}, slow) as control,
    ):
        control.models()
    assert clock.monotonic() < 20


def test_what_is_packed_is_not_unpacked() -> None:
    packed = gzip.compress(b'{"data": []}')
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    with listening(head.encode() + packed) as port:
        assert "it is compressed" in refusal(f"http://127.0.0.1:{port}/v1").what
