"""Runs to one document for publishing, with their evidence copied beside it."""

import dataclasses
import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tokenwatt_site.documents import doors, jsonfile
from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.errors import DocumentError, UsageError
from tokenwatt_site.method.join import Source, Wishes, in_order, join, key_of
from tokenwatt_site.store import replace

_SLUG = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_MAX_ID = 100


@dataclass(frozen=True, slots=True)
class Reported:
    """What was written."""

    out: Path
    run: Run
    evidence: int
    """Evidence files copied."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """One file of evidence: where it goes beside the document, and its bytes."""

    path: str
    data: bytes


def report(paths: tuple[Path, ...], wishes: Wishes, out: Path | None, *, force: bool) -> Reported:
    """Join run documents and write the result.

    Args:
        paths: the runs, one of them a baseline.
        wishes: what the author says of the result.
        out: the document, whose name is also its id unless ``wishes`` say another; None means
            ``content/runs/<id>.json``, or ``./<id>.json`` where there is no ``content`` folder.
        force: replace a document that exists.

    Raises:
        UsageError: an id or output that can't be used, or runs that can't be joined.
        DocumentError: a run or its evidence can't be read, or isn't what it says.
    """
    if wishes.id is not None and not _is_id(wishes.id):
        raise UsageError(
            f"--id {wishes.id!r} isn't an id: lower-case letters, digits, single . and - between, "
            f"at most {_MAX_ID}",
            "for example --id h200x4-my-model-fp8-vllm",
        )
    read = {str(path): _read(path) for path in paths}
    _twice(paths, [source.sha256 for source in read.values()])
    ordered = in_order(list(read.values()))
    if wishes.id is None and out is not None and _is_id(out.stem):
        wishes = dataclasses.replace(wishes, id=out.stem)
    target = out or _default_out(wishes.id or ordered[0].run.id)
    _claim(target, paths, force=force)
    copies: list[_Copy] = []
    moved: list[Source] = []
    for index, source in enumerate(ordered):
        place = f"{target.stem}/evidence/{key_of(index)}"
        found = list(_evidence(Path(source.name), source.run, place))
        copies += [copy for copy, _ in found]
        listed = [item for _, item in found]
        run = source.run.model_copy(update={"evidence": listed}) if found else source.run
        moved.append(Source(run, source.name, source.sha256))
    joined = join(moved, wishes)
    _write(target, joined, copies)
    return Reported(target, joined, len(copies))


def _is_id(text: str) -> bool:
    return len(text) <= _MAX_ID and _SLUG.fullmatch(text) is not None


def _read(path: Path) -> Source:
    run, raw = doors.load_run(path)
    return Source(run, str(path), hashlib.sha256(raw).hexdigest())


def _twice(paths: tuple[Path, ...], hashes: list[str]) -> None:
    if len(set(hashes)) < len(paths):
        raise UsageError("the same run is named twice", "name each run once")


def _default_out(run_id: str) -> Path:
    folder = Path("content")
    return (folder / "runs" if folder.is_dir() else Path()) / f"{run_id}.json"


def _claim(out: Path, paths: tuple[Path, ...], *, force: bool) -> None:
    if out.suffix != ".json":
        raise UsageError(f"{out}: a run document's name ends in .json", f"--out {out}.json")
    if any(out.resolve() == path.resolve() for path in paths):
        raise UsageError(
            f"{out} is one of the runs that are joined", "choose another --out or --id"
        )
    if (out.exists() or out.is_symlink()) and not force:
        raise UsageError(
            f"{out} exists already", "choose another --out or --id, or --force to replace it"
        )
    if out.is_symlink() or out.is_dir():
        raise UsageError(f"{out}: not a file", "choose another --out")


def _evidence(source: Path, run: Run, place: str) -> Iterator[tuple[_Copy, Evidence]]:
    """Yield the evidence of a run with its new path; a document's word for it isn't taken."""
    folder = source.parent.resolve()
    for item in run.evidence or ():
        file = (folder / item.path).resolve()
        if not file.is_relative_to(folder) or file == folder:
            raise DocumentError(
                f"{source}: /evidence: {item.path!r} leads out of the document's folder",
                "evidence lies beside its document",
            )
        if not file.is_file():
            raise DocumentError(
                f"{source}: /evidence: {item.path} isn't there",
                "put it back beside the document; it is what the figures can be recomputed from",
            )
        data = _head(file, item.bytes)
        if hashlib.sha256(data).hexdigest() != item.sha256:
            raise DocumentError(
                f"{source}: /evidence: {item.path} isn't what was measured: its hash differs",
                "restore the file, or measure again",
            )
        own = folder / source.stem
        inside = file.relative_to(own if file.is_relative_to(own) else folder)
        path = f"{place}/{inside.as_posix()}"
        yield _Copy(path, data), item.model_copy(update={"path": path})


def _head(file: Path, size_bytes: int) -> bytes:
    """Return the part of a file that its document names; a killed run leaves a tail behind it."""
    with file.open("rb") as opened:
        return opened.read(min(size_bytes, file.stat().st_size))


def _write(out: Path, run: Run, copies: list[_Copy]) -> None:
    """Write the evidence, then the document that names it."""
    shutil.rmtree(out.with_suffix("") / "evidence", ignore_errors=True)
    for copy in copies:
        replace(out.parent / copy.path, copy.data)
    replace(out, jsonfile.dumps(doors.dump(run)).encode())
