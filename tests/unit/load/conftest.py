"""What the tests of the client share."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.shared import require


@dataclass(frozen=True)
class Certificates:
    """An authority of our own, and what a server of its world shows."""

    authority: Path
    """Its certificate."""
    server: Path
    """Key and certificate of the host localhost, signed by the authority."""


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("tls")
    authority, key, server = (folder / name for name in ("ca.pem", "ca.key", "server.pem"))
    _request("authority", key, authority, "-addext", "keyUsage=critical,keyCertSign")
    signed = ("-CA", str(authority), "-CAkey", str(key))
    _request("localhost", server, server, *signed, "-addext", "subjectAltName=DNS:localhost")
    return Certificates(authority, server)


def _request(name: str, key: Path, certificate: Path, *more: str) -> None:
    """Make a key and a certificate of two days."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    files = ("-keyout", str(key), "-out", str(certificate))
    subject = ("-nodes", "-days", "2", "-subj", f"/CN={name}")
    command = [require("openssl"), "req", "-x509", *curve, *subject, *files, *more]
    subprocess.run(command, check=True, capture_output=True)
