"""Content for pages, made in memory: entries of documents, and a site of the demo documents."""

import copy
import hashlib
import json
from typing import Any

from tests.support.demo_run import as_bytes, demo_document, joined_document
from tests.support.dom import Node, parse
from tests.support.shared import ROOT, shared_path
from tokenwatt_site.documents import yamlfile
from tokenwatt_site.documents.hardware import known_hardware
from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.model import (
    Change,
    ComparisonEntry,
    Content,
    PageEntry,
    RunEntry,
    ShownFinding,
    SiteConfig,
    Waiver,
)
from tokenwatt_site.publish.render import render

SEED = "h200x4-deepseek-v4.1-flash-fp8-vllm"


def entry_of(
    document: dict[str, Any], findings: tuple[ShownFinding, ...] = (), raw: bytes | None = None
) -> RunEntry:
    """Return a document as the content folder would hold it."""
    data = raw if raw is not None else as_bytes(document)
    spec_yaml = yamlfile.dumps(document["spec"])
    return RunEntry(
        run=Run.model_validate(document),
        raw=data,
        sha256=hashlib.sha256(data).hexdigest(),
        spec_yaml=spec_yaml,
        spec_sha256=hashlib.sha256(spec_yaml.encode()).hexdigest(),
        path=f"runs/{document['id']}.json",
        findings=findings,
    )


def seed_entry() -> RunEntry:
    """Return the published seed with the findings that it is known for, its errors waived."""
    raw = shared_path(f"seed/{SEED}.json").read_bytes()
    listed = json.loads(shared_path("seed/findings.json").read_text(encoding="utf-8"))
    findings = tuple(
        ShownFinding(
            each["severity"],
            each["code"],
            each["pointer"],
            f"Sentence about {each['code']}.",
            "How to mend it.",
            Waiver("Disclosed.", "2026-10-27") if each["severity"] == "error" else None,
        )
        for each in listed
    )
    return entry_of(json.loads(raw), findings, raw)


def second_document() -> dict[str, Any]:
    """Return a run that uses a sixth less energy: for comparisons and curves."""
    document = joined_document()
    document |= {
        "id": "sim-llama-70b-h200x4-500w",
        "title": "Llama-3.1-70B on 4× H200 at 500 W with embedded 1.0",
        "configs": [document["configs"][1] | {"key": "baseline"}],
    }
    del document["configs"][0]["spec"]
    return document


def site_content(*more: RunEntry, with_seed: bool = True, base_url: str = "") -> Content:
    """Return the seed, two demo runs, a joined one, a comparison, pages and changes."""
    runs = [entry_of(demo_document()), entry_of(second_document()), entry_of(joined_document())]
    runs = [*([seed_entry()] if with_seed else []), *runs, *more]
    first, second = runs[-3 - len(more)].run.id, runs[-2 - len(more)].run.id
    return Content(
        config=SiteConfig(
            "tokenwatt",
            base_url,
            "the tokenwatt-site maintainers",
            "CC-BY-4.0",
            "https://creativecommons.org/licenses/by/4.0/",
        ),
        runs=tuple(runs),
        comparisons=(
            ComparisonEntry(
                "power-limit",
                "What a 500 W power limit costs",
                "**A 500 W limit saves energy and costs goodput.** Latency stays as it was.",
                (first, second),
                first,
                "## Notes\n\nBoth runs use the [method](/method/) of this site.",
                "compare/power-limit.md",
            ),
        ),
        pages=(
            PageEntry(
                "method",
                "Method",
                "## What is measured\n\nEnergy of p99 TTFT ≤ 2 s.\n\n## Load\n\nOpen loop.\n\n"
                "## Power\n\nSee the [results](/).\n",
                "pages/method.md",
                "How the figures are made.",
            ),
            PageEntry("about", "About", "Who runs this.", "pages/about.md"),
        ),
        hardware={
            "h200": known_hardware(ROOT / "content" / "hardware")["NVIDIA H200"],
        },
        changes=tuple(
            Change("2026-10-27", "new", (entry.run.id,), "First published run.")
            for entry in runs[:1]
        ),
    )


def page_of(entry: RunEntry) -> Node:
    """Return the page of one run, alone on its site."""
    content = Content(SiteConfig("site"), (entry,))
    wanted = f"runs/{entry.run.id}/index.html"
    return parse(next(data for path, data in render(content) if str(path) == wanted))


def changed(document: dict[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """Return the document with one value replaced."""
    document = copy.deepcopy(document)
    place: Any = document
    *way, last = [int(p) if p.isdigit() else p for p in pointer.strip("/").split("/")]
    for step in way:
        place = place[step]
    place[last] = value
    return document
