import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.content_folder import COMPARISON, PAGE, content_folder, run_bytes
from tests.support.shared import shared_path
from tokenwatt_site.documents.yamlfile import loads
from tokenwatt_site.errors import DocumentError, FindingsError, UsageError
from tokenwatt_site.publish.content import Loaded, load
from tokenwatt_site.publish.problems import raise_errors
from tokenwatt_site.publish.tree import read_tree

TODAY = "2026-11-30"
SEED = "h200x4-deepseek-v4.1-flash-fp8-vllm"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    content_folder(Path("content"))
    return Path("content")


def loaded(folder: Path, *, drafts: bool = False) -> Loaded:
    return load(read_tree(folder), today=TODAY, drafts=drafts)


def told(folder: Path, *, drafts: bool = False) -> list[str]:
    return [f"{p.severity}: {p.text}" for p in loaded(folder, drafts=drafts).problems]


def test_a_whole_folder_has_no_problems(folder: Path) -> None:
    found = loaded(folder)
    assert found.problems == ()
    content = found.content
    assert [entry.run.id for entry in content.runs] == ["one", "two"]
    assert [(c.slug, c.run_ids, c.baseline) for c in content.comparisons] == [
        ("one-two", ("one", "two"), "one")
    ]
    assert [(page.slug, page.title) for page in content.pages] == [("about", "About")]
    assert content.hardware["h200"].name == "NVIDIA H200"
    assert content.changes[0].run_ids == ("one",)
    assert content.config.title == "Test site"


def test_a_run_is_published_as_its_bytes_and_its_spec_is_a_spec_file(folder: Path) -> None:
    entry = loaded(folder).content.runs[0]
    raw = (folder / "runs/one.json").read_bytes()
    assert entry.raw == raw
    assert entry.sha256 == hashlib.sha256(raw).hexdigest()
    assert loads(entry.spec_yaml.encode(), "spec").data["name"] == "sim-llama-70b-h200x4"
    assert entry.spec_sha256 == hashlib.sha256(entry.spec_yaml.encode()).hexdigest()


def test_links_know_their_page_and_line(folder: Path) -> None:
    links = {(link.place, link.page, link.href) for link in loaded(folder).links}
    assert links == {
        ("content/pages/about.md:4", "about/", "/runs/one/"),
        ("content/compare/one-two.md:7", "compare/one-two/", "/about/"),
    }


