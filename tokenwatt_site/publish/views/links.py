"""Where pages are, and how one points to another: always relative, always to a file.

Directory addresses need a server; ``…/index.html`` works from a disk, a stick and a subpath alike.
"""

import posixpath
import re
from collections.abc import Callable
from pathlib import PurePosixPath

Link = Callable[[str], str]


def page_path(address: str) -> PurePosixPath:
    """Return the file of an address from the site's root: ``runs/a/`` is ``runs/a/index.html``."""
    if not address or address.endswith("/"):
        address += "index.html"
    return PurePosixPath(address)


def linker(page: PurePosixPath) -> Link:
    """Return a function that turns an address from the root into one relative to ``page``."""
    here = page.parent.as_posix()

    def link(address: str) -> str:
        target, mark, fragment = address.lstrip("/").partition("#")
        path = posixpath.relpath(page_path(target).as_posix(), here)
        return path + mark + fragment

    return link


def absolute_linker(base_path: str) -> Link:
    """Return a function that makes addresses absolute, for the page that stands at any depth."""

    def link(address: str) -> str:
        target, mark, fragment = address.lstrip("/").partition("#")
        return base_path + target.removesuffix("index.html") + mark + fragment

    return link


def run_address(run_id: str) -> str:
    """Return the address of a run's page."""
    return f"runs/{run_id}/"


def slug(text: str) -> str:
    """Return a name as part of an address: lower case, digits, dots and single hyphens."""
    text = re.sub(r"[^a-z0-9.]+", "-", text.lower())
    return re.sub(r"\.{2,}|[.-]*-[.-]*", "-", text).strip(".-")[:80].strip(".-") or "unnamed"
