import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.demo_run import as_bytes, config, demo_document
from tests.support.shared import shared_path
from tokenwatt_site.cli import cli
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.errors import DocumentError, TokenwattError, UsageError
from tokenwatt_site.method.join import Wishes
from tokenwatt_site.publish.report import report

DATA = b"rows of the run"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(name: str, key: str = "baseline", data: bytes = DATA, **changes: Any) -> Path:
    """Write a run as measure does: document and evidence beside it, the file with a torn tail."""
    path = Path("runs") / f"{name}.json"
    evidence = Path("runs") / name / "requests.jsonl.gz"
    evidence.parent.mkdir(parents=True)
    evidence.write_bytes(data + b" and a torn tail")
    listed = {
        "path": f"{name}/requests.jsonl.gz",
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
    }
    document = demo_document(configs=[config(key)], evidence=[listed], run_id=None) | changes
    del document["run_id"]
    path.write_bytes(as_bytes(document))
    return path


def test_one_run_with_its_evidence() -> None:
    done = report((measured("mine"),), Wishes(), None, force=False)
    assert done.out == Path("sim-llama-70b-h200x4-bf16kv.json")
    run, _ = load_run(done.out)
    assert run.evidence is not None
    path = run.evidence[0].path
    assert path == "sim-llama-70b-h200x4-bf16kv/evidence/baseline/requests.jsonl.gz"
    assert Path(path).read_bytes() == DATA


def test_into_content_where_there_is_one() -> None:
    Path("content").mkdir()
    done = report((measured("mine"),), Wishes(id="my-id"), None, force=False)
    assert done.out == Path("content/runs/my-id.json")
    assert load_run(done.out)[0].id == "my-id"


def test_the_files_name_is_the_id_where_none_is_given() -> None:
    assert report((measured("mine"),), Wishes(), Path("a/my-run.json"), force=False).run.id == (
        "my-run"
    )
    done = report((Path("runs/mine.json"),), Wishes(), Path("My run.json"), force=False)
    assert done.run.id == "sim-llama-70b-h200x4-bf16kv"


def test_two_runs_each_with_its_evidence() -> None:
    paths = (measured("fast", "candidate", b"other rows"), measured("base"))
    run, _ = load_run(report(paths, Wishes(id="ab"), None, force=False).out)
    assert [each.key for each in run.configs] == ["baseline", "candidate"]
    assert run.configs[1].evidence is not None
    assert [e.path for e in run.configs[1].evidence] == ["ab/evidence/candidate/requests.jsonl.gz"]
    assert Path("ab/evidence/candidate/requests.jsonl.gz").read_bytes() == b"other rows"
    assert Path("ab/evidence/baseline/requests.jsonl.gz").read_bytes() == DATA
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in reversed(paths)]
    assert [each.source_sha256 for each in run.configs] == hashes


def test_the_seeds_own_command_runs() -> None:
    seed = shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json").read_bytes()
    words = shlex.split(json.loads(seed)["reproduce"].split("\n\n")[1])
    Path("runs").mkdir()
    Path(words[2]).write_bytes(seed)
    result = CliRunner().invoke(cli, words[1:], catch_exceptions=False)
    assert result.exit_code == 0
    document = json.loads(Path("h200x4-deepseek-v4.1-flash-fp8-vllm.json").read_text())
    assert document["title"] == json.loads(seed)["title"]
    assert document["reproduce"] == json.loads(seed)["reproduce"]


def test_what_the_command_prints_for_machines() -> None:
    Path("content").mkdir()
    words = ["report", str(measured("mine")), "--fleet-cards", "8", "--json"]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert json.loads(result.stdout) == {
        "out": "content/runs/sim-llama-70b-h200x4-bf16kv.json",
        "id": "sim-llama-70b-h200x4-bf16kv",
        "status": "demo",
        "configs": ["baseline"],
        "evidence": 1,
    }
    run, _ = load_run(Path(json.loads(result.stdout)["out"]))
    assert run.fleet is not None
    assert run.fleet.cards == 8


def test_a_document_is_not_overwritten() -> None:
    path = measured("mine")
    out = Path("there.json")
    out.write_text("precious")
    with pytest.raises(UsageError, match=r"there\.json exists already"):
        report((path,), Wishes(), out, force=False)
    assert out.read_text() == "precious"
    report((path,), Wishes(), out, force=True)
    assert load_run(out)[0].status == "demo"


def test_a_run_is_never_its_own_report() -> None:
    path = measured("mine")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is one of the runs"):
        report((path,), Wishes(), path, force=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("out", ["x.yaml", "folder.json", "link.json"])
def test_an_output_is_a_json_file(out: str) -> None:
    Path("folder.json").mkdir()
    Path("link.json").symlink_to("elsewhere.json")
    with pytest.raises(UsageError, match=out.replace(".", r"\.")):
        report((measured("mine"),), Wishes(), Path(out), force=True)
    assert not Path("elsewhere.json").exists()


def test_replacing_leaves_no_old_evidence() -> None:
    report((measured("base"), measured("fast", "candidate")), Wishes(id="x"), None, force=False)
    report((Path("runs/base.json"),), Wishes(id="x"), None, force=True)
    assert [path.name for path in Path("x/evidence").iterdir()] == ["baseline"]


@pytest.mark.parametrize("run_id", ["", "A", "a b", "../up", "a--b", "-a", "x" * 101])
def test_an_id_is_a_slug(run_id: str) -> None:
    with pytest.raises(UsageError, match="isn't an id"):
        report((measured("mine"),), Wishes(id=run_id), None, force=False)


def test_a_run_named_twice() -> None:
    path = measured("mine")
    with pytest.raises(UsageError, match="named twice"):
        report((path, Path("runs/../runs/mine.json")), Wishes(), None, force=False)


def listed(path: str, data: bytes = b"secret") -> list[dict[str, Any]]:
    return [{"path": path, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}]


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "mine/../../secret", ".", "link"])
def test_evidence_never_leads_out_of_its_folder(folder: Path, path: str) -> None:
    (folder / "secret").write_bytes(b"secret")
    run = measured("mine", evidence=listed(path))
    Path("runs/link").symlink_to(folder / "secret")
    with pytest.raises(DocumentError, match="leads out of the document's folder"):
        report((run,), Wishes(), None, force=False)
    assert not Path("sim-llama-70b-h200x4-bf16kv.json").exists()


def test_evidence_that_is_gone_or_changed() -> None:
    path = measured("mine")
    evidence = Path("runs/mine/requests.jsonl.gz")
    evidence.write_bytes(b"tampered rows of the run")
    with pytest.raises(DocumentError, match="its hash differs"):
        report((path,), Wishes(), None, force=False)
    evidence.unlink()
    with pytest.raises(DocumentError, match="isn't there"):
        report((path,), Wishes(), None, force=False)


def test_an_output_that_cannot_be_written() -> None:
    path = measured("mine")
    Path("file").write_text("x")
    with pytest.raises(TokenwattError, match="file"):
        report((path,), Wishes(), Path("file/x.json"), force=False)


def test_a_run_cut_in_half() -> None:
    path = measured("mine")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DocumentError, match=r"runs/mine\.json:\d+:\d+: not JSON"):
        report((path,), Wishes(), None, force=False)
