from pathlib import PurePosixPath

import pytest

from tokenwatt_site.publish.authored import AuthoredLink
from tokenwatt_site.publish.links import LinkIndex

SITE = {
    "index.html": b'<a href="runs/x/index.html#top">a</a><link href="static/a.css">',
    "runs/x/index.html": b'<h1 id="top">x</h1><a href="../../index.html">h</a><a href="#top">t</a>',
    "method/index.html": b'<h2 id="slo">s</h2>',
    "static/a.css": b"",
}


def faults(
    extra: dict[str, bytes], authored: tuple[AuthoredLink, ...] = (), base_url: str = ""
) -> list[str]:
    index = LinkIndex(base_url)
    for path, data in (SITE | extra).items():
        index.add(PurePosixPath(path), data)
    return [each.text for each in index.check(authored)]


def test_a_whole_site_has_no_faults() -> None:
    assert faults({}) == []


@pytest.mark.parametrize(
    "href",
    [
        "../method/",
        "../method/index.html#slo",
        "/sub/method/#slo",
        "../method/index.html?a=1#slo",
        "../m%65thod/",
        "",
        "../",
        "https://elsewhere.example/x",
        "//elsewhere.example/x",
        "mailto:a@b.example",
        "data:,",
        "https://me.example/sub/method/#slo",
    ],
)
def test_links_that_lead_somewhere(href: str) -> None:
    page = f'<a class="x" href="{href}">'.encode()
    assert faults({"about/index.html": page}, base_url="https://me.example/sub/") == []


@pytest.mark.parametrize(
    "href,why",
    [
        ("../methods/", "leads to no page or file of the site"),
        ("../method", "leads to no page or file of the site"),
        ("../method/#sl&amp;o", "there is no #sl&o on that page"),
        ("../../outside.html", "leads to no page or file of the site"),
        ("https://me.example/sub/nothing/", "leads to no page or file of the site"),
        ("/sub/nothing/", "leads to no page or file of the site"),
    ],
)
def test_links_that_lead_nowhere(href: str, why: str) -> None:
    found = faults(
        {"about/index.html": f'<a href="{href}">'.encode()}, base_url="https://me.example/sub/"
    )
    assert len(found) == 1
    assert found[0].startswith("about/index.html: ")
    assert found[0].endswith(why)


def test_an_authors_link_is_told_once_with_its_line() -> None:
    link = AuthoredLink("content/pages/about.md:7", "about/", "/method/#nothing")
    page = b'<a href="../method/index.html#nothing">'
    assert faults({"about/index.html": page}, (link,)) == [
        "content/pages/about.md:7: /method/#nothing: there is no #nothing on that page"
    ]


def test_a_site_at_the_root_of_a_host() -> None:
    page = b'<a href="/method/#slo"><a href="/nothing/">'
    assert faults({"404.html": page}) == [
        "404.html: /nothing/: leads to no page or file of the site"
    ]


def test_missing_pictures_and_scripts_are_found() -> None:
    assert faults({"a/index.html": b'<script src="../static/b.js"></script>'}) == [
        "a/index.html: ../static/b.js: leads to no page or file of the site"
    ]
