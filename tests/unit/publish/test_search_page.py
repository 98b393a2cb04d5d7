"""What a run's page says of an adaptive search."""

from typing import Any

import pytest

from tests.support.demo_run import demo_document
from tests.support.dom import Node
from tests.support.site import entry_of, page_of
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.charts.load import load_of
from tokenwatt_site.publish.charts.sweep import Marking, boundary_of, rate_axis, sweep_charts
from tokenwatt_site.publish.views.search import search_view

SEARCH: dict[str, Any] = {
    "strategy": "adaptive",
    "mode": "standard",
    "probes": 13,
    "overrides": ["window_s"],
    "est_rps": 6.72,
    "interval_rps": [6.5856, 6.8544],
    "error_pct": 1.02,
    "bound_by": "tpot",
    "candidates": 3,
    "climbs": 1,
    "restarts": 1,
    "drift": True,
    "kappa": 1.0213,
    "corr": 0.912,
    "resid_se_pct": 1.8,
    "twin": "used",
    "model": {
        "fixed_s": 0.0022,
        "sequence_s": 5e-5,
        "root_s": 0.0011,
        "prefill_s": 0.0,
        "token_s": 1.47e-5,
        "square_s": 1e-9,
        "budget_tokens": 8192,
        "max_sequences": None,
    },
    "balanced": [
        {
            "index": 8,
            "drawn": 16,
            "taken": 6,
            "shares": [0.05, 0.03, 0.015, 0.007],
            "long_run": [0.05, 0.03, 0.015, 0.0075],
        }
    ],
}


def adaptive(**search: Any) -> dict[str, Any]:
    document = demo_document(search=SEARCH | search)
    document["spec"]["sweep"] = {"strategy": "adaptive", "mode": "standard", "start_rps": 1.0}
    document["verdict"] = {"word": "proven", "text": "40 of 9,750 requests missed a limit"}
    rungs = document["configs"][0]["sweep"]
    for rung in rungs:
        rung |= {"tail_s": 5.0, "inject": 12, "stationary": None}
    rungs[3] |= {"aborted": True, "stationary": False}
    return document


def page(**search: Any) -> Node:
    return page_of(entry_of(adaptive(**search)))


def facts(node: Node) -> dict[str, str]:
    rows = node.all("#search tr")
    return {row.one("th").text(): row.one("td").text() for row in rows}


def test_the_page_says_how_the_boundary_was_found() -> None:
    node = page()
    title = node.one("#search h2").text()
    assert title == "Search: proven, server noise limits this run to ± 2.0 %"
    text = node.one("#search p").text()
    assert text.startswith("Proven: the misses that were counted are at most 1 %, and the boundary")
    assert text.endswith("40 of 9,750 requests missed a limit.")
    found = facts(node)
    assert found["Reported rate"] == "6.50 requests/s, 3.3 % below the boundary by the twin"
    assert found["Boundary by the twin"] == (
        "6.72 requests/s, 95 % interval 6.59–6.85; TPOT sets it"
    )
    assert found["Mode"] == "standard; of its own: window_s"
    assert found["Windows"] == (
        "8 search windows, 5 confirm windows, 1 given up early, 1 not steady"
    )
    assert found["Rates tried in full windows"] == (
        "3, 1 given up for a higher rate, 1 given up for drift"
    )
    assert found["Drift"] == "the server’s speed changed while it was measured"
    assert found["Twin"] == "used"
    assert found["Correlation with the server"] == "0.91 (blocks of 30 s)"
    assert found["Speed factor κ"] == "1.021"
    assert found["Unexplained"] == "1.80 % of the latency"
    assert found["Balanced schedules"] == (
        "of 16 random ones, number 7 for window 8; the last misses 0.70 % on the twin, the long run"
        " 0.75 %"
    )
    assert found["A step"] == "2.2 ms"
    assert found["Sequences at once"] == "none seen"


def test_a_twin_that_was_of_no_use_is_told_with_the_reason() -> None:
    reason = "its error is unknown"
    node = page(twin="unused", twin_reason=reason, model=None, est_rps=None, interval_rps=None)
    assert node.one("#search h2").text() == "Search: proven"
    found = facts(node)
    assert found["Twin"] == f"unused ({reason})"
    assert "Boundary by the twin" not in found
    assert "A step" not in found


def test_the_sweep_marks_reported_rate_and_estimate() -> None:
    run = Run.model_validate(adaptive())
    load = load_of(run, run.configs[0])
    boundary = boundary_of(load)
    assert boundary is not None
    assert boundary.text == "reported 6.50"
    assert (boundary.estimate, boundary.between) == (6.72, (6.5856, 6.8544))
    node = page()
    assert node.one("#sweep h2").text() == "The limit lies near 6.72 requests/s; 6.50 is confirmed"
    assert node.one("#sweep p").text() == (
        "Short rungs from 1.00 requests/s, then windows near the boundary. Dashed: the boundary by "
        "the twin. Grey: its 95 % interval."
    )
    assert len(node.all("#sweep-tpot .est")) == 1


def test_the_axis_reaches_the_estimate() -> None:
    run = Run.model_validate(adaptive(est_rps=12.0))
    assert rate_axis(load_of(run, run.configs[0])).hi >= 12.0


def test_pooled_counts_make_the_reported_rate_a_boundary() -> None:
    """One of the confirm windows may miss more than 1 %, all of them together may not."""
    document = adaptive()
    config = document["configs"][0]
    config["windows"][0]["passed"] = False
    config["slo_pass_count"] = 4
    run = Run.model_validate(document)
    assert load_of(run, run.configs[0]).is_boundary
    config["counts"]["miss_tpot"] = 98
    run = Run.model_validate(document)
    assert not load_of(run, run.configs[0]).is_boundary


def test_a_short_rung_is_judged_by_its_share() -> None:
    document = adaptive()
    rung = document["configs"][0]["sweep"][0]
    rung |= {"passed": False, "counts": rung["counts"] | {"miss_tpot": 0}}
    run = Run.model_validate(document)
    passed = {p.rate_rps: p.passed for p in load_of(run, run.configs[0]).points}
    assert (passed[1.0], passed[7.0]) == (True, False)
    rows = page_of(entry_of(document)).all("#windows details tr")
    verdicts = [row.all("td")[-1].text() for row in rows if row.all("td")]
    assert verdicts[0] == "within"
    assert verdicts[3] == "outside, given up"


@pytest.mark.parametrize("word", ["proven", "met", "failed", "undecided", "no_rate"])
def test_every_word_has_a_meaning(word: str) -> None:
    run = Run.model_validate(adaptive() | {"verdict": {"word": word, "text": ""}})
    view = search_view(run, run.configs[0])
    assert view is not None
    assert view.text.startswith(f"{word.replace('_', ' ').capitalize()}: ")
    assert view.title.startswith(f"Search: {word.replace('_', ' ')}")


def test_a_ladder_says_nothing_of_it() -> None:
    run = Run.model_validate(demo_document())
    assert search_view(run, run.configs[0]) is None
    charts = sweep_charts(load_of(run, run.configs[0]), run.slo, Marking())
    assert charts[0].panels[0].boundary is not None
    assert charts[0].panels[0].boundary.estimate is None
