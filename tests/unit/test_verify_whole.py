"""What may not be left unchecked: a configuration of several, the words of a published document."""

import copy
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.virtual_loop import run_virtual
from tests.support.virtual_run import VirtualRun, spec_of
from tokenwatt_site import restore
from tokenwatt_site.cli.report import report
from tokenwatt_site.cli.verify import verify as command
from tokenwatt_site.documents import jsonfile
from tokenwatt_site.errors import FindingsError
from tokenwatt_site.method import rebuild, replay
from tokenwatt_site.verify import verify

SPEC = spec_of(sweep={"rates": [60]}, measurement={"repeats": 1})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the document of a run of one window."""
    out = tmp_path_factory.mktemp("measured") / "runs" / "a.json"
    run_virtual(VirtualRun(out, SPEC).measure())
    return out


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured.parent, tmp_path / "runs")
    return tmp_path / "runs" / measured.name


def write(path: Path, data: Any) -> None:
    path.write_text(jsonfile.dumps(data), encoding="utf-8")


def names(named: list[dict[str, Any]], document: Path) -> None:
    """Give the evidence the hashes and lengths that it has."""
    for each in named:
        found = (document.parent / each["path"]).read_bytes()
        each |= {"bytes": len(found), "sha256": hashlib.sha256(found).hexdigest()}


def joined(measured: Path, folder: Path) -> Path:
    """Return a document that ``report`` made of the run and a candidate."""
    shutil.copytree(measured.parent, folder / "runs")
    candidate = VirtualRun(folder / "runs" / "b.json", SPEC, role="candidate")
    run_virtual(candidate.measure())
    paths = [str(folder / "runs" / name) for name in ("a.json", "b.json")]
    out = folder / "both.json"
    asked = [*paths, "--out", str(out), "--title", "Both", "--fleet-cards", "64"]
    done = CliRunner().invoke(report, asked)
    assert done.exit_code == 0, done.output
    return out


def test_a_joined_document_is_verified_from_each_run_s_evidence(
    measured: Path, tmp_path: Path
) -> None:
    both = joined(measured, tmp_path)
    result = verify(both)
    assert result.mismatches == []
    assert result.holds()
    assert result.values > 1800
    assert ("/title", "an author may have written it") in result.not_recomputed

    data = jsonfile.load(both)
    for edit in (hash_of_source, figure_of_candidate):
        spoiled = copy.deepcopy(data)
        place = edit(spoiled)
        both.write_text(jsonfile.dumps(spoiled), encoding="utf-8")
        assert [each.place for each in verify(both).mismatches] == [place]

    both.write_text(jsonfile.dumps(data), encoding="utf-8")
    shutil.rmtree(tmp_path / "both" / "evidence" / "baseline")
    result = verify(both)
    assert not result.holds()  # the baseline's evidence is named and gone
    assert result.values > 800  # the candidate is recomputed all the same


def hash_of_source(data: Any) -> str:
    data["configs"][1]["source_sha256"] = "0" * 64
    return "/configs/1/source_sha256"


def figure_of_candidate(data: Any) -> str:
    data["configs"][1]["goodput_tok_s"] += 1e-9
    return "/configs/1/goodput_tok_s"


def unnamed(data: Any, _: Path) -> None:
    del data["configs"][1]["evidence"]


def junk(data: Any, document: Path) -> None:
    named = data["configs"][1]["evidence"]
    events = next(each for each in named if each["path"].endswith("events.jsonl"))
    (document.parent / events["path"]).write_text('{"event":"junk"}\n', encoding="utf-8")
    names(named, document)


@pytest.mark.parametrize("edit", [unnamed, junk])
def test_a_configuration_that_cannot_be_recomputed_is_no_document_that_holds(
    measured: Path, tmp_path: Path, edit: Callable[[Any, Path], None]
) -> None:
    both = joined(measured, tmp_path)
    data = jsonfile.load(both)
    edit(data, both)
    data["configs"][1]["goodput_tok_s"] *= 2
    write(both, data)
    result = verify(both)
    assert result.mismatches == []
    assert "/configs/1" in [place for place, _ in result.not_recomputed]
    assert not result.holds()
    done = CliRunner().invoke(command, [str(both)])
    assert isinstance(done.exception, FindingsError)
    assert "all hold, but not every configuration could be recomputed" in done.output


@pytest.mark.parametrize("status", ["published", "imported"])
def test_what_was_simulated_is_never_published_as_measured(run: Path, status: str) -> None:
    data = jsonfile.load(run)
    assert data["status"] == "demo"
    data["status"] = status
    write(run, data)
    result = verify(run)
    assert [(each.place, each.recomputed) for each in result.mismatches] == [("/status", "demo")]
    assert not result.holds()


def test_words_that_the_measurement_did_not_write_are_shown(run: Path) -> None:
    data = jsonfile.load(run)
    own = data["summary"]
    data |= {"status": "superseded", "summary": "Twice the goodput, 9,999 tokens per second."}
    write(run, data)
    result = verify(run)
    assert result.holds()
    (note,) = result.notes
    assert "/summary IS NOT WHAT THE MEASUREMENT WROTE" in note
    assert "9,999 tokens" in note
    assert json.dumps(own, ensure_ascii=False) in note
    keys = [place for place, _ in result.not_recomputed]
    assert keys == ["/status", "/summary"]


def bomb(run: Path, name: str, rows: bytes) -> None:
    """Let a file of evidence go on with so many rows, its hash and length being right."""
    path = run.with_suffix("") / name
    path.write_bytes(path.read_bytes() + gzip.compress(rows))
    data = jsonfile.load(run)
    names(data["evidence"], run)
    write(run, data)


def test_rows_that_the_load_does_not_have_are_not_read(run: Path) -> None:
    """Every one of them would be kept in memory, for a window of a dozen requests."""
    rows = gzip.decompress((run.with_suffix("") / "requests.jsonl.gz").read_bytes()).splitlines()
    bomb(run, "requests.jsonl.gz", (rows[-1] + b"\n") * 1000)
    found = [each for each in verify(run).mismatches if each.place.startswith("requests")]
    counted = int(found[0].published.removesuffix(" requests"))
    assert found[0].recomputed == f"at most {counted - 1}"
    assert len(rows) < counted < len(rows) + 1000


def test_a_file_that_is_packed_to_fill_memory_is_not_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "_SMALL", 50_000)
    assert verify(run).holds()
    bomb(run, "power.jsonl.gz", b'{"w":-2}\n' * 100_000)  # as the last rows
    ((_, why),) = verify(run).not_recomputed
    assert "the file holds more than 100 times its size" in why


def test_more_readings_than_any_meter_gives_are_not_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "MOST_READINGS", 5)
    ((_, why),) = verify(run).not_recomputed
    assert "window -1: more than 5 readings" in why


def test_a_trace_in_evidence_has_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_REQUESTS", 1)
    row = {"t_s": 0, "input_tokens": 1, "output_tokens": 1}
    with pytest.raises(ValueError, match="more than 1 requests"):
        replay.trace_of_rows([{"name": "t"}, row, row])
