"""Whatever an author writes, a page gets harmless HTML."""

from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st

from tokenwatt_site.publish.markdown import render

_PIECES = st.sampled_from(
    [
        *("<script>", "</script>", "<img src=x onerror=alert(1)>", "<!--", "-->", "<svg/onload=x>"),
        *("[a](", "javascript:alert(1)", "data:text/html,x", "vbscript:x", ")", "![", "](", "<a"),
        *("```", "`", "\n", "\n\n", "# ", "> ", "- ", "| a |\n|--:|\n", "[^1]", "\n[^1]: ", "\n: "),
        *(
            "&lt;script&gt;",
            "&#106;avascript:",
            "\\",
            '"',
            "'",
            "{#id}",
            "https://e.example",
            "\x00",
        ),
    ]
)
_SOURCES = st.lists(st.one_of(_PIECES, st.text(max_size=12)), max_size=25).map("".join)
_ATTRIBUTES = {"href", "title", "id", "class", "start"}


class Reader(HTMLParser):
    """Reads what a browser would: the tags with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@given(_SOURCES)
@example("[a](javascript&colon;alert(1))")
@example("[a]: data:text/html,x\n\n[a]")
def test_no_source_makes_a_script_a_picture_or_a_handler(source: str) -> None:
    reader = Reader()
    reader.feed(render(source).html)
    reader.close()
    for tag, attributes in reader.tags:
        assert tag not in {"script", "img", "svg", "style", "iframe", "object", "form", "base"}
        assert set(attributes) <= _ATTRIBUTES
        scheme, colon, _ = (attributes.get("href") or "").partition(":")
        assert (
            not colon
            or "/" in scheme
            or "#" in scheme
            or "?" in scheme
            or (scheme.lower() in {"http", "https", "mailto"})
        )


@given(_SOURCES)
def test_every_line_is_one_of_the_source(source: str) -> None:
    lines = source.count("\n") + 1
    for link in render(source).links:
        assert 1 <= link.line <= lines
