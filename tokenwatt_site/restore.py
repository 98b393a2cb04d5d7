"""Evidence read back from the disk: whole or not, its lines, the measurement that they are of."""

import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from tokenwatt_site.documents import doors, jsonfile
from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.errors import DocumentError
from tokenwatt_site.method.rebuild import Rebuilt, Rows, rebuild
from tokenwatt_site.store import RunStore

_POWER = re.compile(r"power(-\d+)?\.jsonl\.gz")
_LONGEST_LINE = 64 * 1024 * 1024
_SMALL = 64 * 1024 * 1024
_DENSEST = 100
"""Rows of a measurement are packed to a tenth, those that are meant to fill memory far tighter."""
_BROKEN = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A file of evidence as it lies beside its document."""

    named: Evidence
    data: bytes | None
    """Its first bytes, as many as the document names; None where it isn't there."""
    tail: int = 0
    """Bytes behind them: a killed run leaves some."""

    def actual(self) -> Evidence | None:
        """Return path, hash and length as found."""
        if self.data is None:
            return None
        digest = hashlib.sha256(self.data).hexdigest()
        return Evidence(path=self.named.path, sha256=digest, bytes=len(self.data))


def find(document: Path, named: Sequence[Evidence]) -> list[Found]:
    """Return the files of evidence that a document names.

    Raises:
        DocumentError: a path leads out of the document's folder, or a file can't be read.
    """
    return [_find(document, each) for each in named]


def restored(found: Sequence[Found]) -> Rebuilt:
    """Return the measurement that whole evidence is of.

    Raises:
        DocumentError: it isn't the evidence of a measurement of ours.
    """
    files = {PurePath(each.named.path).name: each for each in found}
    power = sorted(filter(_POWER.fullmatch, files), key=lambda name: (len(name), name))
    rows = Rows(
        events=_rows(files, "events.jsonl"),
        schedule=_rows(files, "schedule.jsonl"),
        requests=_rows(files, "requests.jsonl.gz"),
        power=[_rows(files, name) for name in power],
        server=_rows(files, "server.jsonl.gz"),
        trace=_rows(files, "trace.jsonl.gz"),
    )
    with strangers_rows():
        return rebuild(rows)


@contextmanager
def strangers_rows() -> Generator[None]:
    """Turn whatever rows that aren't ours lead to into one message.

    Raises:
        DocumentError: instead of it.
    """
    try:
        yield
    except _BROKEN as error:
        said = " ".join(str(error).split())[:200]
        raise DocumentError(
            f"the evidence can't be computed from: {type(error).__name__}: {said}",
            "it was changed, or another program wrote it",
        ) from None


def take_up(out: Path) -> tuple[RunStore, Rebuilt]:
    """Return the place of a run that was cut off, and the run as it stood after its last window.

    Nothing is changed before the store's ``begin``; until then other processes are kept off it.

    Raises:
        UsageError: another process writes it, or can't be written.
        DocumentError: there is no such run, or its evidence isn't what its document names.
    """
    doors.load_run(out)  # told before anything is locked
    store = RunStore(out, resume=True)
    run, _ = doors.load_run(out)
    _own(out, run, store.folder.name)
    found = find(out, run.evidence or ())
    for each in found:
        actual = each.actual()
        if each.data is None or actual != each.named:
            raise DocumentError(
                f"{each.named.path} isn't what {out} names: the run can't be gone on with",
                "restore the file, or measure anew",
            )
        store.keep(PurePath(each.named.path).name, each.data)
    rebuilt = restored(found)
    for fault in rebuilt.faults:
        raise DocumentError(
            f"{out}: {fault.place} doesn't follow from what was asked: the run can't be gone on "
            "with",
            f"`tokenwatt-site verify {out}` says more; measure anew",
        )
    return store, rebuilt


def _own(out: Path, run: Run, folder: str) -> None:
    """Hold that the evidence a document names is where the run will write: it may be another's."""
    if any(config.source_sha256 is not None for config in run.configs):
        raise DocumentError(
            f"{out} was joined from several runs: it can't be gone on with",
            "go on with the run that was cut off, and join anew",
        )
    for named in run.evidence or ():
        if named.path != f"{folder}/{PurePath(named.path).name}":
            raise DocumentError(
                f"{out} names {named.path}, which isn't in its own folder {folder}: the run can't "
                "be gone on with",
                "go on with the document under its first name, or measure anew",
            )


def _find(document: Path, named: Evidence) -> Found:
    folder = document.parent.resolve()
    try:
        path = (folder / named.path).resolve()
        if not path.is_relative_to(folder) or path == folder:
            raise DocumentError(
                f"{document}: /evidence: {named.path!r} leads out of the document's folder",
                "evidence lies beside its document",
            )
        if not path.is_file():
            return Found(named, None)
        with path.open("rb") as file:
            size = path.stat().st_size
            data = file.read(min(named.bytes, size))
            return Found(named, data, size - len(data))
    except (OSError, ValueError) as error:
        raise DocumentError(
            f"{document}: evidence {named.path!r}: {getattr(error, 'strerror', None) or error}",
            "check the path and its rights",
        ) from None


def _rows(files: dict[str, Found], name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file; of one that isn't there, none."""
    data = files[name].data if name in files else None
    if data is None:
        return
    raw: Any = io.BytesIO(data)
    number, left = 0, max(_SMALL, _DENSEST * len(data))
    try:
        with gzip.GzipFile(fileobj=raw) if name.endswith(".gz") else raw as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                left -= len(line)
                if left < 0:
                    message = f"the file holds more than {_DENSEST} times its size"
                    raise ValueError(message)  # noqa: TRY301 - told as what the lines themselves raise
                yield _row(line)
    except (OSError, EOFError, ValueError, zlib.error, RecursionError) as error:
        raise DocumentError(
            f"{name}, line {number + 1}: {error}", "the file was changed, or is another's"
        ) from None


def _row(line: bytes) -> dict[str, Any]:
    row = json.loads(line, parse_constant=_refuse)
    if not jsonfile.is_object(row):
        message = "no object"
        raise ValueError(message)
    return row


def _refuse(text: str) -> Any:
    message = f"{text} is not JSON"
    raise ValueError(message)
