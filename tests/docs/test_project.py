"""The project's own papers agree with the project."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.support.shared import ROOT
from tokenwatt_site import __version__
from tokenwatt_site.documents import yamlfile
from tokenwatt_site.documents.run import METHOD_VERSION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def required() -> list[str]:
    """Return the names of everything that pyproject.toml asks for."""
    listed = [*PROJECT["project"]["dependencies"]]
    for more in (PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]):
        listed += [each for group in more.values() for each in group if isinstance(each, str)]
    return sorted({Requirement(each).name for each in listed})


@pytest.mark.parametrize("name", required())
def test_dependency_is_listed_with_release_and_reason(name: str) -> None:
    table = [line for line in CONTRIBUTING.splitlines() if line.startswith("|")]
    assert [line for line in table if re.search(rf"\b{re.escape(name)}\b.*\d{{4}}-\d{{2}}", line)]


def test_citation_is_of_this_version() -> None:
    citation = yamlfile.load(ROOT / "CITATION.cff").data
    assert (citation["version"], citation["license"]) == (__version__, "Apache-2.0")
    assert PROJECT["project"]["license"] == citation["license"]


def test_changelog_says_what_moves_a_number() -> None:
    assert "\n### Methodology\n" in CHANGELOG
    assert f"Method version {METHOD_VERSION}." in CHANGELOG


def test_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
