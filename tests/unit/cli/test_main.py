"""The outermost layer: whatever happens in a command is one message and an exit code."""

import os
import signal
import sys
import tomllib
from pathlib import Path

import click
import pytest

from tests.support.program import run, started, write_spec
from tests.support.shared import ROOT
from tokenwatt_site import cli
from tokenwatt_site.__main__ import main as outermost
from tokenwatt_site.cli.progress import teller
from tokenwatt_site.cli.terminal import printable
from tokenwatt_site.errors import ServerError

ESCAPE = "\x1b]0;pwned\x07"


def wrapped() -> Exception:
    """An interrupt as some libraries hand it on: as an error of their own."""
    error = RuntimeError("can't build a class")
    error.__cause__ = KeyboardInterrupt()
    return error


def main_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the program with a command that raises; return its exit code."""

    @click.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: fails)
    monkeypatch.setattr(sys, "argv", ["tokenwatt-site", "measure"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    code = end.value.code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize(
    "error", [KeyError("x"), OSError(36, "File name too long"), RecursionError("deep")]
)
def test_what_nobody_foresaw_is_one_line_and_a_next_step(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(error, monkeypatch) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"unexpected: {type(error).__name__}: ")
    assert second.startswith("  next: ")
    assert "report it" in second


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), wrapped(), ValueError("Error building validator: KeyboardInterrupt: ")],
)
def test_ctrl_c_is_an_interrupt_whatever_it_came_as(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(error, monkeypatch) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_ctrl_c_while_a_command_loads_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", interrupted)
    monkeypatch.setattr(sys, "argv", ["tokenwatt-site", "measure"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted"


class _Interrupting:
    """An importer during which Ctrl-C comes."""

    def find_spec(self, *_: object) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_while_the_program_loads_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "tokenwatt_site.cli")
    monkeypatch.setattr(sys, "meta_path", [_Interrupting()])
    with pytest.raises(SystemExit) as end:
        outermost()
    assert end.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_the_scripts_start_inside_the_guard() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "scripts"
    ]
    assert set(scripts.values()) == {"tokenwatt_site.__main__:main"}


def test_control_characters_of_an_error_are_shown_and_not_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(ServerError(f"no {ESCAPE}", "wait\x9b2J"), monkeypatch) == 1
    assert capsys.readouterr().err == "error: no \\x1b]0;pwned\\x07\n  next: wait\\x9b2J\n"


def test_control_characters_of_a_note_are_shown_and_not_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    teller(as_json=False)({"event": "note", "about": "server", "text": f"evil{ESCAPE}"})
    assert capsys.readouterr().err == "server: evil\\x1b]0;pwned\\x07\n"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a\nb", "a\nb"),
        ("5.09\u00a0requests\u2060/\u2060s – é 漢", "5.09\u00a0requests\u2060/\u2060s – é 漢"),
        ("a\rb\tc", "a\\rb\\tc"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("\u2028", "\\u2028"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_name_too_long_for_the_disk_is_no_traceback(tmp_path: Path) -> None:
    write_spec(tmp_path / "s.yaml")
    code, said = run("measure", "s.yaml", "--out", "n" * 300 + ".json", cwd=tmp_path)
    assert code in (1, 2)
    assert "Traceback" not in said
    assert "next: " in said


def test_a_signal_before_the_measurement_is_no_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "s.yaml"
    os.mkfifo(fifo)
    with started("measure", str(fifo), cwd=tmp_path) as process, fifo.open("w"):
        # the program has opened its spec and waits for it
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip() == "interrupted"
