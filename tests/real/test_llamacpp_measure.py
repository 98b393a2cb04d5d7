"""From a spec to a validated document, by README's command, against llama.cpp's own server."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.real.server import SERVE, Server
from tests.support.shared import ROOT
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Run

pytestmark = pytest.mark.real

KEY = "sk-" + "0123456789abcdef" * 2
# What the preflight asks for: one answer, and two more where it measures words.
PROBED_OUTPUT = {"completions": 16, "chat": 3 * 16}
PROBED_IDS = 32
LOCAL_PATH = re.compile(r"(?<![\w.:/])/(?:root|home|Users|tmp|work|var|builds)/")


@dataclass(frozen=True)
class Measurement:
    """A finished run of the program, and what the server counted meanwhile."""

    code: int
    printed: str
    folder: Path
    run: Run
    document: dict[str, Any]
    requests: list[dict[str, Any]]
    counted: dict[str, float]
    """By how much the server's counters rose, the preflight's own requests included."""

    def files(self) -> dict[str, str]:
        """Return every file of the run as text, by name."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return {path.name: text_of(path) for path in paths}

    def by_outcome(self, outcome: str) -> list[dict[str, Any]]:
        """Return the requests of the evidence that ended so."""
        return [row for row in self.requests if row["outcome"] == outcome]


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def write_spec(llama: Server, folder: Path, **engine: Any) -> None:
    """Write specs/llamacpp.spec.yaml anew for this server: one rate, 100 requests, wide limits.

    The limits are wide since this is no machine to measure on: it may be busy with anything.
    """
    spec = YAML(typ="safe").load(ROOT / "specs" / "llamacpp.spec.yaml")
    spec["engine"] |= {"endpoint": llama.url, "api_key_env": "TOKENWATT_TEST_KEY", **engine}
    spec["slo"] = {"ttft_p99_ms": 20_000, "tpot_p99_ms": 2_000}
    spec["measurement"] |= {"warmup_s": 1, "window_s": 1.3, "repeats": 1}  # 10 x 1.3 s at 10/s
    spec["sweep"] = {"strategy": "ladder", "rates": [10]}
    if spec["engine"]["api"] == "chat":
        spec["model"]["vocab_size"] = None
    path = folder / "specs" / "llamacpp.spec.yaml"
    path.parent.mkdir()
    with path.open("w") as file:
        YAML(typ="safe").dump(spec, file)


