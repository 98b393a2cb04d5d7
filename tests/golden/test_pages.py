"""Small stable pieces of pages, byte for byte.

``TOKENWATT_UPDATE_GOLDEN=1 pytest tests/golden/test_pages.py`` writes them anew: read the diff.
"""

import os
import re
from pathlib import Path, PurePosixPath

import pytest

from tests.support.demo_run import demo_document, joined_document
from tests.support.site import entry_of, seed_entry
from tokenwatt_site.publish.model import Content, RunEntry, SiteConfig
from tokenwatt_site.publish.render import render

FOLDER = Path(__file__).parent / "pages"
PIECES = {
    "seed-headline.html": ("seed", r'<dl class="heads">.*?</dl>'),
    "seed-fleet.html": ("seed", r'<section id="fleet">.*?</section>'),
    "rich-sweep-tpot.html": ("rich", r'<figure class="fig" id="sweep-tpot">.*?</figure>'),
    "rich-windows.html": ("rich", r'<section id="windows">.*?</section>'),
    "joined-differences.html": ("joined", r'<table class="delta">.*?</table>'),
}


def entry(name: str) -> RunEntry:
    if name == "seed":
        return seed_entry()
    return entry_of(demo_document() if name == "rich" else joined_document())


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_of_a_page_is_as_it_was(piece: str) -> None:
    name, pattern = PIECES[piece]
    run = entry(name)
    path = PurePosixPath("runs") / run.run.id / "index.html"
    page = next(data for at, data in render(Content(SiteConfig("s"), (run,))) if at == path)
    found = re.findall(pattern, page.decode(), re.DOTALL)
    assert len(found) == 1
    golden = FOLDER / piece
    if os.environ.get("TOKENWATT_UPDATE_GOLDEN") == "1":
        golden.write_text(found[0] + "\n", encoding="utf-8")
    assert found[0] + "\n" == golden.read_text(encoding="utf-8")
