"""Links, typography, citations, figures as CSV, shared files."""

import csv
import hashlib
import io
import json
import re
from pathlib import PurePosixPath

import pytest

from tests.support.demo_run import demo_document
from tests.support.shared import ROOT
from tests.support.site import seed_entry
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.assets import load_assets
from tokenwatt_site.publish.charts.palette import DASHES, LIGHT
from tokenwatt_site.publish.model import SiteConfig
from tokenwatt_site.publish.typography import tidy_html
from tokenwatt_site.publish.views.cite import citation
from tokenwatt_site.publish.views.figure_view import script_json
from tokenwatt_site.publish.views.figures_csv import figures_csv
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.links import linker, slug

STATIC = ROOT / "templates" / "static"


@pytest.mark.parametrize(
    "page, address, expected",
    [
        ("index.html", "runs/a/", "runs/a/index.html"),
        ("runs/a/index.html", "", "../../index.html"),
        ("runs/a/index.html", "runs/b/#power", "../b/index.html#power"),
        ("runs/a/index.html", "/method/#slo", "../../method/index.html#slo"),
        ("runs/a/index.html", "assets/x.css", "../../assets/x.css"),
    ],
)
def test_a_link_is_relative_to_its_page(page: str, address: str, expected: str) -> None:
    assert linker(PurePosixPath(page))(address) == expected


@pytest.mark.parametrize(
    "name, expected",
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("DeepSeek-V4.1-Flash", "deepseek-v4.1-flash"),
        ("../../etc/passwd", "etc-passwd"),
        ("<b>", "b"),
        ("…", "unnamed"),
    ],
)
def test_a_name_becomes_an_address(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_typography_touches_text_and_leaves_code_titles_and_attributes() -> None:
    html = (
        '<title>5 ms</title><p title="5 ms">5 ms <code>5 ms</code> 6 ms</p><pre>a\n7 ms</pre>8 ms'
    )
    assert tidy_html(html) == (
        '<title>5 ms</title><p title="5 ms">5\u00a0ms <code>5 ms</code> 6\u00a0ms</p>'
        "<pre>a\n7 ms</pre>8\u00a0ms"
    )


def test_json_in_a_script_can_end_nothing() -> None:
    text = script_json({"a": "</script><!-- & \u2028"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"a": "</script><!-- & \u2028"}


def test_the_seed_is_cited_with_its_scope_and_its_quick_mode() -> None:
    cite = citation(Source.of(seed_entry().run), SiteConfig("s", "https://a.org/", "Us"))
    assert cite.bibtex == (
        "@misc{h200x4-deepseek-v4.1-flash-fp8-vllm,\n"
        "  author  = {{Us}},\n"
        "  title   = {DeepSeek-V4.1-Flash on 4× H200 with vLLM 0.32.0 (TP4, FP8 KV cache)},\n"
        "  year    = {2026},\n"
        "  month   = oct,\n"
        "  version = {1},\n"
        "  url     = {https://a.org/runs/h200x4-deepseek-v4.1-flash-fp8-vllm/},\n"
        "  note    = {1.161 J per output token, GPU boards, n = 2, quick mode}\n"
        "}\n"
    )
    (item,) = json.loads(cite.csl)
    assert item["issued"] == {"date-parts": [[2026, 10, 27]]}
    assert cite.plain.endswith("version 1, 2026-10-27, https://a.org/runs/"
                               "h200x4-deepseek-v4.1-flash-fp8-vllm/.\n")  # fmt: skip


def test_a_title_of_braces_is_text_in_bibtex() -> None:
    run = Run.model_validate(demo_document(title="a}\n% \\x {b} & $c_d^e~f #"))
    cite = citation(Source.of(run), SiteConfig("s"))
    title = next(line for line in cite.bibtex.splitlines() if "title" in line)
    assert title == (
        r"  title   = {a\} \% \textbackslash{}x \{b\} \& \$c\_d\textasciicircum{}e"
        r"\textasciitilde{}f \#},"
    )
    assert "url" not in cite.bibtex


def test_the_csv_of_a_document_has_exact_values_units_intervals_and_scope() -> None:
    rows = list(
        csv.DictReader(io.StringIO(figures_csv(Run.model_validate(demo_document())).decode()))
    )
    named = {row["quantity"]: row for row in rows}
    assert named["ttft_p99"]["value"] == "900.4"
    assert named["goodput"]["unit"] == "tok/s"
    assert float(named["goodput"]["half_width_95"]) == pytest.approx(28.5, abs=0.1)
    assert (named["power"]["scope"], named["power"]["n"]) == ("board", "5")
    assert named["mbu"]["value"] == ""
    assert float(named["tok_s_per_kw"]["value"]) == pytest.approx(
        1000 / float(named["j_per_output_token"]["value"])
    )


def test_vendored_files_are_those_that_were_recorded() -> None:
    record = json.loads((STATIC / "vendor" / "vendored.json").read_text(encoding="utf-8"))
    for name, sha256 in record["files"].items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == sha256, name
    script = (STATIC / "vendor" / "plotly-basic.min.js").read_text(encoding="utf-8")
    assert f"v{record['version']}" in script[:200]
    assert "Licensed under the MIT license" in script[:200]


def test_shared_files_carry_the_hash_of_their_content_in_their_name() -> None:
    for name, asset in load_assets(STATIC).items():
        if name != "plotly_licence":
            assert hashlib.sha256(asset.data).hexdigest()[:8] in asset.address


def test_files_and_pages_have_the_same_colours_and_dashes() -> None:
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    tokens = dict(re.findall(r"--(\w+): light-dark\((#\w{6})", style))
    assert {name: tokens[name] for name in LIGHT if name != "s0"} == {
        name: colour for name, colour in LIGHT.items() if name != "s0"
    }
    assert tokens["line"] == LIGHT["s0"]
    dashes = {int(k): v for k, v in re.findall(r"\.d(\d) \{ stroke-dasharray: ([\d ]+);", style)}
    assert dashes == {k: v for k, v in DASHES.items() if k}


def test_the_scripts_load_nothing_by_themselves_and_send_nothing() -> None:
    for name in ("site.js", "explore.js"):
        script = (STATIC / name).read_text(encoding="utf-8")
        assert not re.search(r"https?:|fetch\(|XMLHttp|sendBeacon|innerHTML|eval\(", script), name
    explore = (STATIC / "explore.js").read_text(encoding="utf-8")
    for setting in ("displaylogo: false", "showSendToCloud: false", 'plotlyServerURL: ""'):
        assert setting in explore
