"""The reference pages name every command, option, error and power source there is."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import click
import pytest

from tests.support.shared import ROOT
from tokenwatt_site import errors
from tokenwatt_site.cli import COMMANDS, cli
from tokenwatt_site.cli.reference import helps
from tokenwatt_site.documents.spec import PowerSource
from tokenwatt_site.power import METERS

ERRORS = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.TokenwattError)
]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def row(name: str, first: str) -> list[str]:
    """Return the cells of the table row that starts with this code."""
    found = re.findall(rf"^\| `{first}` \|(.*)\|$", page(name), re.MULTILINE)
    assert len(found) == 1, f"docs/{name} has {len(found)} rows for {first}"
    return [cell.strip() for cell in found[0].split("|")]


def test_commands_page_is_that_of_the_program(tmp_path: Path) -> None:
    """Stale: run `make docs`. In a program of its own: a command that was run keeps its options."""
    made = tmp_path / "commands.md"
    subprocess.run([sys.executable, "-m", "tokenwatt_site.cli.reference", made], check=True)
    assert page("commands.md") == made.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_documented(name: str) -> None:
    assert f"\n## tokenwatt-site {name}\n" in page("commands.md")


def options() -> list[tuple[str, str]]:
    """Return every command with each of its options, subcommands too."""
    found: list[tuple[str, str]] = []
    for path, _ in helps():
        command: click.Command = cli
        for name in path[1:]:
            assert isinstance(command, click.Group)
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            command = inner
        found += [
            (" ".join(path), parameter.opts[0])
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.hidden
        ]
    return found


def test_every_option_is_documented_with_a_sentence() -> None:
    text = page("commands.md")
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    silent = [
        f"{command} {option}"
        for command, option in options()
        if not re.search(rf"{option}\b[^\n]*(\n {{20,}})? {{2,}}\S", sections[command])
    ]
    assert silent == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_error_is_documented_with_its_exit_code(error: type[errors.TokenwattError]) -> None:
    code, when, what_to_do = row("errors.md", error.__name__)
    assert code == str(error.exit_code)
    assert when
    assert what_to_do


def test_every_exit_code_is_explained() -> None:
    listed = re.findall(r"^\| (\d+) \|", page("errors.md"), re.MULTILINE)
    assert {int(code) for code in listed} == {0, *(error.exit_code for error in ERRORS)}


def test_errors_page_names_no_error_that_is_gone() -> None:
    named = re.findall(r"^\| `(\w+)` \|", page("errors.md"), re.MULTILINE)
    assert set(named) == {error.__name__ for error in ERRORS}


@pytest.mark.parametrize("source", get_args(PowerSource))
def test_power_source_is_documented_with_its_state(source: str) -> None:
    _, _, state = row("power.md", source)
    read = source in METERS or source == "none"
    assert state == ("read" if read else "not yet")
