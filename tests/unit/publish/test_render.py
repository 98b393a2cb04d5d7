"""What holds for every page: escaping, links, policy, words, size, sameness."""

import gzip
import json
import posixpath
import re
from functools import cache
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urldefrag

import pytest

from tests.support.demo_run import demo_document, joined_document
from tests.support.dom import Node, parse
from tests.support.site import entry_of, second_document, site_content
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.model import (
    Change,
    ComparisonEntry,
    Content,
    PageEntry,
    ShownFinding,
    SiteConfig,
)
from tokenwatt_site.publish.render import CSP, render

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    'x</script><script>alert("1")</script><!--<script>',
    "\"'><svg/onload=alert(1)> {{ 7*7 }} \u2028",
)
# strings with a meaning of their own: a page can't be made of a document without them
_CODED = {"id", "status", "key", "phase", "kind", "scope", "method", "verdict", "word", "strategy"}
_CODED |= {"adapter", "api", "confirm", "source", "endpoint", "published", "started", "finished"}
_CODED |= {"trace", "mode", "schema_version", "sha256", "path", "profile", "run_id"}


@cache
def site() -> dict[PurePosixPath, bytes]:
    return dict(render(site_content()))


def pages(files: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, Node]:
    return {path: parse(data) for path, data in files.items() if path.suffix == ".html"}


def poisoned(value: Any, text: str, key: str = "") -> Any:
    """Return a document with every free string replaced."""
    if isinstance(value, dict):
        kept = {k: poisoned(v, text, k) for k, v in value.items()}
        if key == "missing":
            kept = {k: {"code": text, "text": text} for k in value}
        return kept
    if isinstance(value, list):
        return [poisoned(each, text, key) for each in value]
    return text if isinstance(value, str) and key not in _CODED else value


def hostile_content(text: str) -> Content:
    documents = [
        demo_document(quick=True),
        second_document(),
        joined_document(labels={"a": "b"}),
    ]
    entries = []
    for document in documents:
        dirty = poisoned(document, text)
        dirty["configs"] = [
            c | {"throttle_counts": {text: 3}, "label": f"{text} {i}"}
            for i, c in enumerate(dirty["configs"])
        ]
        finding = ShownFinding("error", "CODE", f"/{text}", text, text)
        entries.append(entry_of(dirty, (finding,)))
    ids = tuple(entry.run.id for entry in entries)
    return Content(
        SiteConfig(text, "", text, text),
        tuple(entries),
        (ComparisonEntry("a", text, text, ids[:2], ids[0], text, "compare/a.md"),),
        (PageEntry("b", text, text, "pages/b.md", text),),
        changes=(Change("2026-01-01", "new", (ids[0], text), text),),
    )


@cache
def hostile_site(text: str) -> dict[PurePosixPath, bytes]:
    return dict(render(hostile_content(text)))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_string_never_becomes_markup(text: str) -> None:
    """The reference is the same site with harmless strings: no element or attribute is added."""
    harmless = pages(dict(render(hostile_content("harmless".ljust(len(text), "-")))))
    for path, page in pages(hostile_site(text)).items():
        if path.parts[0] in {"models", "engines", "hardware"}:
            continue  # named after the strings; their elements are counted below
        names = {(node.tag, name) for node in page.all("[class]") for name in node.attributes}
        known = {(n.tag, a) for n in harmless[path].all("[class]") for a in n.attributes}
        assert names <= known, path
        assert tags(page) == tags(harmless[path]), path


@pytest.mark.parametrize("text", HOSTILE)
def test_no_page_of_a_hostile_site_holds_a_handler_or_a_foreign_script(text: str) -> None:
    for path, page in pages(hostile_site(text)).items():
        nodes = page.all("[src]") + page.all("script") + page.all("img") + page.all("[onerror]")
        assert {node.tag for node in nodes} == {"script"}, path
        assert not page.all("[onload]"), path
        assert not page.all("[style]"), path


def tags(page: Node) -> list[str]:
    """Return the names of all elements but those that Markdown makes of an author's text."""
    return [n.tag for n in page.all("[class]") if n.tag not in {"p", "code"}]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_figure_script_of_hostile_strings_is_one_call_of_one_figure(text: str) -> None:
    files = hostile_site(text)
    scripts = [
        d.decode() for p, d in files.items() if p.parent.name == "charts" and p.suffix == ".js"
    ]
    assert scripts
    for script in scripts:
        assert not re.search("[<>&\u2028\u2029]", script)
        match = re.fullmatch(r'tokenwattFigure\("[a-z-]+", (\{.*\})\);\n', script)
        assert match
        assert set(json.loads(match[1])) == {"data", "layout"}


