"""docs/commands.md: every command with its help, as the program prints it.

``python -m tokenwatt_site.cli.reference FILE`` writes it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tokenwatt_site.cli import cli

_HEAD = """\
# Commands

<!-- Made by `make docs` from the commands themselves: edit those. -->

`tokenwatt-site` and `tokenwatt` are the same program. Exit codes and messages: [errors](errors.md).
"""
_WIDTH = 96


def reference() -> str:
    """Return the text of docs/commands.md."""
    parts = [_HEAD]
    for words, text in helps():
        parts.append(f"## {' '.join(words)}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


def helps() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words and the help of the program and of every command, subcommands included."""
    with click.Context(cli, info_name="tokenwatt-site", **cli.context_settings) as context:
        context.terminal_width = _WIDTH
        yield from _helps(cli, context)


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[tuple[str, ...], str]]:
    yield tuple(context.command_path.split()), command.get_help(context)
    if isinstance(command, click.Group):
        group: click.Group = command
        for name in group.list_commands(context):
            inner = group.get_command(context, name)
            if inner is not None:
                with click.Context(inner, info_name=name, parent=context) as below:
                    yield from _helps(inner, below)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
