"""The files of a run: claimed, appended, replaced whole."""

import errno
import fcntl
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.errors import TokenwattError, UsageError
from tokenwatt_site.store import RunStore, replace


def begun(out: Path, *, force: bool = False) -> RunStore:
    store = RunStore(out, force=force)
    store.begin()
    return store


def test_evidence_names_length_and_hash_of_what_was_written(tmp_path: Path) -> None:
    store = begun(tmp_path / "a.json")
    store.append("requests.jsonl.gz", [{"i": 0}])
    store.append("requests.jsonl.gz", [{"i": 1}, {"i": 2}])
    store.append("schedule.jsonl", [{"w": 0}])
    for each in store.evidence():
        data = (tmp_path / each.path).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (each.bytes, each.sha256)
    rows = gzip.decompress((tmp_path / "a" / "requests.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(row)["i"] for row in rows] == [0, 1, 2]


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        begun(tmp_path / f"{name}.json").append("power.jsonl.gz", [{"t": 1.5}])
    first, second = (tmp_path / n / "power.jsonl.gz" for n in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_a_killed_append_leaves_the_named_bytes_whole(tmp_path: Path) -> None:
    store = begun(tmp_path / "a.json")
    store.append("requests.jsonl.gz", [{"i": 0}])
    named = store.evidence()[0]
    path = tmp_path / named.path
    path.write_bytes(path.read_bytes() + b"\x1f\x8b torn")
    whole = path.read_bytes()[: named.bytes]
    assert hashlib.sha256(whole).hexdigest() == named.sha256
    assert gzip.decompress(whole) == b'{"i":0}\n'


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        RunStore(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == "mine"


def test_evidence_alone_is_not_overwritten_either(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        RunStore(tmp_path / "a.json")


def test_force_replaces_document_and_evidence(tmp_path: Path) -> None:
    begun(tmp_path / "a.json").append("requests.jsonl.gz", [{"i": 0}])
    (tmp_path / "a.json").write_text("old")
    store = begun(tmp_path / "a.json", force=True)
    assert store.evidence() == []
    assert not (tmp_path / "a.json").exists()
    assert not (tmp_path / "a" / "requests.jsonl.gz").exists()


def test_nothing_is_removed_before_the_run_begins(tmp_path: Path) -> None:
    begun(tmp_path / "a.json").append("requests.jsonl.gz", [{"i": 0}])
    (tmp_path / "a.json").write_text("old")
    RunStore(tmp_path / "a.json", force=True)  # the server turns out to be dead
    assert (tmp_path / "a.json").read_text() == "old"
    assert (tmp_path / "a" / "requests.jsonl.gz").exists()


def test_a_run_that_never_begins_leaves_nothing(tmp_path: Path) -> None:
    RunStore(tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_force_never_removes_what_is_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="no evidence of a run"):
        RunStore(tmp_path / "a.json", force=True)
    assert (tmp_path / "a" / "thesis.txt").exists()


def test_a_name_that_no_file_can_have_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        RunStore(tmp_path / f"{'x' * 300}.json")


def test_force_removes_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (tmp_path / "a").symlink_to(kept)
    begun(tmp_path / "a.json", force=True)
    assert (kept / "file").read_text() == "mine"
    assert not (tmp_path / "a").is_symlink()


@pytest.mark.parametrize("name", ["a", "a.yaml", "a.json.gz"])
def test_a_document_ends_in_json(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"ends in \.json"):
        RunStore(tmp_path / name)


def test_a_place_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError):
        RunStore(tmp_path / "file" / "a.json")


def test_a_document_is_saved_as_it_is(tmp_path: Path) -> None:
    path = shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json")
    run, raw = load_run(path)
    store = begun(tmp_path / "a.json")
    store.save(run)
    assert json.loads((tmp_path / "a.json").read_bytes()) == json.loads(raw)


def test_a_failed_replace_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("")
    with pytest.raises(TokenwattError, match="folder"):
        replace(tmp_path / "folder", b"data")


def test_a_file_system_without_locks_takes_a_run_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    begun(tmp_path / "a.json").append("requests.jsonl.gz", [{"i": 0}])
    assert (tmp_path / "a" / "requests.jsonl.gz").exists()
