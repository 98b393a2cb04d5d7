import pytest

from tokenwatt_site.publish.markdown import Link, render


def test_headings_carry_anchors_that_are_unique() -> None:
    assert render("## One `two`\n\n### One two\n").headings == (
        (2, "one-two", "One two"),
        (3, "one-two-1", "One two"),
    )


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "<javascript:alert(1)>",
        '[a](https://x.example "onmouseover=alert(1) \\"")',
        "```x onload=alert(1)\ny\n```",
    ],
)
def test_no_script_comes_through(source: str) -> None:
    html = render(source).html
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html.lower()
    assert 'href="data' not in html
    assert " onload=" not in html.replace("&", "")
    assert ' onmouseover="' not in html


def test_alignment_needs_no_inline_style() -> None:
    html = render("| a | b |\n|--:|---|\n| 1 | 2 |\n").html
    assert "style=" not in html
    assert '<td class="r">1</td>' in html


def test_a_link_knows_its_line() -> None:
    text = "One\n\ntwo\nthree [a](/runs/x/#y)\n\n| t |\n|---|\n| [b](https://e.example) |\n\n<https://f.example>\n"
    assert render(text).links == (
        Link("/runs/x/#y", 4),
        Link("https://e.example", 8),
        Link("https://f.example", 10),
    )


def test_links_of_the_site_are_made_relative_and_others_left() -> None:
    html = render("[a](/runs/x/) [b](#c) [d](//e/f)", lambda href: "../.." + href).html
    assert 'href="../../runs/x/"' in html
    assert 'href="#c"' in html
    assert 'href="//e/f"' in html


@pytest.mark.parametrize(
    "href,internal",
    [("/runs/", True), ("#a", True), ("x/", True), ("mailto:a@b", False), ("//e/f", False)],
)
def test_an_internal_link(href: str, *, internal: bool) -> None:
    assert Link(href, 1).internal is internal


def test_images_are_reported() -> None:
    assert render("x\n\n![a](b.png)").images == (Link("b.png", 3),)


def test_footnotes_and_definitions() -> None:
    html = render("a[^1]\n\n[^1]: b\n\nTerm\n: meaning\n").html
    assert '<li id="fn1"' in html
    assert "<dd>meaning</dd>" in html
