"""What authors write: comparisons and pages, and the links in them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tokenwatt_site.documents.yamlfile import YamlFile
from tokenwatt_site.publish import markdown
from tokenwatt_site.publish.content_files import ComparisonFront, PageFront
from tokenwatt_site.publish.model import ComparisonEntry, PageEntry
from tokenwatt_site.publish.problems import Problem
from tokenwatt_site.publish.reader import Reader

RESERVED = frozenset(
    {
        *("api", "assets", "calc", "changes", "compare", "data", "engines", "errata", "hardware"),
        *("index", "models", "runs", "static", "workloads"),
    }
)
"""Addresses of the site's own; a page of ``pages/`` can't take them."""


@dataclass(frozen=True, slots=True)
class AuthoredLink:
    """A link that an author wrote to a page of the site; whether it leads anywhere shows later."""

    place: str
    """``file:line``."""
    page: str
    """The page that holds it, such as ``compare/a/``."""
    href: str


@dataclass(frozen=True, slots=True)
class Known:
    """Which runs a comparison may name."""

    shown: Collection[str]
    hidden: Collection[str]
    """Drafts, in a build that leaves them out."""
    broken: Collection[str]
    """Runs whose file can't be used."""


def comparisons(
    reader: Reader, known: Known, links: list[AuthoredLink]
) -> Iterator[ComparisonEntry]:
    """Yield the comparisons of ``compare/`` whose runs are all shown; links are appended."""
    for path, slug in reader.within("compare"):
        read = reader.markdown(ComparisonFront, path)
        if read is None:
            continue
        front, file, body, first_line = read
        name = reader.tree.name(path)
        if not _runs_known(reader, path, (front, file), known):
            continue
        page = f"compare/{slug}/"
        _links(reader, path, page, (front.claim, file.line(("claim",))), links)
        _links(reader, path, page, (body, first_line), links)
        if front.baseline not in front.runs:
            line = file.line(("baseline",))
            reader.note(
                path, f"{name}:{line}: baseline: isn't one of the runs", "name it there too"
            )
        yield ComparisonEntry(
            slug, front.title, front.claim, tuple(front.runs), front.baseline, body, path
        )


def _runs_known(
    reader: Reader, path: str, read: tuple[ComparisonFront, YamlFile], known: Known
) -> bool:
    """Check the runs of a comparison; False leaves the comparison out."""
    front, file = read
    usable = True
    for number, run_id in enumerate(front.runs):
        place = f"{reader.tree.name(path)}:{file.line(('runs', number))}: runs"
        if run_id in front.runs[:number]:
            reader.note(path, f"{place}: {run_id} stands twice", "name each run once")
        if run_id in known.shown:
            continue
        usable = False
        if run_id in known.hidden or run_id in known.broken:
            why = "a draft" if run_id in known.hidden else "broken"
            text = f"{place}: {run_id} is {why}, so the comparison is left out"
            hint = "build with --drafts" if run_id in known.hidden else "mend the run"
            reader.problems.append(Problem("warning", text, hint, path))
        else:
            reader.note(path, f"{place}: no run {run_id!r} in runs/", "check the id")
    return usable


def pages(reader: Reader, links: list[AuthoredLink]) -> Iterator[PageEntry]:
    """Yield the pages of ``pages/``; links are appended."""
    for path, slug in reader.within("pages"):
        read = reader.markdown(PageFront, path)
        if read is None:
            continue
        front, _, body, first_line = read
        if slug in RESERVED:
            reader.note(
                path,
                f"{reader.tree.name(path)}: /{slug}/ is a page of the site's own",
                "rename the file",
            )
        _links(reader, path, f"{slug}/", (body, first_line), links)
        yield PageEntry(slug, front.title, body, path, front.description)


def _links(
    reader: Reader, path: str, page: str, text: tuple[str, int], links: list[AuthoredLink]
) -> None:
    source, first_line = text
    name = reader.tree.name(path)
    rendered = markdown.render(source)
    links += [
        AuthoredLink(f"{name}:{first_line + link.line - 1}", page, link.href)
        for link in rendered.links
        if link.internal
    ]
    for image in rendered.images:
        reader.note(
            path,
            f"{name}:{first_line + image.line - 1}: pages hold no images yet",
            "link to the picture",
        )
