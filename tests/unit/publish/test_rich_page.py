"""What a document with windows, sweep, distributions, series and energy shows."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.support.demo_run import demo_document, joined_document
from tests.support.dom import Node, parse
from tests.support.site import entry_of, page_of, site_content
from tokenwatt_site.publish.model import EvidenceFile
from tokenwatt_site.publish.render import render


@cache
def demo_page() -> Node:
    return page_of(entry_of(demo_document()))


DEMO_FIELDS = [
    (
        "/configs/0/rate_rps",
        6.0,
        '[data-figure="goodput_tok_s"] .n',
        "± 28, n = 5 · 6.50 requests/s",
    ),
    (
        "/configs/0/slo_attainment_pct",
        99.0,
        '[data-figure="slo_pass_count"] .n',
        "met: 0.41 % of requests missed a limit",
    ),
    (
        "/configs/0/input_tok_s",
        1.0,
        '[data-figure="j_per_token"] .n',
        (
            "GPU boards · ± 0.009, n = 5 · meter ± 1.5 % 0.1652 J per token of input and "
            "output together 335 J per request"
        ),
    ),
    ("/configs/0/rate_rps", 6.0, "#sweep h2", "The limit lies between 6.50 and 6.75 requests/s"),
    (
        "/configs/0/sweep/7/tpot_p99_ms",
        49.0,
        "#sweep-tpot b",
        "TPOT crosses its limit between 6.50 and 6.75 requests/s simulated",
    ),
    (
        "/configs/0/sweep/3/ttft_p99_ms",
        700.0,
        "#sweep-ttft b",
        "TTFT crosses its limit between 7.00 and 8.00 requests/s simulated",
    ),
    (
        "/configs/0/sweep/5/goodput_tok_s",
        1.0,
        "#sweep-goodput b",
        "Goodput peaks with 2,859 tok/s at 7.00 requests/s, outside the SLO simulated",
    ),
    ("/configs/0/ttft_ms/p99", 800.0, "#cdf-ttft b", "First token: 99 % within 900 ms simulated"),
    (
        "/configs/0/tpot_ms/p99",
        45.0,
        "#cdf-tpot b",
        "Each next token: 99 % within 46.2 ms simulated",
    ),
    (
        "/configs/0/series/window_s",
        100,
        "#timeline b",
        "Through the window: 2.18 kW and 110 requests in flight simulated",
    ),
    (
        "/configs/0/sweep/0/energy/joules",
        1e6,
        "#energy-rate b",
        "At 6.50 requests/s a token costs 68 % less energy than at 1.00 simulated",
    ),
    (
        "/configs/0/energy/check/difference_pct",
        1.0,
        "#power p",
        "Counter and samples agree: 0.40 % apart.",
    ),
    (
        "/configs/0/windows/0/goodput_tok_s",
        2700.0,
        "#windows tfoot",
        "Mean 1,950 0 2.00 2,740 ± 28 906 ± 1 46.3 ± 0.1 2,179 ± 5 0.793 ± 0.009 5/5",
    ),
    (
        "/configs/0/itl_ms/p50",
        30.0,
        "#latency .more tbody",
        (
            "Time to first token 298 548 702 900 328 864–936 9,750 "
            "Time per output token 40.4 43.6 44.9 46.2 44.4 44.4–48.1 9,750 "
            "Gap between tokens 38.1 52.0 67.6 88.0 41.9 84.5–91.5 4,100,000 "
            "Whole request 11,200 33,000 48,405 71,000 12,320 68,160–73,840 9,750"
        ),
    ),
    (
        "/configs/0/counts/failed",
        3,
        "#latency p",
        "All 9,750 requests of five windows at 6.50 requests/s. No request failed.",
    ),
    (
        "/missing/~1configs~10~1mbu_pct/text",
        "because",
        '[data-figure="mbu_pct"] dd',
        "not recorded this version doesn't compute memory bandwidth utilisation",
    ),
]


@pytest.mark.parametrize("pointer, other, selector, expected", DEMO_FIELDS)
def test_a_field_of_a_rich_document_stands_in_its_place(
    pointer: str, other: Any, selector: str, expected: str
) -> None:
    way = [part.replace("~1", "/") for part in pointer.strip("/").split("/")]
    document = demo_document()
    place: Any = document
    for step in way[:-1]:
        place = place[int(step) if step.isdigit() else step]
    place[way[-1]] = other
    if way[-1] == "failed":
        place["ok"] -= other
    assert demo_page().all(selector)[0].text() == expected
    assert page_of(entry_of(document)).all(selector)[0].text() != expected


def test_a_rich_document_has_every_section_in_order() -> None:
    sections = [section.attributes["id"] for section in demo_page().all("section")]
    links = [link.attributes["href"] for link in demo_page().all(".toc a")]
    assert sections == [
        *("slo", "sweep", "latency", "time", "power", "windows", "config", "fleet"),
        *("reproduce", "notcov", "checks", "prov", "cite"),
    ]
    assert links == [f"#{section}" for section in sections]


def test_a_simulated_document_is_marked_on_every_figure_and_hidden_from_search() -> None:
    page = demo_page()
    figures = page.all("figure")
    assert len(figures) == 7
    assert all(figure.all("figcaption .tag")[0].text() == "simulated" for figure in figures)
    assert all(figure.all(".wm")[0].text() == "SIMULATED" for figure in figures)
    assert page.one('[name="robots"]').attributes["content"] == "noindex"
    assert page.one(".ban").text().startswith("Simulated.")


def test_a_joined_document_shows_the_difference_first_in_words_and_what_differs() -> None:
    page = page_of(entry_of(joined_document()))
    rows = {
        row.attributes["data-metric"]: [cell.text() for cell in row.all("td")]
        for row in page.all("#compare .delta tr")
        if "data-metric" in row.attributes
    }
    assert rows["j_per_token"] == [
        *("−12.0 ± 1.2", "", "better by 10.8–13.2 %", "0.793 ± 0.009", "0.698 ± 0.008"),
    ]
    assert rows["goodput_tok_s"][2] == "worse by 4.5–6.9 %"
    assert rows["power_w"][2] == "less by 16.8–17.2 %"
    assert rows["ttft_p99_ms"][2] == "within noise"
    assert [row.all("code")[0].text() for row in page.all("#compare tr") if row.all("code")] == [
        "hardware.power_limit_w",
        "spec.hardware.host",
    ]


@pytest.mark.parametrize(
    "changes, first, indexed",
    [
        ({"status": "draft", "simulated": False}, "Draft.", False),
        ({"status": "retracted", "simulated": False}, "Retracted.", False),
        ({"status": "superseded", "simulated": False}, "Superseded.", False),
        ({"status": "imported", "simulated": False}, "Imported.", True),
        ({"quick": True, "status": "published", "simulated": False}, "Quick mode.", True),
        (
            {
                "verdict": {"word": "failed", "text": "3 of 5 windows"},
                "status": "published",
                "simulated": False,
            },
            "The limits weren’t kept. 3 of 5 windows.",
            True,
        ),
    ],
)
def test_a_banner_says_how_a_run_stands(
    changes: dict[str, Any],
    first: str,
    indexed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    page = page_of(entry_of(demo_document(**changes)))
    assert page.all(".ban")[0].text().startswith(first)
    assert (not page.all('[name="robots"]')) is indexed


def test_a_document_without_a_kept_rate_shows_why_and_no_number() -> None:
    document = demo_document(verdict={"word": "no_rate", "text": "no rate kept the limits"})
    none = dict.fromkeys(("goodput_tok_s", "ttft_p99_ms", "tpot_p99_ms", "node_power_kw"))
    rich = (
        "rate_rps",
        "output_tok_s",
        "input_tok_s",
        "goodput_rps",
        "windows",
        "series",
        "energy",
        "ttft_ms",
        "tpot_ms",
        "itl_ms",
        "e2e_ms",
        "throttle_share_pct",
        "counts",
    )
    config = {k: v for k, v in document["configs"][0].items() if k not in rich}
    document["configs"] = [config | none | {"repeats": 0, "slo_pass_count": 0}]
    document["runs"] = 0
    document["missing"]["/configs/0/goodput_tok_s"] = {"code": "X", "text": "nothing confirmed"}
    page = page_of(entry_of(document))
    assert page.one('[data-figure="goodput_tok_s"] dd').text() == "not recorded nothing confirmed"
    assert page.one("#sweep h2").text() == "No rate is confirmed"
    assert page.all(".ban")[0].text().startswith("No rate kept the limits.")


def test_evidence_is_linked_by_an_address_and_sized() -> None:
    file = EvidenceFile("a #1?.jsonl.gz", "0" * 64, 2_100_000)
    page = page_of(replace(entry_of(demo_document()), evidence=(file,)))
    (item,) = [li for li in page.all(".dl li") if "Evidence" in li.text()]
    assert item.text() == "Evidence: a #1?.jsonl.gz 2.1 MB"
    assert item.one("a").attributes["href"] == "evidence/a%20%231%3F.jsonl.gz"


def test_every_page_of_a_site_is_in_one_piece() -> None:
    """The parser refuses a tag that isn't closed in its place; ids are unique on a page."""
    for path, data in render(site_content()):
        if path.suffix == ".html":
            ids = [node.attributes["id"] for node in parse(data).all("[id]")]
            assert len(ids) == len(set(ids)), path


