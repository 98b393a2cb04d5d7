"""What a decode step reads, on a run's page."""

from typing import Any

from tests.support.configs import real_model
from tests.support.demo_run import demo_document
from tests.support.dom import Node
from tests.support.site import entry_of, page_of
from tokenwatt_site.method.mbu import Machine, Step, block, mbu


def document(**changes: Any) -> dict[str, Any]:
    found = demo_document()
    model = real_model("deepseek-ai--DeepSeek-V4-Flash")
    result = mbu(model, Step(32, 2154, 40), Machine(4.8, tensor_parallel=4))
    found["configs"][0] |= {"mbu_pct": result.pct, "mbu": block(result, "f" * 64) | changes}
    found.get("missing", {}).pop("/configs/0/mbu_pct", None)
    return found


def page(**changes: Any) -> Node:
    return page_of(entry_of(document(**changes)))


def rows(node: Node) -> list[list[str]]:
    table = node.all("#config table")[-1]
    return [[cell.text() for cell in row.children] for row in table.all("tbody tr")]


def test_every_term_has_its_row_and_they_add_up() -> None:
    found = document()["configs"][0]["mbu"]
    shown = rows(page())
    assert len(shown) == len(found["terms"]) + 1
    by = {row[0]: row for row in shown}
    assert by["experts"][1] == "mxfp4"
    assert "of 256 experts" in by["experts"][2]
    assert by["Bytes per step"][2] == "batch 32.0, context 2,154 tokens, 136 experts a layer"
    total = sum(float(row[-1].replace(",", "")) for row in shown[:-1])
    assert abs(total - float(shown[-1][-1].replace(",", ""))) < 0.01


def test_the_headline_says_what_it_rests_on() -> None:
    note = page().all('[data-figure="mbu_pct"] .n')[0].text()
    assert note.startswith("MBU, batch 32.0, context 2,154 tokens, 136 experts a layer")


def test_words_of_a_document_are_escaped() -> None:
    hostile = [{"name": "<script>x</script>", "dtype": "x", "formula": "<b>1</b>", "bytes": 1e9}]
    shown = rows(page(terms=hostile))
    assert shown[0][0] == "<script>x</script>"
    assert shown[0][2] == "<b>1</b>"


def test_a_document_without_it_has_no_table() -> None:
    assert not page_of(entry_of(demo_document())).all("#config caption")
