import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.content_folder import PAGE, content_folder, run_bytes
from tokenwatt_site.cli import cli
from tokenwatt_site.errors import DocumentError, FindingsError, TokenwattError, UsageError
from tokenwatt_site.publish import render
from tokenwatt_site.publish.build import Built, Wanted, build
from tokenwatt_site.publish.output import Output
from tokenwatt_site.publish.serve import Server, Told
from tokenwatt_site.resources import resource

TODAY = "2026-11-30"


@pytest.fixture(autouse=True)
def content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return content_folder(Path("content"))


def built(out: str = "site", *, base_url: str | None = None, drafts: bool = False) -> Built:
    return build(Wanted(Path("content"), Path(out), TODAY, base_url, drafts=drafts))


def tree(folder: str = "site") -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["build", *words])


def test_a_site_of_the_content() -> None:
    done = built()
    site = tree()
    assert {"index.html", "404.html", "about/index.html", "runs/one/index.html"} <= set(site)
    assert {"runs/two/index.html", "compare/one-two/index.html"} <= set(site)
    assert done.runs == 2
    assert done.pages == sum(name.endswith(".html") for name in site)
    assert done.files == len(site) - 1  # the manifest lists the others
    assert done.size_bytes == sum(map(len, site.values())) - len(site["manifest.json"])
    assert done.url == Path("site/index.html").resolve().as_uri()


def test_a_published_document_is_byte_for_byte_its_file() -> None:
    built()
    raw = Path("content/runs/one.json").read_bytes()
    assert raw in tree().values()


def test_a_second_build_changes_nothing() -> None:
    built()
    times = {path: path.stat().st_mtime_ns for path in Path("site").rglob("*")}
    done = built()
    assert done.unchanged == done.files
    assert {path: path.stat().st_mtime_ns for path in Path("site").rglob("*")} == times


def test_a_run_that_is_gone_leaves_no_page() -> None:
    built()
    Path("content/runs/two.json").unlink()
    Path("content/compare/one-two.md").unlink()
    built()
    assert not [name for name in tree() if "two" in name]


def cut(path: str, left: float = 0.5) -> None:
    file = Path(path)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * left)])


@pytest.mark.parametrize(
    "name,left",
    [
        ("site.yaml", 0.3),  # at a half it is a shorter title
        ("changes.yaml", 0.5),
        ("pages/about.md", 0.2),  # at a half it is a shorter page
        ("compare/one-two.md", 0.5),
        ("hardware/h200.yaml", 0.5),
        ("runs/one.json", 0.5),
    ],
)
def test_a_content_file_cut_short_leaves_the_old_site(name: str, left: float) -> None:
    built()
    before = tree()
    cut(f"content/{name}", left)
    with pytest.raises(DocumentError, match=name.replace(".", r"\.")) as told:
        built()
    assert told.value.exit_code == 1
    assert told.value.hint
    assert tree() == before


def test_a_broken_run_that_was_never_published_is_left_out() -> None:
    cut("content/runs/two.json")
    done = built()
    assert done.runs == 1
    assert any("runs/two.json" in problem.text for problem in done.warnings)
    with pytest.raises(FindingsError, match=r"runs/two\.json"):
        build(Wanted(Path("content"), Path("site"), TODAY, strict=True))


def test_a_link_that_leads_nowhere_has_its_line() -> None:
    built()
    before = tree()
    Path("content/pages/about.md").write_text(PAGE + "\n\nAnd [this](/runs/six/#top).\n")
    with pytest.raises(DocumentError, match=r"content/pages/about\.md:7: /runs/six/#top: leads to"):
        built()
    assert tree() == before


def test_an_anchor_that_is_nowhere_has_its_line() -> None:
    Path("content/pages/about.md").write_text(PAGE + "\nAnd [this](/about/#nowhere).\n")
    with pytest.raises(DocumentError, match=r"content/pages/about\.md:6: .*no #nowhere on that"):
        built()


@pytest.mark.parametrize(
    "typo,message",
    [("{% if %}", "Expected an expression"), ("{{ nothing.at_all }}", "'nothing' is")],
)
def test_a_typo_in_a_template_leaves_the_old_site(
    monkeypatch: pytest.MonkeyPatch, typo: str, message: str
) -> None:
    built()
    before = tree()
    shutil.copytree(resource("templates"), "templates")
    frame = Path("templates/base.html")
    lines = frame.read_text().splitlines(keepends=True)
    frame.write_text("".join([lines[0], typo, *lines[1:]]))
    monkeypatch.setattr(render, "resource", Path)
    with pytest.raises(TokenwattError, match=rf"templates/base\.html:2: {message}"):
        built()
    assert tree() == before


