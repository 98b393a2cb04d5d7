"""The example of docs/mbu.md is what the program says, and every known type is listed."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.shared import ROOT
from tokenwatt_site.cli.mbu import mbu
from tokenwatt_site.documents.hardware_table import table
from tokenwatt_site.method.models.read import known_types

PAGE = (ROOT / "docs" / "mbu.md").read_text(encoding="utf-8")


def block(kind: str, after: str) -> str:
    """Return the first block of a kind after a heading."""
    found = re.search(rf"```{kind}\n(.*?)```", PAGE.partition(after)[2], re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_what_the_program_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = "## By hand"
    (tmp_path / "config.json").write_text(block("json", after), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(block("sh", after))
    assert words[:2] == ["tokenwatt-site", "mbu"]
    said = CliRunner().invoke(mbu, words[2:], catch_exceptions=False).output
    assert said == block("text", after)
    assert "= 63.4 %" in said


def test_every_known_type_is_listed() -> None:
    listed = PAGE.partition("Model types:")[2].partition("A key")[0]
    names = {word.strip(".,") for word in listed.split()}
    missing = {name for name in known_types() if name.removesuffix("_text") not in names}
    assert missing == {"deepseek_ref"}  # another name of deepseek_v4


def test_the_hardware_page_is_that_of_the_files() -> None:
    """Stale: run `make docs`."""
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    assert page == table(ROOT / "content" / "hardware")
