"""A spec may be a stranger's: its trace is read from its own folder or not at all."""

import os
from pathlib import Path

import pytest

from tokenwatt_site.documents import tracefile
from tokenwatt_site.documents.tracefile import is_path, read_file, read_trace
from tokenwatt_site.errors import RefusedError, UsageError


@pytest.mark.parametrize(
    "trace, expected",
    [
        ("chat-mix-v1", False),
        (None, False),
        ("a.csv", True),
        ("b.jsonl", True),
        ("traces/b", True),
        ("..\\b", True),
    ],
)
def test_a_path_is_told_from_a_name(trace: str | None, *, expected: bool) -> None:
    assert is_path(trace) is expected


def test_a_name_is_no_file(tmp_path: Path) -> None:
    assert read_trace("chat-mix-v1", tmp_path) is None
    assert read_trace(None, tmp_path) is None


def test_a_trace_lies_beside_the_spec_or_below(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/a.csv").write_bytes(b"x")
    file = read_trace("traces/a.csv", tmp_path)
    assert file is not None
    assert (file.path, file.name, file.data) == ("traces/a.csv", "a.csv", b"x")


@pytest.mark.parametrize(
    "trace",
    ["../a.csv", "traces/../../a.csv", "/etc/passwd", "C:\\a.csv", "link.csv", "link/a.csv", "\0/"],
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, trace: str) -> None:
    folder = tmp_path / "spec"
    folder.mkdir()
    (tmp_path / "a.csv").write_bytes(b"x")
    (folder / "link.csv").symlink_to(tmp_path / "a.csv")
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(RefusedError, match="leaves the spec's folder"):
        read_trace(trace, folder)


def test_an_absolute_path_is_refused_even_into_the_folder(tmp_path: Path) -> None:
    """It would be published, and holds on one machine."""
    (tmp_path / "a.csv").write_bytes(b"x")
    with pytest.raises(RefusedError):
        read_trace(str(tmp_path / "a.csv"), tmp_path)


@pytest.mark.parametrize(
    "name, says",
    [
        ("missing.csv", "missing.csv: No such file"),
        ("folder.csv", "folder.csv: not a file"),
        ("pipe.csv", "pipe.csv: not a file"),
        ("a.csv.gz", "gunzip"),
        ("large.csv", "larger than"),
    ],
)
def test_what_cannot_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.setattr(tracefile, "MAX_BYTES", 10)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "large.csv").write_bytes(b"x" * 11)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UsageError, match=says):
        read_trace(name, tmp_path)


def test_a_file_that_the_user_names_may_lie_anywhere(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x")
    assert read_file(tmp_path / "a.csv").name == "a.csv"
