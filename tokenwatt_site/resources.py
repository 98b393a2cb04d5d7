"""Where the project's own files are: in the package when installed, beside it in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the path of a shipped folder or file such as ``templates`` or ``schemas``.

    The wheel carries them inside the package; a checkout has them beside it.

    Raises:
        FileNotFoundError: the installation lacks it.
    """
    for root in (_PACKAGE, _PACKAGE.parent):
        path = root / name
        if path.exists():
            return path
    message = f"the installation lacks {name!r} (looked in {_PACKAGE} and beside it)"
    raise FileNotFoundError(message)
