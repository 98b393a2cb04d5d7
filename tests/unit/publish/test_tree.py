from pathlib import Path

import pytest

from tokenwatt_site.errors import DocumentError, FindingsError
from tokenwatt_site.publish import tree
from tokenwatt_site.publish.problems import Problem, raise_errors
from tokenwatt_site.publish.tree import read_tree


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_MAX_BYTES", 10)
    (tmp_path / "site.yaml").write_bytes(b"title: too long")
    found = read_tree(tmp_path)
    assert found.files == {}
    assert [each.text for each in found.problems] == [f"{tmp_path}/site.yaml: larger than 10 bytes"]


def test_a_name_that_is_not_utf8_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "caf\udce9.txt").write_bytes(b"x")
    (problem,) = read_tree(tmp_path).problems
    assert problem.text == f"{tmp_path}/caf\\udce9.txt: isn't content of a kind known here"


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_bytes(b"title: a")
    evidence = tmp_path / "runs/a/evidence/rows.gz"
    evidence.parent.mkdir(parents=True)
    evidence.write_bytes(b"one")
    before = read_tree(tmp_path).digest()
    (tmp_path / "site.yaml").touch()
    assert read_tree(tmp_path).digest() == before
    evidence.write_bytes(b"three")
    after = read_tree(tmp_path).digest()
    assert after != before
    (tmp_path / "site.yaml").rename(tmp_path / "changes.yaml")
    assert read_tree(tmp_path).digest() != after


def test_a_problem_reads_as_an_error_does() -> None:
    assert str(Problem("error", "a.md:1: wrong", "mend it")) == "a.md:1: wrong\n  next: mend it"
    assert str(Problem("error", "a.md:1: wrong")) == "a.md:1: wrong"


def test_errors_go_before_warnings_and_are_counted_when_many() -> None:
    many = [Problem("error", f"{number}") for number in range(25)]
    with pytest.raises(DocumentError, match=r"(?s)^0\n.*19\n… and 5 more"):
        raise_errors([Problem("warning", "w"), *many], strict=False)
    with pytest.raises(FindingsError, match=r"^w\n"):
        raise_errors([Problem("warning", "w")], strict=True)
    raise_errors([Problem("warning", "w")], strict=False)
