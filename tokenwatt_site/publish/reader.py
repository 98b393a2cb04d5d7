"""Reads the files of a content folder one by one and keeps what is wrong with them."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TypeVar

from tokenwatt_site.documents import yamlfile
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.publish import content_files as files
from tokenwatt_site.publish.problems import Problem
from tokenwatt_site.publish.tree import Tree, severity_of

T = TypeVar("T")
_SLUG = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_TOP = ("site.yaml", "waivers.yaml", "changes.yaml")
_PLACES = (("runs", ".json"), ("compare", ".md"), ("pages", ".md"), ("hardware", ".yaml"))


class Reader:
    """A tree, and the problems found in it so far."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.problems = list(tree.problems)
        self._collisions()
        self._strangers()

    def within(self, folder: str) -> list[tuple[str, str]]:
        """Return path and stem of the files of a folder whose names can be addresses."""
        suffix = dict(_PLACES)[folder]
        found: list[tuple[str, str]] = []
        for path in self.tree.files:
            pure = PurePosixPath(path)
            if pure.parent.as_posix() != folder or pure.suffix != suffix:
                continue
            if _SLUG.fullmatch(pure.stem):
                found.append((path, pure.stem))
            else:
                text = (
                    f"{self.tree.name(path)}: a name has lower-case letters, digits, . and - only"
                )
                self.note(path, text, "rename the file")
        return found

    def note(self, path: str, text: str, hint: str = "") -> None:
        """Keep a problem of a file; it weighs what the file weighs."""
        self.problems.append(Problem(severity_of(path), text, hint, path))

    def attempt(self, path: str, read: Callable[[], T]) -> T | None:
        """Read one file; return None and note the error if that fails."""
        try:
            return read()
        except TokenwattError as error:
            self.note(path, error.what, error.hint)
            return None

    def yaml(
        self, model: type[files.Model], path: str
    ) -> tuple[files.Model, yamlfile.YamlFile] | None:
        """Read a YAML file as ``model``, with the file that knows the lines."""
        raw, name = self.tree.files[path], self.tree.name(path)
        return self.attempt(path, lambda: files.parse(model, raw, name))

    def markdown(
        self, model: type[files.Model], path: str
    ) -> tuple[files.Model, yamlfile.YamlFile, str, int] | None:
        """Read a Markdown file: front matter as ``model``, its lines, the body, its first line."""
        raw, name = self.tree.files[path], self.tree.name(path)

        def read() -> tuple[files.Model, yamlfile.YamlFile, str, int]:
            front, body, first_line = files.split_front(raw, name)
            return *files.parse(model, front, name), body, first_line

        return self.attempt(path, read)

    def _collisions(self) -> None:
        """Two names that some file systems or servers take for one."""
        seen: dict[str, str] = {}
        for path in [*self.tree.files, *self.tree.blobs]:
            one = seen.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
            if one != path:
                text = f"{self.tree.name(one)} and {self.tree.name(path)}: one name to some systems"
                self.problems.append(Problem("error", text, "rename one of them", path))

    def _strangers(self) -> None:
        """Files in places where nothing is looked for."""
        for path in self.tree.files:
            pure = PurePosixPath(path)
            if path not in _TOP and (pure.parent.as_posix(), pure.suffix) not in _PLACES:
                text = f"{self.tree.name(path)}: not a place where content is looked for"
                self.problems.append(
                    Problem("warning", text, "docs/content.md shows the folder", path)
                )
