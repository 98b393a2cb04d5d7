"""The program, killed for real and gone on with; out of disk; out of descriptors."""

import json
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import COMMAND, environment, events, run, started, write_spec
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run
from tokenwatt_site.verify import verify

SHORT: dict[str, dict[str, Any]] = {
    "sweep": {"rates": [250]},
    "measurement": {"window_s": 1, "repeats": 2},
}
"""Two windows of 1.4 s and their pauses."""


def killed(arguments: list[str], folder: Path, *, after: int) -> None:
    """Kill the program -9 in the window behind ``after`` finished ones of this start."""
    with started("measure", *arguments, "--json", cwd=folder) as process:
        seen = 0
        for event in events(process):
            seen += event["event"] == "window"
            if seen == after and event["event"] == "tick":
                break
        process.kill()
        assert process.wait() == -signal.SIGKILL


def indices(run_: Run) -> list[int]:
    return [window.index for window in run_.configs[0].windows or ()]


def test_three_kills_and_a_run_to_the_end(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml", **SHORT)
    out = tmp_path / "runs" / "a.json"
    killed(["s.yaml", "--out", "runs/a.json", "--label", "mine"], tmp_path, after=0)
    assert indices(load_run(out)[0]) == []
    begun, _ = load_run(out)
    killed(["--resume", "runs/a.json"], tmp_path, after=1)
    draft, _ = load_run(out)
    assert indices(draft) == [0]
    assert draft.status == "demo"
    assert draft.configs[0].goodput_tok_s is not None
    assert draft.verdict is not None
    assert (draft.verdict.word, draft.verdict.code) == ("undecided", "UNFINISHED")
    killed(["s.yaml", "--resume", "runs/a.json"], tmp_path, after=0)
    assert indices(load_run(out)[0]) == [0]
    assert verify(out).mismatches == []

    code, said = run("measure", "--resume", "runs/a.json", "--json", cwd=tmp_path)
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["verdict"] == "met"
    whole, _ = load_run(out)
    assert indices(whole) == [0, 1]
    assert (whole.run_id, whole.started) == (begun.run_id, begun.started)
    assert whole.configs[0].label == "mine"
    assert len(whole.resumed or ()) == 3
    code, said = run("verify", "runs/a.json", cwd=tmp_path)
    assert (code, "all hold" in said) == (0, True), said

    before = out.read_bytes()
    code, said = run("measure", "--resume", "runs/a.json", cwd=tmp_path)
    assert (code, out.read_bytes()) == (0, before), said


def test_a_disk_that_is_full_ends_in_one_message_and_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not grow: the kernel refuses the write as it does on a full disk."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # its own file may not grow either
    write_spec(tmp_path / "s.yaml", **SHORT | {"measurement": {"window_s": 1, "repeats": 1}})
    done = subprocess.run(
        [*COMMAND, "measure", "s.yaml", "--out", "a.json"],
        cwd=tmp_path,
        env=environment(None),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000)),
    )
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stderr
    assert "measure --resume a.json" in done.stderr
    assert "Traceback" not in done.stderr
    left, _ = load_run(tmp_path / "a.json")
    assert left.verdict is not None
    assert (left.verdict.word, left.verdict.code) == ("undecided", "UNFINISHED")
    assert verify(tmp_path / "a.json").mismatches == []
    code, said = run("measure", "--resume", "a.json", cwd=tmp_path)
    assert code == 0, said
    assert verify(tmp_path / "a.json").holds()


def test_more_descriptors_than_are_allowed_are_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    write_spec(tmp_path / "s.yaml", measurement={"max_concurrency": 4096})
    done = subprocess.run(
        [*COMMAND, "measure", "s.yaml", "--out", "a.json"],
        cwd=tmp_path,
        env=environment(None),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)),
    )
    assert done.returncode == 2, done.stderr
    assert "max_concurrency 4096 needs" in done.stderr
    assert "this shell allows 1024" in done.stderr
    assert "lower it to 768" in done.stderr
    assert not (tmp_path / "a.json").exists()
