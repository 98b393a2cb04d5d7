"""Numbers that the kernel shows as files, with a code where one can't be read."""

from pathlib import Path

_MOST_BYTES = 64
_UNSIGNED_64 = 1 << 64


def read_text(path: Path) -> tuple[str, str | None]:
    """Return a file's one line and None, or an empty line and an error's code.

    Codes: no_permission, device_missing (the file is gone), no_data (the driver fails),
    bad_answer (no text).
    """
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("ascii").strip(), None
    except PermissionError:
        return "", "no_permission"
    except FileNotFoundError:
        return "", "device_missing"
    except OSError:
        return "", "no_data"
    except UnicodeDecodeError:
        return "", "bad_answer"


def read_micro(path: Path) -> tuple[int | None, str | None]:
    """Return a whole number of millionths (µW, µJ), or None and an error's code.

    Negative numbers and such as no 64-bit counter holds are a bad_answer.
    """
    text, code = read_text(path)
    if code is not None:
        return None, code
    if not text.isdigit() or int(text) >= _UNSIGNED_64 - 1:
        return None, "bad_answer"
    return int(text), None
