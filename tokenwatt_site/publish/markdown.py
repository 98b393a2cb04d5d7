"""Authors' Markdown to HTML: no raw HTML, no scripts, every link known with its line."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

_TAGS = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "hr", "br"),
    *("blockquote", "pre", "code", "em", "strong", "s", "a", "sup", "section"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {
    "a": {"href", "title", "id", "class"},
    "ol": {"start", "class"},
    "code": {"class"},
    "th": {"class"},
    "td": {"class"},
    "li": {"id", "class"},
    "sup": {"class"},
    "section": {"class"},
    "hr": {"class"},
    **{f"h{level}": {"id"} for level in range(1, 7)},
}
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a text: where it leads, and the line it stands in, from 1."""

    href: str
    line: int

    @property
    def internal(self) -> bool:
        """Whether it leads to a page of the site."""
        return not _EXTERNAL.match(self.href)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text as HTML that is safe to stand in a page."""

    html: str
    links: tuple[Link, ...]
    headings: tuple[tuple[int, str, str], ...]
    """Level, anchor and text of each heading."""
    images: tuple[Link, ...]
    """Images are refused: pages hold none yet."""


def render(text: str, relative: Callable[[str], str] | None = None) -> Rendered:
    """Render Markdown.

    Args:
        text: the source; links to pages of the site are written from its root, ``/method/#slo``.
        relative: turns such a link into one that is relative to the page; None leaves it.
    """
    parser = _parser()
    env: dict[str, Any] = {}
    tokens = parser.parse(text, env)
    links: list[Link] = []
    images: list[Link] = []
    for token, line in _walk(tokens, 1):
        if token.type == "link_open":
            href = str(token.attrs["href"])
            links.append(Link(href, line))
            if relative and href.startswith("/") and not href.startswith("//"):
                token.attrs["href"] = relative(href)
        elif token.type == "image":
            images.append(Link(str(token.attrs["src"]), line))
        elif "style" in token.attrs:
            _align_by_class(token)
    html = _clean(parser.renderer.render(tokens, parser.options, env))
    return Rendered(html, tuple(links), tuple(_headings(tokens)), tuple(images))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False})
    parser.use(anchors_plugin, max_level=4)
    return parser.use(footnote_plugin).use(deflist_plugin)


def _walk(tokens: Sequence[Token], line: int) -> Iterator[tuple[Token, int]]:
    """Yield every token with the line it stands in."""
    for token in tokens:
        if token.map:
            line = token.map[0] + 1
        yield token, line
        inner = line
        for child in token.children or ():
            yield child, inner
            inner += child.type in {"softbreak", "hardbreak"}


def _align_by_class(token: Token) -> None:
    """Inline styles are against the pages' content policy; the style sheet knows ``r``."""
    if token.attrs.pop("style") == "text-align:right":
        token.attrs["class"] = "r"


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, str, str]]:
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            anchor = str(opening.attrs.get("id", ""))
            words = "".join(child.content for child in inline.children or ())
            yield int(opening.tag[1:]), anchor, words


def _clean(html: str) -> str:
    """A second lock behind the parser: only what the parser can make, only these schemes."""
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
    )
