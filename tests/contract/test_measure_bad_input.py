"""What can go wrong around a measurement: one clear message each, the next step, the exit code.

Real child processes, a real embedded engine and real signals.
"""

import gzip
import hashlib
import http.server
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import events, run, started, write_spec
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import SimulatorOptions
from tokenwatt_site.simulator.child import Child


def hands_on(text: str) -> bool:
    """Tell whether a message has a next step and no traceback."""
    return "\n  next: " in text and "Traceback" not in text


def at(url: str, **engine: Any) -> dict[str, Any]:
    return {"endpoint": url, "simulator": None} | engine


def test_a_dead_port(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml", engine=at("http://127.0.0.1:9/v1"))
    code, said = run("measure", "s.yaml", cwd=tmp_path)
    assert code == 1
    assert "nothing answers at http://127.0.0.1:9/v1" in said
    assert hands_on(said)


def test_a_wrong_model_name(tmp_path: Path) -> None:
    with Child(SimulatorOptions()) as engine:
        write_spec(tmp_path / "s.yaml", engine=at(engine.url, model="other"))
        code, said = run("measure", "s.yaml", cwd=tmp_path)
    assert code == 1
    assert "has no model 'other'; it has: simulated" in said
    assert hands_on(said)


def test_a_key_that_is_refused_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENWATT_SIMULATOR_API_KEY", "right-key")
    with Child(SimulatorOptions()) as engine:
        write_spec(tmp_path / "s.yaml", engine=at(engine.url, api_key_env="MY_KEY"))
        code, said = run("measure", "s.yaml", cwd=tmp_path, env={"MY_KEY": "wrong-key-value"})
    assert code == 1
    assert "401" in said
    assert hands_on(said)
    assert "wrong-key-value" not in said
    left = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert not any(b"wrong-key-value" in data for data in left)


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<!doctype html><title>router</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web_page() -> Iterator[str]:
    """Return the address of a server that is no OpenAI API."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_that_is_no_api(tmp_path: Path, web_page: str) -> None:
    write_spec(tmp_path / "s.yaml", engine=at(web_page))
    code, said = run("measure", "s.yaml", cwd=tmp_path)
    assert code == 1
    assert "OpenAI" in said
    assert hands_on(said)


def test_a_typo_in_the_spec(tmp_path: Path) -> None:
    path = write_spec(tmp_path / "s.yaml")
    path.write_text(path.read_text().replace("warmup_s", "warmpu_s"))
    code, said = run("measure", "s.yaml", cwd=tmp_path)
    assert code == 2
    assert "measurement.warmpu_s: unknown key; did you mean 'warmup_s'?" in said
    assert hands_on(said)


def test_an_output_that_exists(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml")
    (tmp_path / "mine.json").write_text("mine")
    code, said = run("measure", "s.yaml", "--out", "mine.json", cwd=tmp_path)
    assert code == 2
    assert "mine.json exists already" in said
    assert hands_on(said)
    assert (tmp_path / "mine.json").read_text() == "mine"


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml")
    (tmp_path / "file").write_text("")
    code, said = run("measure", "s.yaml", "--out", "file/run.json", cwd=tmp_path)
    assert code == 2
    assert hands_on(said)


def test_another_machine_is_asked_about(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml", engine=at("http://llm.invalid/v1"))
    code, said = run("measure", "s.yaml", cwd=tmp_path)
    assert code == 2
    assert "another machine" in said
    assert hands_on(said)


def whole(folder: Path, run_: Run) -> None:
    """Check that all the evidence that a document names is there, with its bytes."""
    assert run_.evidence
    for each in run_.evidence:
        data = (folder / each.path).read_bytes()[: each.bytes]
        assert hashlib.sha256(data).hexdigest() == each.sha256
        text = gzip.decompress(data) if each.path.endswith(".gz") else data
        assert text.endswith(b"\n")


def test_the_engine_dies_with_a_measurement_that_is_killed(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml")
    with started("measure", "s.yaml", "--json", cwd=tmp_path) as process:
        next(event for event in events(process) if event["event"] == "tick")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.wait()
    assert children
    for child in map(int, children):
        _wait_gone(child)


def _wait_gone(pid: int) -> None:
    """Wait until a process has ended, at most ten seconds; it is nobody's child any more."""
    waited = threading.Event()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]:
            return
        waited.wait(0.1)
    pytest.fail(f"the embedded engine {pid} outlives the measurement")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml")
    with started("measure", "s.yaml", "--json", "--out", "runs/a.json", cwd=tmp_path) as process:
        seen = False
        for event in events(process):
            seen = seen or event["event"] == "window"
            if seen and event["event"] == "tick":
                break
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted after 1 windows" in said
    assert "tokenwatt-site measure --resume runs/a.json" in said
    assert hands_on(said)
    found, _ = load_run(tmp_path / "runs/a.json")
    assert found.configs[0].repeats == 1
    whole(tmp_path / "runs", found)


def test_a_server_that_refuses_every_request_keeps_no_rate(tmp_path: Path) -> None:
    """The preflight's short prompts fit, those of the load don't: no request has a TTFT at all."""
    write_spec(
        tmp_path / "s.yaml",
        engine={"simulator": {"profile": "demo", "overrides": {"context_tokens": 64}}},
        workload={"input_tokens": {"fixed": 100}},
        sweep={"rates": None, "start_rps": 120, "max_backoffs": 1, "backoff": 0.9},
    )
    code, said = run("measure", "s.yaml", "--json", "--out", "a.json", cwd=tmp_path)
    done = json.loads(said.splitlines()[-1])
    found, _ = load_run(tmp_path / "a.json")
    assert (code, done["verdict"]) == (4, "no_rate")
    config = found.configs[0]
    assert (config.rate_rps, config.ttft_p99_ms, config.goodput_tok_s) == (None, None, None)
    assert found.missing is not None
    assert "/configs/0/goodput_tok_s" in found.missing
    assert config.sweep is not None
    for window in config.sweep:
        assert window.counts.failed == window.counts.sent > 100
        assert (window.ttft_p99_ms, window.goodput_tok_s) == (None, 0)
        assert window.counts.reasons == {"http_400": window.counts.sent}
