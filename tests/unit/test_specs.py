"""The specs that come with the program are valid and say what they are for."""

from pathlib import Path

import pytest

from tests.support.shared import ROOT
from tokenwatt_site.documents.doors import load_spec

SPECS = sorted((ROOT / "specs").glob("*.spec.yaml"))


def test_there_are_specs_for_the_demo_and_for_llamacpp() -> None:
    names = {path.name for path in SPECS}

    assert {"demo.spec.yaml", "llamacpp.spec.yaml", "llamacpp-chat.spec.yaml"} <= names


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_a_spec_is_valid_and_names_its_search(path: Path) -> None:
    spec = load_spec(path)

    assert spec.sweep.strategy is not None  # one that names none carries a warning
    assert spec.not_covered


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_a_spec_says_what_it_measures_and_how_long_it_takes(path: Path) -> None:
    header = path.read_text(encoding="utf-8").partition("\nname:")[0]

    assert all(line.startswith("#") for line in header.splitlines())
    assert "# What it measures: " in header
    assert "# How long it takes: " in header
    assert f"tokenwatt-site measure specs/{path.name}" in header
