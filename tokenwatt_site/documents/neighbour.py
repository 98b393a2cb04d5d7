"""Files that a spec names: a spec may come from a stranger, so they lie in its own folder."""

from pathlib import Path, PurePosixPath, PureWindowsPath

from tokenwatt_site.errors import RefusedError


def neighbour(name: str, folder: Path, key: str, what: str) -> Path:
    """Return the path of a file that a spec names.

    Args:
        name: the path as the spec has it, from its folder.
        folder: the spec's folder.
        key: the spec's key, for the message.
        what: the file in a word, for the next step.

    Raises:
        RefusedError: the path leaves the folder, also by a link.
    """
    absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or "\0" in name
    if absolute or not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise RefusedError(
            f"{key} {name!r} leaves the spec's folder",
            f"put the {what} beside the spec or below, and name it by its path from there",
        )
    return folder / name