def test_what_the_server_says_of_itself_and_its_preemptions_are_named() -> None:
    document = demo_document()
    said = {
        "readings": 150,
        "running_mean": 97.31,
        "waiting_mean": 0.5,
        "waiting_max": 12.0,
        "kv_max_pct": 99.5,
        "preemptions": 3,
        "ttft_p99_ms": [750.0, 1000.0],
    }
    document["configs"][0]["windows"][0]["server"] = said
    page = page_of(entry_of(document))
    tables = {node.attributes["aria-label"]: node for node in page.all("#windows .scroll")}
    assert tables["The server's own account"].text() == (
        "Window In the batch mean In the queue mean In the queue most Context memory % at most "
        "Preemptions Its p99 TTFT ms at most SLO 1 97.3 0.500 12 99.5 3 1,000 within"
    )
    assert "The server sent 3 sequences back to its queue" in page.one("#windows").text()
    assert "own account" not in "".join(tables.keys() - {"The server's own account"})
    assert "sent 3 sequences" not in demo_page().one("#windows").text()


def test_a_run_that_was_gone_on_with_says_so() -> None:
    stamps = ["2026-11-20T09:30:00Z", "2026-11-20T09:45:00Z"]
    text = page_of(entry_of(demo_document(resumed=stamps))).text()
    assert "10:08:27 UTC, gone on with after 2 interruptions" in text
    assert "gone on with" not in demo_page().text()
