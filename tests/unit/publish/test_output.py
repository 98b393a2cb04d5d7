import fcntl
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tokenwatt_site.errors import DocumentError, TokenwattError, UsageError
from tokenwatt_site.publish.output import Output, read_manifest

SITE = {"index.html": b"home", "runs/x/index.html": b"run", "static/a.css": b"css"}


def put(out: Path, site: dict[str, bytes] = SITE) -> int:
    """Build a site; return how many files were the old ones."""
    output = Output(out)
    with output.claimed():
        staged = output.stage((PurePosixPath(name), data) for name, data in site.items())
        output.swap(staged)
    return staged.unchanged


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "site"


def test_a_site_and_nothing_beside_it(out: Path) -> None:
    assert put(out) == 0
    built = tree(out)
    manifest = json.loads(built.pop("manifest.json"))
    assert built == SITE
    assert manifest["generator"].startswith("tokenwatt-site ")
    assert manifest["files"]["index.html"] == {
        "sha256": "4ea140588150773ce3aace786aeef7f4049ce100fa649c94fbbddb960f1da942",
        "bytes": 4,
    }
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_what_is_gone_is_gone_and_what_is_the_same_keeps_its_time(out: Path) -> None:
    put(out)
    for path in out.rglob("*.*"):
        os.utime(path, (1_000_000, 1_000_000))
    assert put(out, {"index.html": b"new", "static/a.css": b"css"}) == 1
    assert set(tree(out)) == {"index.html", "static/a.css", "manifest.json"}
    assert (out / "static/a.css").stat().st_mtime == 1_000_000
    assert (out / "index.html").stat().st_mtime != 1_000_000


def test_a_build_of_the_same_moves_nothing(out: Path) -> None:
    put(out)
    before = out.stat().st_ino
    assert put(out) == len(SITE)
    assert out.stat().st_ino == before


def test_a_file_that_was_tampered_with_is_written_again(out: Path) -> None:
    put(out)
    (out / "index.html").write_bytes(b"HOME")
    put(out)
    assert (out / "index.html").read_bytes() == b"home"


def failing() -> Iterator[tuple[PurePosixPath, bytes]]:
    yield PurePosixPath("index.html"), b"half"
    raise DocumentError("a template failed")


def test_a_failed_build_leaves_the_old_site_and_nothing_else(out: Path) -> None:
    put(out)
    before = tree(out)
    output = Output(out)
    with pytest.raises(DocumentError), output.claimed():
        output.stage(failing())
    assert tree(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_a_build_killed_between_its_renames_is_put_right(out: Path) -> None:
    put(out)
    before = tree(out)
    out.rename(out.with_name(".site.old"))
    half = out.with_name(".site.new")
    half.mkdir()
    (half / "index.html").write_bytes(b"half")
    output = Output(out)
    with pytest.raises(DocumentError), output.claimed():
        output.stage(failing())
    assert tree(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_a_build_killed_after_its_renames_leaves_no_old_site(out: Path) -> None:
    put(out, {"index.html": b"older"})
    out.rename(out.with_name(".site.old"))
    put(out.with_name("other"))
    out.with_name("other").rename(out)
    put(out)
    assert [path.name for path in out.parent.iterdir()] == ["site"]
    assert (out / "index.html").read_bytes() == b"home"


def test_a_second_build_is_told_of_the_first(out: Path) -> None:
    first = Output(out)
    with first.claimed():
        with (
            pytest.raises(TokenwattError, match="another build is writing this site"),
            Output(out).claimed(),
        ):
            pass
        first.swap(first.stage([(PurePosixPath("index.html"), b"first")]))
    assert (out / "index.html").read_bytes() == b"first"


def test_the_folder_left_by_a_killed_build_is_no_lock(out: Path) -> None:
    out.with_name(".site.new").mkdir()
    put(out)
    assert tree(out)["index.html"] == b"home"


def test_a_lock_on_a_folder_that_was_swapped_away_is_not_taken(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other build ends between our opening of its folder and our lock on it."""
    real = fcntl.flock
    calls: list[int] = []

    def flock(handle: int, how: int) -> None:
        real(handle, how)
        if not calls:
            out.with_name(".site.new").rename(out.with_name("elsewhere"))
        calls.append(handle)

    monkeypatch.setattr(fcntl, "flock", flock)
    put(out)
    assert len(calls) == 2
    assert tree(out)["index.html"] == b"home"


@pytest.mark.parametrize("name", ["notes.txt", "index.html"])
def test_a_folder_that_no_build_made_is_not_replaced(out: Path, name: str) -> None:
    out.mkdir()
    (out / name).write_text("mine")
    with pytest.raises(UsageError, match=r"no manifest\.json of ours"):
        put(out)
    assert tree(out) == {name: b"mine"}


def test_a_file_of_someone_else_is_not_lost(out: Path) -> None:
    put(out)
    (out / "CNAME").write_text("me.example")
    with pytest.raises(UsageError, match="CNAME: no build made this"):
        put(out, {"index.html": b"new"})
    assert (out / "CNAME").exists()


def test_litter_of_the_desktop_is_no_obstacle(out: Path) -> None:
    put(out)
    (out / ".DS_Store").write_text("x")
    put(out, {"index.html": b"new"})
    assert set(tree(out)) == {"index.html", "manifest.json"}


def test_an_empty_folder_is_taken(out: Path) -> None:
    out.mkdir()
    put(out)
    assert tree(out)["index.html"] == b"home"


def test_a_symbolic_link_or_file_is_not_replaced(out: Path) -> None:
    target = out.with_name("target")
    put(target)
    out.symlink_to(target)
    with pytest.raises(UsageError, match="not a folder"):
        put(out)
    out.unlink()
    out.write_text("x")
    with pytest.raises(UsageError, match="not a folder"):
        put(out)


def test_an_old_folder_that_is_not_ours_is_left(out: Path) -> None:
    mine = out.with_name(".site.old")
    mine.mkdir()
    (mine / "x").write_text("x")
    with pytest.raises(UsageError, match="no site of ours"):
        put(out)
    assert (mine / "x").exists()


def test_a_disk_that_takes_no_more_leaves_the_old_site(out: Path) -> None:
    put(out)
    before = tree(out)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(TokenwattError, match=r"big\.html: File too large") as told:
            put(out, {"index.html": b"new", "big.html": b"x" * 2000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert told.value.exit_code == 1
    assert tree(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_a_place_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TokenwattError, match=r"Not a directory|File exists"):
        put(tmp_path / "file" / "site")


@pytest.mark.parametrize(
    "names",
    [
        ["a/index.html", "a/index.html"],
        ["a/Index.html", "a/index.html"],
        ["caf\u00e9.html", "cafe\u0301.html"],
        ["a", "a/index.html"],
        ["a/index.html", "a"],
        ["Manifest.json"],
    ],
)
def test_two_pages_never_share_a_place(out: Path, names: list[str]) -> None:
    output = Output(out)
    with pytest.raises(DocumentError, match="two pages want one place"), output.claimed():
        output.stage((PurePosixPath(name), b"x") for name in names)


@pytest.mark.parametrize("name", ["../up.html", "/root.html", "a\\b", "a\0b", "x" * 256])
def test_a_name_never_leaves_the_folder(out: Path, name: str) -> None:
    output = Output(out)
    with pytest.raises(DocumentError, match="can't be a file of the site"), output.claimed():
        output.stage([(PurePosixPath(name), b"x")])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"generator": "other 1", "files": {}}', '{"generator": "tokenwatt-site 1"}'],
)
def test_a_manifest_of_ours_is_told_from_others(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert read_manifest(tmp_path) is None
