"""The site's folder: replaced whole or not at all, and only if a build of ours made it.

A build writes beside the site, into ``.site.new``, and then renames twice: the old site to
``.site.old``, the new one into its place. A build that is killed between the two is put right by
the next one. The lock is on the new folder itself, so that nothing is left behind to go stale.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import unicodedata
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tokenwatt_site import __version__
from tokenwatt_site.errors import DocumentError, TokenwattError, UsageError

MANIFEST = "manifest.json"
_GENERATOR = "tokenwatt-site"
_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}
_MAX_NAME_BYTES = 255


@dataclass(frozen=True, slots=True)
class Stored:
    """One file of a site."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Staged:
    """A new site, complete, beside the old one."""

    files: dict[str, Stored]
    unchanged: int
    """Files that are the old site's, byte for byte; they keep their time of change."""


class Output:
    """A folder that holds a site."""

    def __init__(self, out: Path) -> None:
        self.out = Path(os.path.normpath(Path.cwd() / out))
        self.staging = self.out.with_name(f".{self.out.name}.new")
        self.old = self.out.with_name(f".{self.out.name}.old")

    @contextlib.contextmanager
    def claimed(self) -> Generator[None]:
        """Hold the folder for one build; whatever happens, no half-made folder is left.

        Raises:
            UsageError: the folder isn't a site of ours, or holds files that no build made.
            TokenwattError: another build holds it, or it can't be written.
        """
        with _told(self.out):
            self.out.parent.mkdir(parents=True, exist_ok=True)
            lock = self._lock()
            try:
                self._recover()
                self._refuse_strangers()
                yield
            finally:
                if self._holds(lock):
                    shutil.rmtree(self.staging, ignore_errors=True)
                os.close(lock)

    def _lock(self) -> int:
        """Take the staging folder, empty; a killed build's lock is gone with it."""
        while True:
            self.staging.mkdir(exist_ok=True)
            folder = os.open(self.staging, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(folder)
                raise TokenwattError(
                    f"{self.out}: another build is writing this site", "wait for it to end"
                ) from None
            if self._holds(folder):
                break
            os.close(folder)  # the other build ended between the two calls: try again
        for entry in list(os.scandir(self.staging)):
            inner = Path(entry)
            shutil.rmtree(inner) if entry.is_dir(follow_symlinks=False) else inner.unlink()
        return folder

    def _holds(self, folder: int) -> bool:
        """Whether the locked folder is still the staging folder."""
        try:
            return os.path.samestat(os.fstat(folder), self.staging.lstat())
        except FileNotFoundError:
            return False

    def _recover(self) -> None:
        """Put right what a build that was killed between its two renames left."""
        if not self.old.exists():
            return
        if read_manifest(self.old) is None:
            raise UsageError(f"{self.old}: in the way, and no site of ours", "move it away")
        if self.out.exists():
            shutil.rmtree(self.old)
        else:
            self.old.rename(self.out)

    def _refuse_strangers(self) -> None:
        if self.out.is_symlink() or (self.out.exists() and not self.out.is_dir()):
            raise UsageError(f"{self.out}: not a folder", "choose another --out")
        here = list(_files_below(self.out)) if self.out.exists() else []
        if not here:
            return
        manifest = read_manifest(self.out)
        if manifest is None:
            raise UsageError(
                f"{self.out}: holds files and no {MANIFEST} of ours: it isn't replaced",
                "choose another --out, or empty the folder",
            )
        foreign = [path for path in here if path not in manifest and path != MANIFEST]
        if foreign:
            raise UsageError(
                f"{self.out}: {', '.join(foreign[:3])}: no build made this, and it would be lost",
                "move it out of the folder",
            )

    def stage(self, files: Iterable[tuple[PurePosixPath, bytes]]) -> Staged:
        """Write a site beside the old one.

        Raises:
            DocumentError: two files want one place, or a name can't be one.
        """
        before = read_manifest(self.out) or {}
        places = _Places()
        stored: dict[str, Stored] = {}
        unchanged = 0
        for path, data in files:
            name = places.take(path)
            stored[name] = Stored(hashlib.sha256(data).hexdigest(), len(data))
            unchanged += self._put(name, data, same=before.get(name) == stored[name])
        self._write(MANIFEST, manifest_bytes(stored))
        _sync(self.staging / MANIFEST)
        _sync(self.staging)
        return Staged(stored, unchanged)

    def _put(self, name: str, data: bytes, *, same: bool) -> bool:
        """Write a file, or link the old site's where it is the same; return which."""
        old = self.out / name
        with contextlib.suppress(OSError):
            if same and not old.is_symlink() and old.read_bytes() == data:
                new = self.staging / name
                new.parent.mkdir(parents=True, exist_ok=True)
                new.hardlink_to(old)
                return True
        self._write(name, data)
        return False

    def _write(self, name: str, data: bytes) -> None:
        place = self.staging / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        except OSError as error:
            error.filename = self.out / name  # a full disk doesn't name the file
            raise

    def swap(self, staged: Staged) -> None:
        """Put the new site in the old one's place; nothing to do where they are the same."""
        if staged.unchanged == len(staged.files) and read_manifest(self.out) == staged.files:
            return
        had = self.out.exists()
        if had:
            self.out.rename(self.old)
        try:
            self.staging.rename(self.out)
        except OSError:
            if had:
                self.old.rename(self.out)
            raise
        _sync(self.out.parent)
        if had:
            shutil.rmtree(self.old)


class _Places:
    """The places taken so far, as the least able file system would tell them apart."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def take(self, path: PurePosixPath) -> str:
        """Return the path as text, or refuse it."""
        name = path.as_posix()
        parts = name.split("/")
        if any(
            part in {"", ".", ".."}
            or "\\" in part
            or "\0" in part
            or len(part.encode()) > _MAX_NAME_BYTES
            for part in parts
        ):
            raise DocumentError(
                f"{name!r} can't be a file of the site", "rename what it is made of"
            )
        keys = [_folded("/".join(parts[: end + 1])) for end in range(len(parts))]
        taken = self._files.get(keys[-1]) or self._folders.get(keys[-1])
        taken = taken or next((self._files[key] for key in keys[:-1] if key in self._files), None)
        if taken or keys[-1] == MANIFEST:
            raise DocumentError(
                f"{taken or MANIFEST} and {name}: two pages want one place", "rename one of them"
            )
        self._files[keys[-1]] = name
        for key in keys[:-1]:
            self._folders.setdefault(key, name)
        return name


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def manifest_bytes(files: dict[str, Stored]) -> bytes:
    """Return the manifest of a site: what was built, by path."""
    data = {
        "generator": f"{_GENERATOR} {__version__}",
        "files": {
            name: {"sha256": stored.sha256, "bytes": stored.size_bytes}
            for name, stored in sorted(files.items())
        },
    }
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def read_manifest(folder: Path) -> dict[str, Stored] | None:
    """Return what a build of ours put into a folder; None where it wasn't one."""
    try:
        data = json.loads((folder / MANIFEST).read_bytes())
        if not str(data["generator"]).startswith(f"{_GENERATOR} "):
            return None
        return {
            str(name): Stored(str(each["sha256"]), int(each["bytes"]))
            for name, each in data["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _files_below(folder: Path) -> Generator[str]:
    for root, folders, names in os.walk(folder):
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in [*names, *links]:
            if name not in _LITTER:
                yield Path(root, name).relative_to(folder).as_posix()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _told(out: Path) -> Generator[None]:
    """Turn an OSError into one message with the next step."""
    try:
        yield
    except OSError as error:
        raise TokenwattError(
            f"{error.filename or out}: {error.strerror or error}",
            "free space or mend the rights, or choose another --out; the old site is as it was",
        ) from None