def test_a_drawing_of_hostile_strings_is_one_svg() -> None:
    for text in HOSTILE:
        for path, data in hostile_site(text).items():
            if path.suffix == ".svg":
                page = parse(data)
                assert not page.all("script"), path
                assert not page.all("img"), path


def test_every_page_states_its_policy_before_anything_else() -> None:
    for path, page in pages(site()).items():
        first = page.one("head").children[0]
        assert isinstance(first, Node), path
        assert first.attributes == {"http-equiv": "Content-Security-Policy", "content": CSP}, path


def test_no_page_has_inline_style_or_script_or_a_third_party() -> None:
    for path, page in pages(site()).items():
        assert not page.all("[style]"), path
        assert all(node.attributes.get("src") and not node.children for node in page.all("script"))
        handlers = {a for n in page.all("[class]") for a in n.attributes if a.startswith("on")}
        assert not handlers, path
        for node in page.all("[src]") + page.all("link"):
            address = node.attributes.get("src") or node.attributes["href"]
            assert not re.match(r"[a-z]+:|//", address.removeprefix("data:,")), (path, address)


def test_every_link_leads_to_a_file_of_the_site_and_every_anchor_to_an_element() -> None:
    files, trees = site(), pages(site())
    broken = []
    for path, page in trees.items():
        if path.name == "404.html":
            continue
        for node in page.all("[href]") + page.all("[src]") + page.all("[data-fig]"):
            names = {"href", "src", "data-fig", "data-lib", "data-css"} & set(node.attributes)
            addresses = [node.attributes[name] for name in names if node.tag != "use"]
            for address in addresses:
                if re.match(r"[a-z]+:", address):
                    continue
                target, fragment = urldefrag(address)
                whole = PurePosixPath(posixpath.normpath(path.parent / target)) if target else path
                if whole not in files or (fragment and not trees[whole].all(f'[id="{fragment}"]')):
                    broken.append((str(path), address))
    assert not broken


def test_a_link_is_relative_and_names_a_file_so_that_a_disk_works() -> None:
    for path, page in pages(site()).items():
        if path.name == "404.html":
            continue
        for node in page.all("a"):
            address = node.attributes["href"]
            assert not address.startswith("/"), (path, address)
            assert not urldefrag(address)[0].endswith("/") or address.startswith("https:"), address


@pytest.mark.parametrize(
    "base_url, prefix", [("", "/"), ("https://a.org/repo/", "/repo/"), ("https://a.org/", "/")]
)
def test_the_page_for_what_is_not_found_works_at_any_depth(base_url: str, prefix: str) -> None:
    files = dict(render(site_content(with_seed=False, base_url=base_url)))
    page = parse(files[PurePosixPath("404.html")])
    local = [
        n.attributes["href"]
        for n in page.all("a") + page.all("link")
        if n.attributes["href"][:1] not in "#d"
    ]
    local = [address for address in local if not address.startswith("https://creative")]
    assert all(address.startswith(prefix) for address in local)
    assert f"{prefix}changes/" in local


def test_a_base_address_gives_pages_their_canonical_one() -> None:
    files = dict(render(site_content(base_url="https://a.org/repo/")))
    page = parse(files[PurePosixPath("changes/index.html")])
    assert page.one('[rel="canonical"]').attributes["href"] == "https://a.org/repo/changes/"
    simulated = parse(files[PurePosixPath("runs/sim-llama-70b-h200x4-500w/index.html")])
    assert not simulated.all('[rel="canonical"]')


def test_no_page_shows_the_words_of_a_program() -> None:
    for path, page in pages(site()).items():
        words = set(re.findall(r"\w+", page.one("body").text()))
        assert not words & {"nan", "NaN", "None", "undefined", "Infinity", "inf"}, path


def bare_document() -> dict[str, Any]:
    """Return a document with every optional field left out and every nullable one null."""
    document = demo_document()
    keys = [name for name, info in Run.model_fields.items() if info.is_required()]
    bare = {key: document[key] for key in keys}
    config = document["configs"][0]
    nulls = ("mbu_pct", "node_power_kw", "goodput_tok_s", "ttft_p99_ms", "tpot_p99_ms", "accuracy")
    kept = ("key", "label", "engine", "slo_pass_count", "repeats", "throttle_counts")
    bare["configs"] = [{k: config[k] for k in kept} | dict.fromkeys(nulls)]
    bare |= {"variance_band_pct": None, "fleet": None, "not_covered": [], "accuracy": None}
    bare["power"] |= {"kind": "none", "source": "none", "sampling_hz": None}
    bare["hardware"] = {"vendor": "", "accelerator": "", "count": 0}
    bare["software"] = {"engine": ""}
    bare["spec"] = {
        "name": "bare",
        "engine": {"endpoint": "http://127.0.0.1:1/v1"},
        "model": {"name": "m"},
    }
    return bare


