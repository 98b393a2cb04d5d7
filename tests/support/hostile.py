"""A folder of a stranger's, in which a program is run."""

from pathlib import Path

_MODULE = "from pathlib import Path\nPath({0!r}).write_text(__name__)\nraise SystemExit(9)\n"


def spoil(folder: Path, *names: str) -> None:
    """Put modules there that write the file ``ran`` beside them when something imports them."""
    for name in names:
        (folder / f"{name}.py").write_text(_MODULE.format(str(folder / "ran")), encoding="utf-8")
