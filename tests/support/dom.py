"""Just enough of a document tree to ask a page for its text: no dependency, no browser."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "input", "img", "hr"}
_PART = re.compile(r"([#.]?[\w-]+)|\[([\w-]+)(?:=\"?([^\"\]]*)\"?)?\]")


@dataclass
class Node:
    """An element; texts stand among its children."""

    tag: str
    attributes: dict[str, str]
    children: list["Node | str"] = field(default_factory=list)

    def text(self) -> str:
        """Return the visible text, spaces collapsed; titles of drawings aren't visible."""
        return " ".join(" ".join(self._texts()).replace("\u2060", "").split())

    def _texts(self) -> list[str]:
        if self.tag in {"title", "desc", "script", "style"}:
            return []
        found: list[str] = []
        for child in self.children:
            found += [child] if isinstance(child, str) else child._texts()
        return found

    def all(self, selector: str) -> list["Node"]:
        """Return the descendants that match ``a b`` of tags, ``#id``, ``.class``, ``[x="y"]``."""
        nodes = [self]
        for step in selector.split():
            nodes = [each for node in nodes for each in node._below() if each._fits(step)]
        return list({id(node): node for node in nodes}.values())

    def one(self, selector: str) -> "Node":
        """Return the only match."""
        found = self.all(selector)
        assert len(found) == 1, f"{selector}: {len(found)} matches"
        return found[0]

    def _below(self) -> list["Node"]:
        found: list[Node] = []
        for child in self.children:
            if isinstance(child, Node):
                found += [child, *child._below()]
        return found

    def _fits(self, step: str) -> bool:
        classes = self.attributes.get("class", "").split()
        for name, attribute, value in _PART.findall(step):
            if attribute:
                fits = attribute in self.attributes
                fits = fits and (not value or self.attributes[attribute] == value)
            elif name.startswith("#"):
                fits = self.attributes.get("id") == name[1:]
            elif name.startswith("."):
                fits = name[1:] in classes
            else:
                fits = self.tag == name
            if not fits:
                return False
        return True


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(page: bytes | str) -> Node:
    """Return the tree of a page; a tag that isn't closed in its place is an error."""
    builder = _Builder()
    builder.feed(page if isinstance(page, str) else page.decode())
    assert len(builder.open) == 1, f"<{builder.open[-1].tag}> isn't closed"
    return builder.root