def test_a_document_with_every_optional_field_missing_is_a_page() -> None:
    files = dict(render(Content(SiteConfig("s"), (entry_of(bare_document()),))))
    run = next(page for path, page in pages(files).items() if path.parts[0] == "runs")
    shown = {figure.one(".big").text() for figure in run.all(".heads [data-figure]")}
    assert shown == {"not recorded", "5 /5"}
    home = parse(files[PurePosixPath("index.html")])
    assert home.one(".grp").text() == "No meter 1 run"


def test_a_site_without_runs_is_a_site() -> None:
    files = dict(render(Content(SiteConfig("empty"), ())))
    assert "No runs yet." in parse(files[PurePosixPath("index.html")]).text()


def test_two_renders_are_the_same_bytes() -> None:
    assert dict(render(site_content())) == site()


def test_no_path_is_yielded_twice() -> None:
    paths = [path for path, _ in render(site_content())]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize(
    "path, budget_kb",
    [
        ("runs/sim-llama-70b-h200x4-bf16kv/index.html", 25),
        ("runs/sim-llama-70b-power-limit/index.html", 25),
        ("index.html", 25),
    ],
)
def test_a_page_keeps_its_budget(path: str, budget_kb: int) -> None:
    """Gzip is larger than brotli, which the budget is in."""
    assert len(gzip.compress(site()[PurePosixPath(path)], 9)) <= budget_kb * 1000


def test_shared_files_keep_their_budget_and_their_hash_in_the_name() -> None:
    assets = {
        p.name.rsplit("-", 1)[0] + p.suffix: d for p, d in site().items() if p.parts[0] == "assets"
    }
    assert len(gzip.compress(assets["style.css"], 9)) <= 10_000
    assert len(gzip.compress(assets["site.js"] + assets["explore.js"], 9)) <= 15_000


def test_many_configurations_are_a_page() -> None:
    document = joined_document()
    candidate = document["configs"][1]
    document["configs"] = [
        document["configs"][0],
        *(
            {**candidate, "key": f"candidate-{i}", "label": f"{i} W · {'long ' * 40}"}
            for i in range(2, 60)
        ),
    ]
    files = dict(render(Content(SiteConfig("s"), (entry_of(document),))))
    run = next(page for path, page in pages(files).items() if path.parts[0] == "runs")
    assert len(run.all("#compare .grp")) == 58
    assert len(run.all("#over-energy .ln")) == 6


def test_a_simulated_run_is_in_no_ranking() -> None:
    page = parse(site()[PurePosixPath("index.html")])
    assert not page.all(".card")
    assert "No ranking yet" in page.one(".note").text()


def test_the_best_whole_runs_of_one_model_are_cards() -> None:
    real = {"simulated": False, "status": "published", "published": "2026-11-20"}
    content = Content(
        SiteConfig("s"),
        (entry_of(demo_document(**real)), entry_of(second_document() | real)),
    )
    page = parse(dict(render(content))[PurePosixPath("index.html")])
    cards = [card.text() for card in page.all(".card")]
    assert cards == [
        (
            "Lowest energy, GPU boards 0.698 J/token 4 × H200 · FP8 · embedded 1.0 "
            "± 0.008, n = 5 · 1,433 tok/s/kW"
        ),
        (
            "Most goodput of an accelerator 685 tok/s 4 × H200 · FP8 · embedded 1.0 "
            "n = 5 · 2,740 tok/s in all"
        ),
    ]


def test_the_table_groups_by_scope_and_puts_the_lowest_energy_first() -> None:
    page = parse(site()[PurePosixPath("index.html")])
    rows = [row for row in page.all("#results tr") if row.all(".id")]
    energies = [float(row.all("td")[0].attributes["data-v"]) for row in rows]
    assert energies == sorted(energies)
    assert [row.all(".id a")[0].text() for row in rows][-1] == "DeepSeek-V4.1-Flash"
    assert rows[-1].all("td")[0].text() == "1.161 †"
    assert rows[-1].all("td")[8].text() == "21.25"


def test_a_retracted_run_keeps_its_page_and_leaves_the_table() -> None:
    entry = entry_of(demo_document(status="retracted", simulated=False))
    files = dict(render(Content(SiteConfig("s"), (entry,))))
    assert "No runs yet." in parse(files[PurePosixPath("index.html")]).text()
    model = parse(files[PurePosixPath("models/llama-3.1-70b/index.html")])
    assert "retracted" in model.one("#former").text()
