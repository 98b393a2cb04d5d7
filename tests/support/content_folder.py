"""A content folder to build from: small, whole, and broken by a test where it wants."""

from pathlib import Path

from tests.support.demo_run import as_bytes, demo_document

SITE = "title: Test site\n"
PAGE = "---\ntitle: About\n---\nRead the [run](/runs/one/).\n"
COMPARISON = """---
title: One against two
runs: [one, two]
baseline: one
claim: They are **the same**.
---
See [about](/about/).
"""
CHANGES = "- {date: 2026-11-20, runs: [one], kind: new, reason: First.}\n"
HARDWARE = """name: NVIDIA H200
vendor: NVIDIA
rated_bw_tbs: {value: 4.8, source: somewhere, as_of: 2026-11-30, checked: true}
"""


def content_folder(root: Path) -> Path:
    """Write a content folder with one of everything and two runs; return it."""
    files = {
        "site.yaml": SITE.encode(),
        "changes.yaml": CHANGES.encode(),
        "pages/about.md": PAGE.encode(),
        "compare/one-two.md": COMPARISON.encode(),
        "hardware/h200.yaml": HARDWARE.encode(),
        "runs/one.json": run_bytes("one"),
        "runs/two.json": run_bytes("two"),
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def run_bytes(run_id: str, **changes: object) -> bytes:
    """Return a demo document of that id."""
    return as_bytes(demo_document(**({"id": run_id, "evidence": None} | changes)))
