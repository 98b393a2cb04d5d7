"""What a test needs from outside the repository: the shared folder, and tools of the machine."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIRE_ALL = os.environ.get("TOKENWATT_REQUIRE_ALL") == "1"


def shared_path(name: str) -> Path:
    """Return a path below the shared folder, ``$TOKENWATT_SHARED`` or ``../shared``.

    A missing one skips the test, or fails it under ``TOKENWATT_REQUIRE_ALL=1``.
    """
    path = ROOT / os.environ.get("TOKENWATT_SHARED", "../shared") / name
    if not path.exists():
        lacking(f"{path.resolve()} is missing (set TOKENWATT_SHARED)")
    return path


def require(tool: str, *more: str) -> str:
    """Return the path of the first of these programs that is installed, as ``shared_path`` does."""
    names = (tool, *more)
    path = next(filter(None, map(shutil.which, names)), None)
    return path or lacking(f"no {' or '.join(names)} on this machine")


def lacking(what: str) -> NoReturn:
    """Skip the running test for what is missing; fail it under ``TOKENWATT_REQUIRE_ALL=1``."""
    if REQUIRE_ALL:
        pytest.fail(f"{what}, and TOKENWATT_REQUIRE_ALL=1 allows no skip", pytrace=False)
    pytest.skip(what)
