"""Which modules a list of names in a quantisation block means."""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any

from tokenwatt_site.errors import UsageError

MOST_NAMES = 50_000
LONGEST_NAME = 300
MOST_WAYS = 64
_PREFIX = re.compile(
    r"^(language_model\.model\.|model\.language_model\.|language_model\.|model\.|backbone\.)"
)
_GROUP = re.compile(r"\(([\w|]*)\)")
_PLAIN = re.compile(r"[\w.*?-]*")


class Names:
    """Names, patterns with ``*`` and the simple regular expressions of compressed-tensors.

    A name means the module, everything below it, and a module of that name wherever it stands
    ("gate"); one below a module of ours (a single expert) means that module.

    Args:
        names: the list, as parsed.
        where: the key it stands under, for messages.

    Raises:
        UsageError: naming the entry that isn't understood.
    """

    def __init__(self, names: Iterable[Any], where: str) -> None:
        self._exact: set[str] = set()
        self._above: set[str] = set()
        globs: list[str] = []
        for count, name in enumerate(names):
            if not isinstance(name, str) or len(name) > LONGEST_NAME or count >= MOST_NAMES:
                raise _refuse(where, str(name))
            for plain in _expanded(name, where) if name.startswith("re:") else [name]:
                stripped = _PREFIX.sub("", plain)
                if "*" in stripped or "?" in stripped:
                    globs += [stripped, f"{stripped}.*"]
                elif stripped:
                    self._add(stripped)
        self._globs = re.compile("|".join(map(translate, globs))) if globs else None

    def _add(self, name: str) -> None:
        self._exact.add(name)
        parts = name.split(".")
        self._above.update(".".join(parts[:end]) for end in range(3, len(parts)))

    def hold(self, path: str) -> bool:
        """Tell whether the list means the module ``path``."""
        parts = path.split(".")
        windows = (
            ".".join(parts[start:end])
            for start in range(len(parts))
            for end in range(start + 1, len(parts) + 1)
        )
        return (
            any(window in self._exact for window in windows)
            or path in self._above
            or (self._globs is not None and self._globs.match(path) is not None)
        )


def _expanded(name: str, where: str) -> list[str]:
    r"""Return a regular expression of names and alternatives as patterns with ``*``.

    A stranger's expression is never run: only ``.*``, ``\.``, ``(a|b)``, ``^`` and ``$`` are read.
    """
    body = name.removeprefix("re:").removeprefix("^")
    open_end = not body.endswith("$")
    ways = [body.removesuffix("$").replace(r"\.", ".").replace(".*", "*")]
    while any("(" in way for way in ways):
        if len(ways) > MOST_WAYS:
            raise _refuse(where, name)
        grown: list[str] = []
        for way in ways:
            found = _GROUP.search(way)
            if found is None:
                raise _refuse(where, name)
            choices = found[1].split("|")
            grown += [way[: found.start()] + choice + way[found.end() :] for choice in choices]
        ways = grown
    if not all(_PLAIN.fullmatch(way) for way in ways):
        raise _refuse(where, name)
    return [f"{way}*" if open_end and not way.endswith("*") else way for way in ways]


def _refuse(where: str, name: str) -> UsageError:
    shown = "".join(c if c.isprintable() else "?" for c in name)[:80]
    return UsageError(
        f"config.json: {where}: the entry {shown!r} isn't understood",
        "say the data type of the weights in the spec's model.weight_dtype, or --weight-dtype",
    )
