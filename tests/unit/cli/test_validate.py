import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.shared import shared_path
from tests.support.sound_run import SOUND, spoiled
from tokenwatt_site.cli.validate import validate
from tokenwatt_site.errors import DocumentError, FindingsError, UsageError


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")  # 2026-11-30


def write(folder: Path, name: str, document: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(validate, [str(arg) for arg in args])


def test_a_sound_document_has_no_findings(tmp_path: Path) -> None:
    done = run(write(tmp_path, "sound.json", SOUND), "--strict")
    assert done.exception is None
    assert done.output.splitlines()[0].endswith("sound.json: no errors, no warnings")
    assert "not applicable: MBU_IMPOSSIBLE (needs memory bandwidth utilisation)" in done.output


def test_findings_are_printed_with_their_place_and_the_next_step(tmp_path: Path) -> None:
    done = run(write(tmp_path, "run.json", spoiled(spec__sweep={}, quick=True)))
    assert done.exception is None
    assert "run.json: 1 error, 1 warning\n" in done.output
    assert "  error QUICK_PUBLISHED /status\n    Published" in done.output
    assert "    next: measure with full windows" in done.output


def test_strict_allows_no_finding(tmp_path: Path) -> None:
    done = run(write(tmp_path, "run.json", spoiled(spec__sweep={})), "--strict")
    assert isinstance(done.exception, FindingsError)
    assert done.exception.exit_code == 3
    assert str(done.exception).startswith("1 finding, and")


def test_a_document_that_breaks_the_schema_fails_by_file_and_pointer(tmp_path: Path) -> None:
    broken = write(tmp_path, "broken.json", spoiled(runs=-1, published="soon"))
    done = run(broken, write(tmp_path, "sound.json", SOUND))
    assert isinstance(done.exception, DocumentError)
    assert done.exception.exit_code == 1
    assert "1 of 2 files" in str(done.exception)
    assert f"{broken}: /runs: " in done.output
    assert f"{broken}: /published: " in done.output
    assert "sound.json: no errors" in done.output


@pytest.mark.parametrize("text", ["", '{"id": "x"', '{"id": NaN}'])
def test_what_is_no_json_names_its_file_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "half.json"
    path.write_text(text, encoding="utf-8")
    done = run(path, "--strict")
    assert isinstance(done.exception, DocumentError)
    assert done.output.count("half.json") == 1


def test_something_else_than_an_object_is_told_at_the_top(tmp_path: Path) -> None:
    done = run(write(tmp_path, "list.json", []))
    assert isinstance(done.exception, DocumentError)
    assert done.output.startswith(f"{tmp_path / 'list.json'}: ")


def test_json_has_a_line_for_each_file(tmp_path: Path) -> None:
    files = [
        write(tmp_path, "a.json", spoiled(spec__sweep={})),
        write(tmp_path, "b.json", {"id": "b"}),
    ]
    lines = [json.loads(line) for line in run(*files, "--json").output.splitlines()[:2]]
    assert [line["file"] for line in lines] == [str(file) for file in files]
    first = lines[0]["findings"][0]
    assert (first["code"], first["pointer"]) == ("LADDER_POLICY", "/spec/sweep")
    assert {"code": "MBU_HIGH", "needs": "memory bandwidth utilisation"} in lines[0][
        "not_applicable"
    ]
    assert {"pointer": "/title", "text": "this key is required"} in lines[1]["faults"]


def test_the_published_seed_is_valid_with_its_findings() -> None:
    done = run(shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json"))
    assert done.exception is None
    assert ": 4 errors, 11 warnings\n" in done.output


def test_a_code_is_explained_without_a_file() -> None:
    done = run("--explain", "counts")
    assert done.output.startswith("COUNTS (error)\nSent = ok + failed + unfinished")
    assert "\nnext: " in done.output


@pytest.mark.parametrize(
    "code, says", [("COUNT", "did you mean COUNTS?"), ("?", "codes: PRIVATE_PATH, ")]
)
def test_an_unknown_code_names_the_known_ones(code: str, says: str) -> None:
    error = run("--explain", code).exception
    assert isinstance(error, UsageError)
    assert says in str(error)


def test_no_file_is_a_usage_error() -> None:
    assert isinstance(run().exception, UsageError)
