"""From content to pages: every path of the site and its bytes.

Pure but for reading the templates. The same content gives the same bytes, whatever the clock,
the locale, the hash seed and the folder.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup

from tokenwatt_site.publish import markdown
from tokenwatt_site.publish.assets import Asset, asset_files, load_assets
from tokenwatt_site.publish.charts.palette import MARKERS
from tokenwatt_site.publish.model import ComparisonEntry, Content, PageEntry, RunEntry
from tokenwatt_site.publish.typography import tidy_html
from tokenwatt_site.publish.views.comparison import comparison_view
from tokenwatt_site.publish.views.figure_view import figure_files
from tokenwatt_site.publish.views.groups import GroupView, group_views, hardware_slug
from tokenwatt_site.publish.views.home import home_view
from tokenwatt_site.publish.views.links import (
    Link,
    absolute_linker,
    linker,
    page_path,
    run_address,
)
from tokenwatt_site.publish.views.run import RunView, run_view
from tokenwatt_site.publish.views.run_texts import CSV_NAME
from tokenwatt_site.publish.views.standing import is_simulated
from tokenwatt_site.resources import resource

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'"
)
CHANGES_ON_HOME = 5
File = tuple[PurePosixPath, bytes]


@dataclass(frozen=True, slots=True)
class NavItem:
    """A link in the head or the foot of every page."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Page:
    """What the frame of a page needs to know."""

    address: str
    title: str
    description: str = ""
    nav: str = ""
    """Address of the navigation's entry that the page belongs to."""
    noindex: bool = False
    charts: bool = False


def render(content: Content) -> Iterator[File]:
    """Yield every file of the site but evidence: pages, documents, charts, shared files.

    Links are relative and lead to files, so that the site works from a disk, a stick and any
    folder of a server. The page for what isn't found stands at any depth: its links are absolute.
    """
    site = _Site(content)
    yield from asset_files(site.assets)
    yield from site.home()
    for entry in content.runs:
        yield from site.run(entry)
    for comparison in content.comparisons:
        yield from site.comparison(comparison)
    yield site.page("compare.html", Page("compare/", "Comparisons", nav="compare/"), {})
    for group in group_views(content):
        yield site.group(group)
    for authored in content.pages:
        yield site.authored(authored)
    yield site.page("changes.html", Page("changes/", "Changes", nav="changes/"), {})
    yield site.page("404.html", Page("404.html", "Not found", noindex=True), {})


@cache
def environment(*folders: Path) -> jinja2.Environment:
    """Return the template environment: everything is escaped, an unknown name is an error."""
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.FileSystemLoader(str(folder)) for folder in folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