@pytest.mark.parametrize("out", ["content", "content/site", "."])
def test_site_and_content_never_lie_in_one_another(out: str) -> None:
    with pytest.raises(UsageError, match="can't lie in one another"):
        built(out)


def test_content_in_a_folder_of_that_name_by_a_link() -> None:
    Path("link").symlink_to("content")
    with pytest.raises(UsageError, match="can't lie in one another"):
        built("link/site")


@pytest.mark.parametrize("address", ["me.example", "ftp://me.example", "https://a:b@me.example/"])
def test_a_base_url_is_a_web_address(address: str) -> None:
    with pytest.raises(UsageError, match="--base-url"):
        built(base_url=address)


def test_drafts_are_built_when_asked_for() -> None:
    Path("content/runs/three.json").write_bytes(run_bytes("three", status="draft"))
    built()
    assert "runs/three/index.html" not in tree()
    built(drafts=True)
    assert "runs/three/index.html" in tree()


def test_evidence_is_published_beside_the_page() -> None:
    path = Path("content/runs/three/evidence/baseline/rows.jsonl.gz")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"rows")
    listed = {
        "path": "three/evidence/baseline/rows.jsonl.gz",
        "sha256": hashlib.sha256(b"rows").hexdigest(),
        "bytes": 4,
    }
    Path("content/runs/three.json").write_bytes(run_bytes("three", evidence=[listed]))
    built()
    assert tree()["runs/three/evidence/baseline/rows.jsonl.gz"] == b"rows"


def test_two_builds_at_once() -> None:
    built()
    before = tree()
    with Output(Path("site")).claimed(), pytest.raises(TokenwattError, match="another build is"):
        built()
    assert tree() == before


def test_a_place_that_cannot_be_written() -> None:
    Path("file").write_text("x")
    result = run("--out", "file/site")
    assert result.exit_code != 0
    assert isinstance(result.exception, TokenwattError)
    assert result.exception.exit_code == 1
    assert "file" in result.exception.what
    assert result.exception.hint


def test_what_the_command_prints() -> None:
    result = run()
    assert result.exit_code == 0
    assert "2 runs, " in result.stdout
    assert Path("site/index.html").resolve().as_uri() in result.stdout


def test_what_the_command_prints_for_machines() -> None:
    cut("content/runs/two.json")
    printed = json.loads(run("--json").stdout)
    assert printed["runs"] == 1
    assert printed["out"] == str(Path("site").resolve())
    assert printed["files"] == len(tree()) - 1
    assert len(printed["warnings"]) == 2


def test_the_same_bytes_whatever_the_place_and_the_time(tmp_path: Path) -> None:
    places = []
    for number, (zone, language, seed) in enumerate(
        [("UTC", "C", "0"), ("Asia/Kathmandu", "ru_RU.UTF-8", "4711")]
    ):
        folder = tmp_path / f"place {number}"
        content_folder(folder / "content")
        for path in (folder / "content").rglob("*.*"):
            os.utime(path, (number * 1e6, number * 1e6))
        environment = os.environ | {
            "TZ": zone,
            "LC_ALL": language,
            "PYTHONHASHSEED": seed,
            "SOURCE_DATE_EPOCH": "1796000000",
        }
        words = [sys.executable, "-m", "tokenwatt_site", "build", "--out", str(folder / "site")]
        subprocess.run(words, cwd=folder, env=environment, check=True)
        places.append(tree(str(folder / "site")))
    assert places[0] == places[1]


class Watch:
    """A server's words, kept."""

    def __init__(self) -> None:
        self.built: list[Built] = []
        self.failed: list[TokenwattError] = []
        self.told = Told(print, self.built.append, self.failed.append)


def test_serving_builds_again_when_content_changes_and_keeps_the_site_when_that_fails() -> None:
    watch = Watch()
    server = Server(Wanted(Path("content"), Path("served"), TODAY), watch.told)
    assert server.rebuild()
    for path in Path("content").rglob("*.*"):
        path.touch()
    assert not server.rebuild()
    before = server.site.find("/about/")
    about = Path("content/pages/about.md")
    about.write_text("no front matter")
    assert server.rebuild()
    assert [error.what for error in watch.failed] == ["content/pages/about.md:1: no front matter"]
    assert server.site.find("/about/") == before
    assert not server.rebuild()
    about.write_text(PAGE.replace("Read", "Reread"))
    assert server.rebuild()
    assert b"Reread" in server.site.find("/about/")[2]
    assert (len(watch.built), len(watch.failed)) == (2, 1)
    assert threading.active_count() == 1