def typed() -> tuple[list[str], list[str]]:
    """Return what README starts for a real server: the server, and the command that measures it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    after = readme.partition("**Measure a real server.**")[2].partition("```sh\n")[2]
    words = shlex.split(after.partition("```")[0].replace("\\\n", ""))
    split = words.index("--")
    return words[:split], words[split + 1 :]


def program(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run README's command in a folder that has a spec at the same place."""
    _, (_, *arguments) = typed()
    return subprocess.run(
        [sys.executable, "-m", "tokenwatt_site", *arguments, "--json"],
        cwd=folder,
        env=os.environ | {"TOKENWATT_TEST_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def measured(llama: Server, folder: Path, **engine: Any) -> Measurement:
    write_spec(llama, folder, **engine)
    before = llama.idle_counters()
    ended = program(folder)
    after = llama.idle_counters()
    runs = folder / "runs"
    assert runs.is_dir(), ended.stderr
    (path,) = runs.glob("*.json")
    run, raw = load_run(path)
    return Measurement(
        code=ended.returncode,
        printed=ended.stdout + ended.stderr,
        folder=runs,
        run=run,
        document=json.loads(raw),
        requests=list(map(json.loads, text_of(next(runs.rglob("requests*"))).splitlines())),
        counted={name: after[name] - value for name, value in before.items()},
    )


@pytest.fixture(scope="module")
def by_ids(llama: Server, tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return measured(llama, tmp_path_factory.mktemp("ids"))


@pytest.fixture(scope="module")
def by_chat(llama: Server, tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return measured(llama, tmp_path_factory.mktemp("chat"), api="chat")


@pytest.fixture(params=["by_ids", "by_chat"])
def done(request: pytest.FixtureRequest) -> Measurement:
    found: Measurement = request.getfixturevalue(request.param)
    return found


def test_readme_starts_the_server_that_is_measured_here() -> None:
    server, (name, command, spec, *_) = typed()

    assert server == ["python", str(SERVE.relative_to(ROOT))]
    assert (name, command) == ("tokenwatt-site", "measure")
    assert spec == "specs/llamacpp.spec.yaml"


def test_the_rate_is_confirmed_and_the_program_exits_with_0(done: Measurement) -> None:
    assert done.document["verdict"]["word"] == "met", done.document["verdict"]["text"]
    assert done.document["configs"][0]["rate_rps"] == 10
    assert done.code == 0


def test_no_request_of_the_window_is_lost(done: Measurement) -> None:
    counts = done.document["configs"][0]["counts"]

    assert counts["ok"] == counts["sent"] >= 100
    assert counts["failed"] == counts["unfinished"] == 0


def test_tokens_are_those_that_the_server_counted(done: Measurement) -> None:
    answered, cut = done.by_outcome("ok"), done.by_outcome("running")
    usage = sum(row["n"] for row in answered) + PROBED_OUTPUT[done.run.spec.engine.api]
    seen = sum(len(row["dt_us"]) for row in cut)

    assert {(row["n"], row["out"], row["source"]) for row in answered} == {(32, 32, "usage")}
    # Answers are cut off at the end of a window, and the server goes on until it notices.
    assert usage + seen <= done.counted["tokens_predicted_total"] <= usage + 32 * len(cut)


def test_prompts_are_those_that_the_server_counted(by_ids: Measurement) -> None:
    answered, cut = by_ids.by_outcome("ok"), by_ids.by_outcome("running")
    usage = sum(row["prompt"] for row in answered) + PROBED_IDS

    assert usage <= by_ids.counted["prompt_tokens_total"] <= usage + 64 * len(cut)


def test_latencies_follow_from_one_another(done: Measurement) -> None:
    config = done.document["configs"][0]

    assert 0 < config["ttft_ms"]["p50"] <= config["ttft_ms"]["p99"] < config["e2e_ms"]["p99"]
    assert 0 < config["tpot_ms"]["p50"] <= config["tpot_ms"]["p99"]


def test_power_is_null_and_the_document_says_why(done: Measurement) -> None:
    config = done.document["configs"][0]

    assert config["node_power_kw"] is None
    assert "meter" in done.document["missing"]["/configs/0/node_power_kw"]["text"]
    assert "energy" not in config
    assert done.document["power"]["kind"] == "none"
    assert any("Power" in line for line in done.document["not_covered"])


def test_neither_the_key_nor_a_path_of_this_machine_is_kept(done: Measurement) -> None:
    kept = done.files() | {"printed": done.printed}

    assert {"requests.jsonl.gz", "schedule.jsonl", "events.jsonl"} < kept.keys()
    for name, text in kept.items():
        assert KEY not in text, name
        assert not LOCAL_PATH.search(text), name


def test_evidence_is_listed_as_it_lies_there(done: Measurement) -> None:
    listed = {entry["path"]: entry["bytes"] for entry in done.document["evidence"]}

    assert listed
    assert listed == {path: (done.folder / path).stat().st_size for path in listed}


def test_ids_are_sent_where_the_server_takes_them(by_ids: Measurement) -> None:
    assert {row["prompt"] for row in by_ids.by_outcome("ok")} == {64}


def test_chat_sends_text_and_says_so(by_chat: Measurement) -> None:
    counted = [row["prompt"] for row in by_chat.by_outcome("ok")]

    assert sum(counted) / len(counted) == pytest.approx(64, rel=0.1)
    assert "prompts are text" in by_chat.printed
    assert "prompts are text" in by_chat.document["summary"]


def test_a_model_that_the_server_lacks_is_refused_though_it_would_answer(
    llama: Server, tmp_path: Path
) -> None:
    body = json.dumps({"model": "no-such-model", "prompt": "Hello", "max_tokens": 1}).encode()
    request = urllib.request.Request(  # noqa: S310 - a server of our own
        f"{llama.url}/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        assert answer.status == 200

    write_spec(llama, tmp_path, model="no-such-model")
    ended = program(tmp_path)

    assert ended.returncode == 1
    assert "no model 'no-such-model'; it has: tiny-qwen2" in ended.stderr
    assert "next: set engine.model to 'tiny-qwen2'" in ended.stderr
    assert "Traceback" not in ended.stderr
