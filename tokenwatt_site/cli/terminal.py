"""What may go to a terminal: words of servers and files are strangers' words."""

import unicodedata

import click

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_KEPT = "\n\u2060"  # our own figures hold their units with word joiners


def printable(text: str) -> str:
    r"""Return a text with its control characters as visible escapes; lines stay lines.

    >>> printable("evil\x1b]0;title\x07")
    'evil\\x1b]0;title\\x07'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def say(text: str, *, err: bool = False) -> None:
    """Print a text that may hold strangers' words."""
    click.echo(printable(text), err=err)


def _visible(char: str) -> str:
    if char in _KEPT or unicodedata.category(char) not in _HIDDEN:
        return char
    return char.encode("unicode_escape").decode("ascii")
