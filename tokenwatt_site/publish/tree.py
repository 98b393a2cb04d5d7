"""The content folder as it is at one moment: read once, symlinks not followed."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tokenwatt_site.errors import UsageError
from tokenwatt_site.publish.problems import Problem, Severity

TEXT = (".json", ".yaml", ".md")
_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tree:
    """A snapshot: what is read can't change while a build works on it."""

    root: Path
    files: Mapping[str, bytes]
    """Texts by path relative to the root, with slashes."""
    blobs: Mapping[str, Path]
    """Evidence, which stays on the disk, by path relative to the root."""
    problems: tuple[Problem, ...]

    def name(self, path: str) -> str:
        """Return how a file is named in messages."""
        return (self.root / path).as_posix()

    def digest(self) -> str:
        """Return a hash of the content, the same however often files are touched."""
        whole = hashlib.sha256()
        for path, data in self.files.items():
            whole.update(f"{path}\0{len(data)}\0".encode())
            whole.update(data)
        for path, place in self.blobs.items():
            whole.update(f"{path}\0{place.stat().st_size}\0".encode())
        return whole.hexdigest()


def read_tree(root: Path) -> Tree:
    """Read a content folder.

    Raises:
        UsageError: there is no such folder.
    """
    if not root.is_dir():
        raise UsageError(
            f"{root}: no such folder", "run where content/ is, or name it with --content DIR"
        )
    files: dict[str, bytes] = {}
    blobs: dict[str, Path] = {}
    problems: list[Problem] = []
    links: list[str] = []
    for entry in _walk(root, links, problems):
        path = Path(entry.path).relative_to(root).as_posix()
        if _is_evidence(path) and entry.is_file():
            blobs[path] = Path(entry.path)
        elif path.endswith(TEXT):
            _read(entry, path, files, problems)
        else:
            text = f"{_shown(entry.path)}: isn't content of a kind known here"
            problems.append(Problem("warning", text, "move it out of the content folder", path))
    if links:
        more = f" and {len(links) - 1} more" if len(links) > 1 else ""
        text = f"{_shown(links[0])}{more}: symbolic links aren't followed"
        problems.append(Problem("warning", text, "copy the file in its place"))
    return Tree(root, files, blobs, tuple(problems))


def _walk(folder: Path, links: list[str], problems: list[Problem]) -> Iterator[os.DirEntry[str]]:
    """Yield what is below a folder in the order of names; hidden and backup files are left out.

    A folder named like a text file is yielded itself.
    """
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Problem("error", f"{folder}: {error.strerror}", "mend its rights"))
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith("~"):
            continue
        if entry.is_symlink():
            links.append(entry.path)
        elif entry.is_dir() and not entry.name.endswith(TEXT):
            yield from _walk(Path(entry.path), links, problems)
        else:
            yield entry


def _is_evidence(path: str) -> bool:
    """``runs/<id>/evidence/…``."""
    parts = PurePosixPath(path).parts
    return parts[:1] == ("runs",) and parts[2:3] == ("evidence",) and len(parts) > 3  # noqa: PLR2004


def _read(
    entry: os.DirEntry[str], path: str, files: dict[str, bytes], problems: list[Problem]
) -> None:
    what, hint = "", "mend its rights"
    try:
        if not entry.is_file():
            what, hint = "not a file", "rename or remove it"
        elif entry.stat().st_size > _MAX_BYTES:
            what, hint = f"larger than {_MAX_BYTES} bytes", "this is no content of ours"
        else:
            files[path] = Path(entry.path).read_bytes()
    except OSError as error:
        what = error.strerror or str(error)
    if what:
        severity = severity_of(path)
        problems.append(Problem(severity, f"{_shown(entry.path)}: {what}", hint, path))


def severity_of(path: str) -> Severity:
    """Return how much an unreadable file weighs: a run is left out, others stop the build."""
    return "warning" if path.startswith("runs/") else "error"


def _shown(path: str) -> str:
    """A path for messages, also where its bytes aren't UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()
