"""Whether every link and anchor of a built site leads somewhere."""

import html
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tokenwatt_site.publish.authored import AuthoredLink
from tokenwatt_site.publish.problems import Problem

# Every attribute value of our pages is in double quotes, and a quote in a text is escaped.
_ATTRIBUTE = re.compile(rb'\s(id|href|src)="([^"]*)"')
_OUTSIDE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


@dataclass(slots=True)
class _Page:
    anchors: set[str] = field(default_factory=set[str])
    links: set[str] = field(default_factory=set[str])


class LinkIndex:
    """Collects the pages as they are made, and then checks what they refer to."""

    def __init__(self, base_url: str = "") -> None:
        self._base_url = base_url
        self._base_path = urlsplit(base_url).path or "/"
        self._files: set[str] = set()
        self._pages: dict[str, _Page] = {}

    def add(self, path: PurePosixPath, data: bytes) -> None:
        """Take one file of the site."""
        name = path.as_posix()
        self._files.add(name)
        if path.suffix != ".html":
            return
        page = self._pages[name] = _Page()
        for attribute, value in _ATTRIBUTE.findall(data):
            text = html.unescape(value.decode())
            (page.anchors if attribute == b"id" else page.links).add(text)

    def check(self, authored: Sequence[AuthoredLink]) -> Iterator[Problem]:
        """Yield what leads nowhere: authors' links with their line, then the rest by page."""
        told: set[tuple[str, str]] = set()
        for link in authored:
            name = f"{link.page}index.html"
            target = self._target(name, link.href)
            why = self._fault(target)
            if why:
                told.add((name, target))
                yield Problem("error", f"{link.place}: {link.href}: {why}", "mend the link")
        for name, page in sorted(self._pages.items()):
            for href in sorted(page.links):
                target = self._target(name, self._from_root(href))
                why = self._fault(target)
                if why and (name, target) not in told:
                    yield Problem(
                        "error", f"{name}: {href}: {why}", "mend the template or the data"
                    )

    def _from_root(self, href: str) -> str:
        """Return an absolute address of the site as its path from the site's root."""
        for start in (self._base_url, self._base_path):
            if start and href.startswith(start) and not href.startswith("//"):
                return "/" + href.removeprefix(start)
        return href

    def _target(self, page: str, href: str) -> str:
        """Return file and anchor that a link means, ``runs/x/index.html#a``; empty if outside."""
        if _OUTSIDE.match(href):
            return ""
        parts = urlsplit(href)
        path = unquote(parts.path)
        if not path:
            name = page
        else:
            folder = "" if path.startswith("/") else posixpath.dirname(page)
            name = posixpath.normpath(posixpath.join(folder, path.lstrip("/")))
            if path.endswith("/") or name == ".":
                name = posixpath.normpath(f"{name}/index.html")
        return f"{name}#{unquote(parts.fragment)}" if parts.fragment else name

    def _fault(self, target: str) -> str:
        if not target:
            return ""
        name, _, anchor = target.partition("#")
        if name not in self._files:
            return "leads to no page or file of the site"
        if anchor and name in self._pages and anchor not in self._pages[name].anchors:
            return f"there is no #{anchor} on that page"
        return ""
