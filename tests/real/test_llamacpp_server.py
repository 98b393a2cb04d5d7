"""The documented command: a model of the same bytes everywhere, a server that starts and stops."""

import hashlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.server import SERVE, Server
from tests.support.shared import ROOT
from tokenwatt_site.documents.doors import load_spec

pytestmark = pytest.mark.real

TINY_MODEL = SERVE.with_name("tiny_model.py")


def made(path: Path) -> str:
    subprocess.run([sys.executable, TINY_MODEL, path], check=True, timeout=60)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_tiny_model_is_the_same_file_each_time(tmp_path: Path) -> None:
    assert made(tmp_path / "one.gguf") == made(tmp_path / "two.gguf")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["one.gguf", "two.gguf"]


def test_the_spec_fits_the_server(llama: Server) -> None:
    spec = load_spec(ROOT / "specs" / "llamacpp.spec.yaml")
    (served,) = json.loads(llama.get("/v1/models"))["data"]

    assert served["id"] == llama.model == spec.engine.model
    assert spec.model.vocab_size == served["meta"]["n_vocab"]


def test_a_file_that_is_no_model_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "not.gguf").write_text("not a model")

    ended = subprocess.run(
        [sys.executable, SERVE, "--gguf", "not.gguf", "--port", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 1
    assert "next: another --port" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_command_runs_while_the_server_answers_and_its_exit_code_is_kept(tmp_path: Path) -> None:
    ask = (
        "import sys, urllib.request as r;"
        "sys.exit(r.urlopen(sys.argv[1], timeout=10).status - 193)"  # 200 becomes 7
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    health = f"http://127.0.0.1:{port}/health"

    ended = subprocess.run(
        [sys.executable, SERVE, "--port", str(port), "--", sys.executable, "-c", ask, health],
        cwd=tmp_path,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 7