def test_the_projects_own_content(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    found = loaded(Path("content"))
    assert found.problems == ()
    seed = next(entry for entry in found.content.runs if entry.run.id == SEED)
    assert seed.raw == shared_path(f"seed/{SEED}.json").read_bytes()
    assert found.content.hardware["h200"].rated_bw_tbs is not None
    assert found.content.hardware["h200"].rated_bw_tbs.value == 4.8
    assert found.content.changes[-1].run_ids == (SEED,)


def test_the_seeds_findings_are_those_that_were_found_by_hand(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    entry = next(e for e in loaded(Path("content")).content.runs if e.run.id == SEED)
    found = [(f.severity, f.code, f.pointer) for f in entry.findings]
    expected = json.loads(shared_path("seed/findings.json").read_bytes())
    assert found == [(f["severity"], f["code"], f["pointer"]) for f in expected]


def test_a_waiver_stands_beside_its_finding(folder: Path) -> None:
    (folder / "runs/one.json").write_bytes(run_bytes("one", title="Ask me@mail.example"))
    waiver = "one: {EMAIL: {/title: {reason: a public list, date: 2026-11-30}}}\n"
    (folder / "waivers.yaml").write_text(waiver)
    found = loaded(folder)
    assert found.problems == ()
    (finding,) = (f for f in found.content.runs[0].findings if f.code == "EMAIL")
    assert finding.waiver is not None
    assert (finding.waiver.reason, finding.waiver.date) == ("a public list", "2026-11-30")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BREAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut in half": (cut, r"content/runs/two\.json:\d+:\d+: not JSON"),
    "empty": (lambda path: path.write_bytes(b""), r"content/runs/two\.json: the file is empty"),
    "a folder": (as_folder, r"content/runs/two\.json: not a file"),
    "not UTF-8": (
        lambda path: path.write_bytes(b'{"id": "caf\xe9"}'),
        r"content/runs/two\.json: not UTF-8 at byte 11",
    ),
    "NaN": (
        lambda path: path.write_bytes(path.read_bytes().replace(b'"runs": 5', b'"runs": NaN')),
        r"content/runs/two\.json: NaN is not JSON",
    ),
    "a key twice": (
        lambda path: path.write_bytes(b'{"id": "a", "id": "b"}'),
        r"content/runs/two\.json: the key 'id' stands twice",
    ),
    "another id": (
        lambda path: path.write_bytes(run_bytes("three")),
        r"content/runs/two\.json: /id: 'three' isn't the file's name",
    ),
    "an unknown key": (
        lambda path: path.write_bytes(run_bytes("two", colour="red")),
        r"content/runs/two\.json: /colour: unknown key",
    ),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_run_is_told_and_the_others_are_built(folder: Path, how: str) -> None:
    damage, message = BREAKS[how]
    damage(folder / "runs/two.json")
    found = loaded(folder)
    assert [entry.run.id for entry in found.content.runs] == ["one"]
    assert {each.severity for each in found.problems} == {"warning"}
    assert found.content.comparisons == ()
    raise_errors(found.problems, strict=False)
    with pytest.raises(FindingsError, match=message):
        raise_errors(found.problems, strict=True)


def test_a_broken_run_of_the_change_log_stops_the_build(folder: Path) -> None:
    cut(folder / "runs/one.json")
    problems = loaded(folder).problems
    with pytest.raises(
        DocumentError, match=r"content/changes\.yaml:1: runs: one: its file is brok"
    ):
        raise_errors(problems, strict=False)


def test_a_byte_order_mark_is_accepted(folder: Path) -> None:
    for path in folder.rglob("*.*"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert told(folder) == []


WRONG = {
    "site.yaml": [
        (b"title: [", "error: content/site.yaml:1:9: not YAML"),
        (b"title: a\ntitle: b\n", "error: content/site.yaml:2:1: not YAML: found duplicate key"),
        (
            b"title: a\nlicense: b\n",
            "error: content/site.yaml:2: license: unknown key; did you mean 'licence'?",
        ),
        (b"title: a\nbase_url: ftp://x/\n", "error: content/site.yaml:2: base_url: "),
        (b"title: a\nbase_url: https://u:p@x/\n", "error: content/site.yaml:2: base_url: "),
        (b"title: caf\xe9\n", "error: content/site.yaml: not UTF-8 at byte 10"),
        (b"title: .nan\n", "error: content/site.yaml:1: title: should be a valid string"),
        (
            b"title: a\nelectricity_price: {per_kwh: .inf, currency: USD, source: x}\n",
            "error: content/site.yaml:2: electricity_price.per_kwh: ",
        ),
    ],
    "changes.yaml": [
        (b"- {date: yesterday, kind: new, reason: x}\n", "error: content/changes.yaml:1: [0].date"),
        (b"- {date: 2026-11-20, kind: old, reason: x}\n", "error: content/changes.yaml:1: [0].kin"),
        (
            b"- {date: 2026-11-20, kind: new, reason: x, runs: [three]}\n",
            "error: content/changes.yaml:1: runs: three: no such run in runs/",
        ),
        (
            (
                b"- {date: 2026-11-20, kind: new, reason: x}\n"
                b"- {date: 2026-11-19, kind: new, reason: x}\n"
            ),
            "error: content/changes.yaml:2: date: older than the entry above",
        ),
    ],
    "pages/about.md": [
        (b"# About\n", "error: content/pages/about.md:1: no front matter"),
        (b"---\ntitle: a\n", "error: content/pages/about.md:1: no front matter"),
        (b"---\ntitle: a\ntags: b\n---\n", "error: content/pages/about.md:3: tags: unknown key"),
        (b"---\ntitle: a\n---\n\xff", "error: content/pages/about.md: not UTF-8 at byte 17"),
        (b"---\ntitle: a\n---\na\0", "error: content/pages/about.md: NUL at byte 18"),
        (
            b"---\ntitle: a\n---\n\n![a](b.png)\n",
            "error: content/pages/about.md:5: pages hold no images yet",
        ),
    ],
    "compare/one-two.md": [
        (
            COMPARISON.replace("[one, two]", "[one, six]").encode(),
            "error: content/compare/one-two.md:3: runs: no run 'six' in runs/",
        ),
        (
            COMPARISON.replace("[one, two]", "[one, one]").encode(),
            "error: content/compare/one-two.md:3: runs: one stands twice",
        ),
        (
            COMPARISON.replace("baseline: one", "baseline: six").encode(),
            "error: content/compare/one-two.md:4: baseline: isn't one of the runs",
        ),
    ],
    "hardware/h200.yaml": [
        (
            b"name: NVIDIA H200\n",
            "error: content/hardware/h200.yaml:1: vendor: this key is required",
        ),
    ],
    "waivers.yaml": [
        (
            b"one: {EMAIL: {/title: {reason: x, date: 2026-11-30}}}\n",
            "warning: content/waivers.yaml: one: no EMAIL at /title",
        ),
        (
            b"one: {EMAIL: {/title: {reason: x}}}\n",
            "error: content/waivers.yaml:1: one.EMAIL./title",
        ),
    ],
}


@pytest.mark.parametrize(
    "name,data,message", [(name, *case) for name, cases in WRONG.items() for case in cases]
)
def test_each_fault_has_its_place(folder: Path, name: str, data: bytes, message: str) -> None:
    (folder / name).write_bytes(data)
    assert [text[: len(message)] for text in told(folder)] == [message]


def test_a_missing_site_file(folder: Path) -> None:
    (folder / "site.yaml").unlink()
    assert told(folder) == ["error: content/site.yaml: no such file"]


def test_a_page_cannot_take_an_address_of_the_site(folder: Path) -> None:
    (folder / "pages/runs.md").write_text(PAGE)
    assert told(folder) == ["error: content/pages/runs.md: /runs/ is a page of the site's own"]


def test_names_that_a_file_system_takes_for_one(folder: Path) -> None:
    (folder / "pages/About.md").write_text(PAGE)
    assert told(folder) == [
        "error: content/pages/About.md and content/pages/about.md: one name to some systems",
        "error: content/pages/About.md: a name has lower-case letters, digits, . and - only",
    ]


def test_composed_and_decomposed_names_are_one(folder: Path) -> None:
    for name in ("caf\u00e9.md", "cafe\u0301.md"):
        (folder / "pages" / name).write_text(PAGE)
    assert any("one name to some systems" in text for text in told(folder))


def test_two_files_for_one_accelerator(folder: Path) -> None:
    (folder / "hardware/other.yaml").write_bytes((folder / "hardware/h200.yaml").read_bytes())
    assert told(folder) == [
        "error: content/hardware/h200.yaml and content/hardware/other.yaml: both are NVIDIA H200"
    ]


def test_drafts_are_left_out_unless_asked_for(folder: Path) -> None:
    (folder / "runs/two.json").write_bytes(run_bytes("two", status="draft"))
    assert [entry.run.id for entry in loaded(folder).content.runs] == ["one"]
    assert told(folder) == [
        "warning: content/compare/one-two.md:3: runs: two is a draft, so the comparison is left out"
    ]
    assert [entry.run.id for entry in loaded(folder, drafts=True).content.runs] == ["one", "two"]
    assert told(folder, drafts=True) == []


def test_symbolic_links_are_not_followed_and_told_once(folder: Path) -> None:
    (folder / "loop").symlink_to(".")
    (folder / "runs/three.json").symlink_to("two.json")
    assert told(folder) == [
        "warning: content/loop and 1 more: symbolic links aren't followed",
    ]


def test_strange_files_are_noted_and_hidden_ones_not(folder: Path) -> None:
    for name in (".DS_Store", "pages/.about.md.swp", "pages/about.md~"):
        (folder / name).write_text("x")
    assert told(folder) == []
    (folder / "pages/notes.txt").write_text("x")
    (folder / "runs/notes.md").write_text("x")
    assert told(folder) == [
        "warning: content/pages/notes.txt: isn't content of a kind known here",
        "warning: content/runs/notes.md: not a place where content is looked for",
    ]


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "runs/pipe.json")
    assert told(folder) == ["warning: content/runs/pipe.json: not a file"]


def with_evidence(folder: Path, data: bytes, named: bytes) -> None:
    path = folder / "runs/one/evidence/baseline/requests.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    listed = {
        "path": "one/evidence/baseline/requests.jsonl.gz",
        "sha256": hashlib.sha256(named).hexdigest(),
        "bytes": len(named),
    }
    (folder / "runs/one.json").write_bytes(run_bytes("one", evidence=[listed]))


def test_evidence_is_found_and_held_against_its_hash(folder: Path) -> None:
    with_evidence(folder, b"rows", b"rows")
    assert told(folder) == []
    evidence = loaded(folder).content.runs[0].evidence
    assert [(file.name, file.size_bytes) for file in evidence] == [
        ("baseline/requests.jsonl.gz", 4)
    ]


def test_evidence_that_differs_is_an_error(folder: Path) -> None:
    with_evidence(folder, b"rows", b"ROWS")
    place = "content/runs/one/evidence/baseline/requests.jsonl.gz"
    assert told(folder) == [
        f"error: {place}: isn't the evidence that the document names (hash or length)"
    ]


def test_evidence_that_is_kept_elsewhere_is_no_fault_but_a_part_of_it_is(folder: Path) -> None:
    with_evidence(folder, b"rows", b"rows")
    rows = folder / "runs/one/evidence/baseline/requests.jsonl.gz"
    rows.rename(folder.parent / "elsewhere")
    assert told(folder) == []
    assert loaded(folder).content.runs[0].evidence == ()
    (folder.parent / "elsewhere").rename(rows)
    document = json.loads((folder / "runs/one.json").read_bytes())
    document["evidence"].append(document["evidence"][0] | {"path": "one/evidence/more.jsonl"})
    (folder / "runs/one.json").write_text(json.dumps(document))
    assert told(folder) == ["warning: content/runs/one.json: 1 of 2 evidence files aren't here"]


def test_no_such_folder() -> None:
    with pytest.raises(UsageError, match="no such folder"):
        read_tree(Path("nowhere"))
