"""The only writer of run documents and their evidence: atomic, appended as the run goes.

``runs/<stem>.json`` is the document, ``runs/<stem>/`` its evidence. Rows are appended in blocks,
one gzip member a block, each synced before the document that names its length and hash is
replaced; so a run that is killed leaves a valid document whose evidence is whole, at most with a
tail behind it that the document doesn't name.
"""

import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any

from tokenwatt_site.documents import doors, jsonfile
from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.errors import TokenwattError, UsageError

_EVIDENCE = re.compile(
    r"(schedule|events)\.jsonl|(requests|trace|server)\.jsonl\.gz|power(-\d+)?\.jsonl\.gz"
)


class RunStore:
    """The files of one run."""

    def __init__(self, out: Path, *, force: bool = False, resume: bool = False) -> None:
        """Check the place of a run; nothing is written or removed before ``begin``.

        Args:
            out: the document's path, ``….json``; the evidence goes into the folder of that stem.
            force: replace a document and evidence that exist.
            resume: go on with them; what ``keep`` isn't told of is cut off when the run begins.

        Raises:
            UsageError: not a ``.json`` path, exists already, is written by another process, or
                can't be written.
        """
        if out.suffix != ".json":
            raise UsageError(f"{out}: a run document's name ends in .json", f"--out {out}.json")
        self.out = out
        self.folder = out.with_suffix("")
        self._hashes: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self._resume = resume
        self._unlock: Callable[[], object] = lambda: None
        try:
            taken, ours = self._taken(), self._is_ours()
            out.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=out.parent):
                pass
        except OSError as error:
            raise UsageError(
                f"{error.filename or out}: {error.strerror or error}",
                "choose an --out that can be written",
            ) from None
        if not ours:
            raise UsageError(
                f"{self.folder} holds files that are no evidence of a run", "choose another --out"
            )
        if resume and (link := self._link()):
            raise UsageError(
                f"{link} is a link: what it points to may be another run's",
                "go on with the run where its files are",
            )
        if taken and not (force or resume):
            raise UsageError(
                f"{taken[0]} exists already",
                "choose another --out, --force to replace it, or --resume to go on with it",
            )
        if self.folder.is_dir() and not self.folder.is_symlink():
            self._lock()

    def keep(self, name: str, data: bytes) -> None:
        """Let a resumed run go on behind these first bytes of an evidence file."""
        self._hashes[name] = hashlib.sha256(data)
        self._sizes[name] = len(data)

    def begin(self) -> None:
        """Remove what the run replaces; only now, since a server that is dead costs no old run.

        A resumed one keeps its document, and loses what a kill left behind its evidence.
        """
        with _told(self.out):
            if self._resume:
                self._cut()
                return
            for path in self._taken():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            self.folder.mkdir()
            self._lock()

    def close(self) -> None:
        """Let other processes write here."""
        self._unlock()

    def _cut(self) -> None:
        for path in self.folder.iterdir():
            if path.name not in self._sizes:
                if _EVIDENCE.fullmatch(path.name):
                    path.unlink()
                continue
            with path.open("r+b") as file:
                file.truncate(self._sizes[path.name])
                os.fsync(file.fileno())

    def _lock(self) -> None:
        """Keep other processes from writing the same run: it ends with this one, however it ends.

        Raises:
            UsageError: another process does.
        """
        self._unlock()
        folder = os.open(self.folder, os.O_RDONLY)
        self._unlock = weakref.finalize(self, os.close, folder)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{self.out} is being measured by another process",
                "wait until it has ended, or choose another --out",
            ) from None
        except OSError:
            return  # a file system without locks

    def _is_ours(self) -> bool:
        """Tell whether the folder, if it exists, holds nothing but evidence."""
        if self.folder.is_symlink() or not self.folder.exists():
            return True
        return self.folder.is_dir() and all(
            _EVIDENCE.fullmatch(path.name) for path in self.folder.iterdir()
        )

    def _link(self) -> Path | None:
        """Return what isn't a file of this run's own."""
        inside = self.folder.iterdir() if self.folder.is_dir() else ()
        return next((path for path in (self.folder, *inside) if path.is_symlink()), None)

    def _taken(self) -> list[Path]:
        return [path for path in (self.out, self.folder) if path.exists() or path.is_symlink()]

    def append(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        """Append rows to a ``.jsonl`` or ``.jsonl.gz`` evidence file and sync it."""
        text = "".join(_line(row) for row in rows).encode()
        block = gzip.compress(text, compresslevel=6, mtime=0) if name.endswith(".gz") else text
        with _told(self.folder / name), (self.folder / name).open("ab") as file:
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
        self._hashes.setdefault(name, hashlib.sha256()).update(block)
        self._sizes[name] = self._sizes.get(name, 0) + len(block)

    def evidence(self) -> list[Evidence]:
        """Return path (relative to the document), hash and length of what is written so far."""
        return [
            Evidence(
                path=f"{self.folder.name}/{name}",
                sha256=self._hashes[name].hexdigest(),
                bytes=self._sizes[name],
            )
            for name in sorted(self._hashes)
        ]

    def save(self, run: Run) -> None:
        """Replace the document, atomically."""
        replace(self.out, jsonfile.dumps(doors.dump(run)).encode())


def replace(path: Path, data: bytes) -> None:
    """Write a file so that it is either the old one or the new one, whole, whatever happens.

    Raises:
        TokenwattError: it can't be written.
    """
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class _told:  # noqa: N801 - reads as a statement where it is used
    """Turn an OSError into one message with the next step."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise the told error instead."""
        if isinstance(error, OSError):
            raise TokenwattError(
                f"{self.path}: {error.strerror or error}",
                "free space or mend the rights; what was saved before is whole",
            ) from None


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"
