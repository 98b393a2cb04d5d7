"""Strict JSON: what strangers' files may not do, and how ours are written."""

import json
import math
from pathlib import Path
from typing import Any, TypeGuard

from tokenwatt_site.errors import DocumentError

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 100


def loads(data: bytes, name: str, *, infinite: bool = False) -> Any:
    """Parse strict JSON: UTF-8, no NaN or infinity, no duplicate keys, bounded size and depth.

    Args:
        data: the file's bytes; a byte order mark is accepted.
        name: the file's name for messages.
        infinite: read Infinity and NaN, which Python's own writer makes, as null.

    Raises:
        DocumentError: with the file and the line, byte or key.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(
            f"{name}: {len(data)} bytes is more than a document may have",
            f"at most {MAX_BYTES} bytes",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{name}: not UTF-8 at byte {error.start}", "save the file as UTF-8"
        ) from None
    if not text.strip():
        raise DocumentError(f"{name}: the file is empty", "restore the file, or remove it")
    try:
        value = json.loads(
            text,
            parse_constant=_nothing if infinite else _refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_unique,
        )
        _check(value, 0)
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}",
            "mend or restore the file",
        ) from None
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise DocumentError(f"{name}: {what}", "mend or restore the file") from None
    return value


def load(path: Path) -> Any:
    """Read a file with ``loads``.

    Raises:
        DocumentError: the file can't be read or isn't strict JSON.
    """
    return loads(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes, within the size bound.

    Raises:
        DocumentError: the file can't be read or is too large.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DocumentError(
                f"{path}: larger than {MAX_BYTES} bytes", "this is no document of ours"
            )
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(
            f"{path}: {error.strerror or error}", "check the path and its rights"
        ) from None


def dumps(value: Any) -> str:
    """Return JSON for people and machines: indented, UTF-8, a final newline, never NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a parsed value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a parsed value is an array."""
    return isinstance(value, list)


def _nothing(_text: str) -> None:
    """Read a number that is none as missing."""


def _refuse_constant(text: str) -> Any:
    message = f"{text} is not JSON; missing numbers are null"
    raise ValueError(message)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        message = f"the number {text[:40]} is out of range"
        raise ValueError(message)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                message = f"the key {key!r} stands twice in one object"
                raise ValueError(message)
            seen.add(key)
    return result


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        message = f"nested more than {MAX_DEPTH} deep"
        raise ValueError(message)
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            message = "a string holds a lone surrogate"
            raise ValueError(message) from None
    elif is_object(value):
        for key, item in value.items():
            _check(key, depth + 1)
            _check(item, depth + 1)
    elif is_array(value):
        for item in value:
            _check(item, depth + 1)
