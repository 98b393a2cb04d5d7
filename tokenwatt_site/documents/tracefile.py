"""The door for recorded traces: the file that ``workload.trace`` names, from the spec's folder."""

import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tokenwatt_site.documents.neighbour import neighbour
from tokenwatt_site.errors import RefusedError, UsageError

MAX_BYTES = 64 * 1024 * 1024
_SUFFIXES = (".csv", ".json", ".jsonl", ".gz")


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A recorded trace as it lies on the disk."""

    path: str
    """As it was named, for messages."""
    data: bytes

    @property
    def name(self) -> str:
        """The file's name without its folder: all of its path that is published."""
        return PurePosixPath(self.path).name


def is_path(trace: str | None) -> bool:
    """Tell whether ``workload.trace`` names a file rather than a workload."""
    return trace is not None and ("/" in trace or "\\" in trace or trace.endswith(_SUFFIXES))


def read_trace(trace: str | None, folder: Path) -> TraceFile | None:
    """Read the file that a spec's ``workload.trace`` names; None where it names no file.

    A spec may come from a stranger, so the path leads nowhere but into the spec's own folder.

    Args:
        trace: the value of ``workload.trace``.
        folder: the spec's folder.

    Raises:
        RefusedError: the path leaves the folder, also by a link.
        UsageError: the file can't be read, isn't a file or is too large.
    """
    if trace is None or not is_path(trace):
        return None
    return _read(neighbour(trace, folder, "workload.trace", "trace"), trace)


def read_file(path: Path) -> TraceFile:
    """Read a trace that the user named on the command line, wherever it is.

    Raises:
        UsageError: see ``read_trace``.
    """
    return _read(path, path.as_posix())


def _read(path: Path, shown: str) -> TraceFile:
    if shown.endswith(".gz"):
        raise RefusedError(f"{shown}: compressed traces aren't read", "unpack it with gunzip")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{shown}: not a file", "name a trace file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{shown}: {error.strerror or error}",
            "workload.trace is a path from the spec's folder; check it and its rights",
        ) from None
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{shown}: larger than {MAX_BYTES >> 20} MiB", "keep the hours that matter of it"
        )
    return TraceFile(shown, data)