class _Site:
    """The templates, the shared files and the frame, made once for all pages."""

    def __init__(self, content: Content) -> None:
        templates = resource("templates")
        self.content = content
        self.assets: dict[str, Asset] = load_assets(templates / "static")
        self._jinja = environment(templates)
        self._titles = {entry.run.id: entry.run.title for entry in content.runs}
        self._frame: dict[str, Any] = {
            "site": content.config,
            "csp": CSP,
            "markers": tuple(MARKERS.items()),
            "nav": tuple(_nav(content.pages)),
            "foot": tuple(_foot(content.pages)),
            "content": content,
            "titles": self._titles,
        }

    def page(self, template: str, page: Page, context: dict[str, Any]) -> File:
        """Render one page."""
        path = page_path(page.address)
        link = self._linker(path)
        text = self._jinja.get_template(template).render(
            self._frame
            | {
                "page": page,
                "link": link,
                "assets": {name: link(asset.address) for name, asset in self.assets.items()},
                "canonical": self._canonical(page),
            }
            | context
        )
        return path, tidy_html(text).encode()

    def _linker(self, path: PurePosixPath) -> Link:
        if path.name == "404.html":
            return absolute_linker(urlsplit(self.content.config.base_url).path or "/")
        return linker(path)

    def _canonical(self, page: Page) -> str:
        base = self.content.config.base_url
        return base + page.address if base and not page.noindex else ""

    def _markdown(self, text: str, link: Link) -> Markup:
        return Markup(markdown.render(text, link).html)  # noqa: S704 - the renderer cleans it

    def home(self) -> Iterator[File]:
        """Yield the home page and its charts."""
        view = home_view(self.content)
        page = Page(
            "",
            self.content.config.title,
            "Energy per token, goodput and goodput per kilowatt of LLM serving, measured within "
            "a latency limit.",
            charts=bool(view.figures),
        )
        changes = self.content.changes[:CHANGES_ON_HOME]
        yield self.page("home.html", page, {"view": view, "changes": changes})
        yield from figure_files(page_path(page.address), [f.chart for f in view.figures])

    def run(self, entry: RunEntry) -> Iterator[File]:
        """Yield a run's page, its charts, its document, figures, spec and citations."""
        view = run_view(entry, self.content)
        page = Page(
            run_address(entry.run.id),
            entry.run.title,
            view.description,
            noindex=_hidden(view),
            charts=bool(view.charts),
        )
        path = page_path(page.address)
        yield self.page("run.html", page, {"view": view, "hardware": self._hardware(entry)})
        yield from figure_files(path, view.all_charts)
        yield path.parent / f"{entry.run.id}.json", entry.raw
        yield path.parent / view.spec_file, entry.spec_yaml.encode()
        yield path.parent / CSV_NAME, view.csv
        yield path.parent / "cite.bib", view.cite.bibtex.encode()
        yield path.parent / "cite.csl.json", view.cite.csl.encode()
        yield path.parent / "cite.txt", view.cite.plain.encode()

    def _hardware(self, entry: RunEntry) -> NavItem | None:
        name = entry.run.hardware.accelerator
        return NavItem(name, f"hardware/{hardware_slug(self.content, name)}/") if name else None

    def comparison(self, entry: ComparisonEntry) -> Iterator[File]:
        """Yield a comparison's page and its charts."""
        view = comparison_view(entry, self.content)
        address = f"compare/{entry.slug}/"
        page = Page(
            address,
            entry.title,
            f"{entry.title}: differences with intervals, settings that differ.",
            nav="compare/",
            noindex=view.simulated,
            charts=bool(view.figures),
        )
        link = linker(page_path(address))
        texts = {name: self._markdown(getattr(entry, name), link) for name in ("claim", "body")}
        yield self.page("comparison.html", page, {"view": view, **texts})
        yield from figure_files(page_path(address), view.charts)

    def group(self, view: GroupView) -> File:
        """Return the page of an accelerator, a model or an engine."""
        page = Page(view.address, view.name, f"{view.name}: facts and measured runs.")
        return self.page("group.html", page, {"view": view})

    def authored(self, entry: PageEntry) -> File:
        """Return a page that an author wrote."""
        address = f"{entry.slug}/"
        page = Page(address, entry.title, entry.description, nav=address)
        rendered = markdown.render(entry.body, linker(page_path(address)))
        body = self._markdown(entry.body, linker(page_path(address)))
        heads = [h for h in rendered.headings if h[0] == 2]  # noqa: PLR2004 - h2
        return self.page("page.html", page, {"entry": entry, "body": body, "heads": heads})


def _hidden(view: RunView) -> bool:
    """Search engines leave out what isn't a result."""
    return is_simulated(view.run) or view.run.status in {"draft", "superseded", "retracted"}


def _nav(pages: tuple[PageEntry, ...]) -> Iterator[NavItem]:
    yield NavItem("Results", "")
    yield NavItem("Compare", "compare/")
    if any(page.slug == "method" for page in pages):
        yield NavItem("Method", "method/")
    yield NavItem("Changes", "changes/")
    if any(page.slug == "about" for page in pages):
        yield NavItem("About", "about/")


def _foot(pages: tuple[PageEntry, ...]) -> Iterator[NavItem]:
    """Yield the authored pages that the head of the page doesn't name."""
    yield NavItem("Changes", "changes/")
    for page in pages:
        if page.slug not in {"method", "about"}:
            yield NavItem(page.title, f"{page.slug}/")
