"""What README and docs tell a reader to type exists, and what they link to is there."""

import re
import shlex
from pathlib import Path

import click
import pytest

from tests.support.shared import ROOT
from tokenwatt_site.cli import cli

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def fenced(page: Path) -> str:
    """Return the shell blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))


def typed(*programs: str) -> list[str]:
    """Return every command line of these programs that a page tells a reader to type."""
    return sorted({line for _, line in lines() if words(line)[0] in programs})


def lines() -> list[tuple[str, str]]:
    """Return page and line of every command that a page tells a reader to type."""
    specs = [path.relative_to(ROOT) for path in sorted((ROOT / "specs").glob("*.yaml"))]
    found = [(page.name, fenced(page)) for page in PAGES]
    found += [(path.name, comments(ROOT / path)) for path in specs]
    return [
        (page, line.strip())
        for page, text in found
        for line in text.replace("\\\n", " ").splitlines()
        if line.strip() and not line.startswith("#")
    ]


def comments(path: Path) -> str:
    """Return the commands in a ready spec's comments: those indented like a block."""
    text = path.read_text(encoding="utf-8").replace("\\\n#", "")
    return "\n".join(re.findall(r"^#   +((?:tokenwatt\S*|python|make) .*)", text, re.MULTILINE))


def words(line: str) -> list[str]:
    return shlex.split(line.removesuffix("&"), comments=True)


def parse(arguments: list[str]) -> None:
    """Parse a command line with the program's own parser; run nothing."""
    command: click.Command = cli
    context = click.Context(cli, info_name="tokenwatt-site", **cli.context_settings)
    while isinstance(command, click.Group):
        name, *arguments = arguments
        inner = command.get_command(context, name)
        assert inner is not None, f"no command {name}"
        command, context = inner, click.Context(inner, info_name=name, parent=context)
    command.make_context(context.info_name, arguments, parent=context.parent)


@pytest.fixture
def files_of_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where a reader stands: the checkout, and the files that earlier commands wrote."""
    for name in ("specs", "content", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "runs").mkdir()
    for name in ("runs/demo.json", "runs/mine.json", "my.spec.yaml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("files_of_the_reader")
@pytest.mark.parametrize("line", typed("tokenwatt-site", "tokenwatt"))
def test_command_line_parses(line: str) -> None:
    parse(words(line)[1:])


@pytest.mark.parametrize("line", typed("make"))
def test_make_target_exists(line: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{words(line)[1]}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("line", typed("python"))
def test_script_exists(line: str) -> None:
    script = ROOT / words(line)[1]
    assert script.is_file() or (script / "__main__.py").is_file()


def test_readme_types_what_the_slices_deliver() -> None:
    found = {" ".join(words(line)[:2]) for page, line in lines() if page == "README.md"}
    commands = ("spec", "validate", "measure", "simulate", "report", "build")
    assert {"make demo", "make test", *(f"tokenwatt-site {each}" for each in commands)} <= found


def test_links_lead_somewhere() -> None:
    found = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert found
    gone = [f"{page.name}: {link}" for page, link in found if not (page.parent / link).exists()]
    assert gone == []
