"""From the content folder to a site: gather and check everything, render beside, then swap."""

import hashlib
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import jinja2

from tokenwatt_site.errors import DocumentError, TokenwattError, UsageError
from tokenwatt_site.publish.content import load
from tokenwatt_site.publish.content_files import web_address
from tokenwatt_site.publish.links import LinkIndex
from tokenwatt_site.publish.model import Content, EvidenceFile, RunEntry
from tokenwatt_site.publish.output import Output
from tokenwatt_site.publish.problems import Problem, raise_errors
from tokenwatt_site.publish.render import render
from tokenwatt_site.publish.tree import Tree, read_tree


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is built, and how strictly."""

    content: Path
    out: Path
    today: str
    """ISO date that the documents' dates are checked against."""
    base_url: str | None = None
    """Goes before the site's own; None takes that."""
    strict: bool = False
    drafts: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did."""

    out: Path
    runs: int
    pages: int
    files: int
    size_bytes: int
    unchanged: int
    seconds: float
    warnings: tuple[Problem, ...]

    @property
    def url(self) -> str:
        """The address of the first page on this machine."""
        return (self.out / "index.html").as_uri()


def build(wanted: Wanted) -> Built:
    """Build a site.

    Raises:
        DocumentError: the content has errors; the old site is as it was.
        UsageError: a folder or an address can't be used.
        TokenwattError: the output can't be written, or another build is writing it.
    """
    return build_tree(read_tree(wanted.content), wanted)


def build_tree(
    tree: Tree, wanted: Wanted, swapping: AbstractContextManager[object] | None = None
) -> Built:
    """Build a site from a content folder that was read already; see ``build``.

    Args:
        tree: the folder.
        wanted: what is built.
        swapping: held while the new site takes the old one's place.
    """
    started_s = time.monotonic()
    output = Output(wanted.out)
    _apart(tree.root, output.out)
    loaded = load(tree, today=wanted.today, drafts=wanted.drafts)
    raise_errors(loaded.problems, strict=wanted.strict)
    content = _addressed(loaded.content, wanted.base_url)
    index = LinkIndex(content.config.base_url)
    with output.claimed():
        staged = output.stage(_indexed(_files(tree, content), index))
        problems = [*loaded.problems, *index.check(loaded.links)]
        raise_errors(problems, strict=wanted.strict)
        with swapping or nullcontext():
            output.swap(staged)
    return Built(
        out=output.out,
        runs=len(content.runs),
        pages=sum(name.endswith(".html") for name in staged.files),
        files=len(staged.files),
        size_bytes=sum(stored.size_bytes for stored in staged.files.values()),
        unchanged=staged.unchanged,
        seconds=time.monotonic() - started_s,
        warnings=tuple(problems),
    )


def _apart(content: Path, out: Path) -> None:
    """Refuse a site in its own content, and content in a site that is replaced."""
    content, out = content.resolve(), out.resolve()
    if out.is_relative_to(content) or content.is_relative_to(out):
        raise UsageError(
            f"{out}: the site and its content can't lie in one another", "choose another --out"
        )


def _addressed(content: Content, base_url: str | None) -> Content:
    if base_url is None:
        return content
    try:
        address = web_address(base_url)
    except ValueError as error:
        raise UsageError(
            f"--base-url {base_url}: {error}", "for example https://me.example/tokens/"
        ) from None
    return replace(content, config=replace(content.config, base_url=address))


def _files(tree: Tree, content: Content) -> Iterator[tuple[PurePosixPath, bytes]]:
    try:
        yield from render(content)
    except jinja2.TemplateError as error:
        raise TokenwattError(
            f"{_template_place(error)}: {error.message}", "mend the template; the site is as it was"
        ) from None
    for entry in content.runs:
        for file in entry.evidence:
            place = PurePosixPath("runs", entry.run.id, "evidence", file.name)
            yield place, _evidence(tree, entry, file)


def _template_place(error: jinja2.TemplateError) -> str:
    """Return file and line of the template that failed: its own word, or the innermost frame."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename or error.name}:{error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".html")]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "a template"


def _evidence(tree: Tree, entry: RunEntry, file: EvidenceFile) -> bytes:
    """Return evidence that was checked when the content was read, and is still the same."""
    data = tree.blobs[f"runs/{entry.run.id}/evidence/{file.name}"].read_bytes()
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise DocumentError(
            f"{tree.name(entry.path)}: {file.name} changed while the site was built", "build again"
        )
    return data


def _indexed(
    files: Iterable[tuple[PurePosixPath, bytes]], index: LinkIndex
) -> Iterator[tuple[PurePosixPath, bytes]]:
    for path, data in files:
        index.add(path, data)
        yield path, data
