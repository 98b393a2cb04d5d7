"""What the tests of the client share."""

import subprocess
from pathlib import Path

import pytest

from tests.support.shared import require


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost, signed by itself, and its key in one file."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [
        *(
            require("openssl"),
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ),
        *(
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ),
        *("-keyout", str(file), "-out", str(file)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return file
