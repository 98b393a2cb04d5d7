"""The files of a content folder that people write: their keys, and messages with file and line."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError

from tokenwatt_site.documents import yamlfile
from tokenwatt_site.documents.base import Positive, Slug, Strict
from tokenwatt_site.documents.faults import faults
from tokenwatt_site.documents.hardware import YamlDate
from tokenwatt_site.errors import DocumentError, UsageError

Words = Annotated[str, Field(min_length=1)]
Model = TypeVar("Model", bound=Strict)
_FENCE = re.compile(r"---[ \t]*\r?\n(.*?\r?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def web_address(text: str) -> str:
    """Return an http(s) address that ends in a slash; empty stays empty.

    Raises:
        ValueError: it isn't one, or it carries a user name, a query or a fragment.
    """
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise ValueError("an address starts with https:// or http:// and a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an address has no user name, query or fragment here")
    return text if not text or text.endswith("/") else text + "/"


def _link(text: str) -> str:
    web_address(text)
    return text


class PriceFile(Strict):
    """What electricity costs."""

    per_kwh: Positive
    currency: Words
    source: Words


class GridFile(Strict):
    """What electricity emits."""

    g_per_kwh: Positive
    year: Annotated[int, Field(ge=1990, le=2200)]
    place: Words
    source: Words


class SiteFile(Strict):
    """``site.yaml``."""

    title: Words
    base_url: Annotated[str, AfterValidator(web_address)] = ""
    author: str = ""
    licence: str = ""
    licence_url: Annotated[str, AfterValidator(_link)] = ""
    electricity_price: PriceFile | None = None
    grid: GridFile | None = None


class ChangeFile(Strict):
    """One entry of ``changes.yaml``."""

    date: YamlDate
    runs: list[Slug] = Field(default_factory=list)
    kind: Literal["new", "corrected", "superseded", "retracted", "method"]
    reason: Words


class ChangesFile(Strict):
    """``changes.yaml``, a list."""

    entries: list[ChangeFile]


class WaiverFile(Strict):
    """Why a finding is published all the same."""

    reason: Words
    date: YamlDate


class WaiversFile(Strict):
    """``waivers.yaml``: document id, code, JSON pointer."""

    entries: dict[str, dict[str, dict[str, WaiverFile]]]


class ComparisonFront(Strict):
    """The front matter of ``compare/<slug>.md``."""

    title: Words
    runs: Annotated[list[Slug], Field(min_length=2)]
    baseline: Slug
    claim: Words


class PageFront(Strict):
    """The front matter of ``pages/<slug>.md``."""

    title: Words
    description: str = ""


def parse(model: type[Model], raw: bytes, name: str) -> tuple[Model, yamlfile.YamlFile]:
    """Read a YAML file whose top is ``model``, or a file whose top is its one field ``entries``.

    Args:
        model: what the file holds.
        raw: its bytes.
        name: its name for messages.

    Raises:
        DocumentError: with one line a fault: file, line, field, sentence.
    """
    try:
        file = yamlfile.loads(raw, name)
    except UsageError as error:
        raise DocumentError(error.what, error.hint) from None
    wrapped = "entries" in model.model_fields
    data: Any = {"entries": file.data} if wrapped else file.data
    try:
        return model.model_validate(data), file
    except ValidationError as error:
        found = faults(error, data, model)
    lines: list[str] = []
    for fault in found:
        path = fault.path[1:] if wrapped else fault.path
        place = f"{name}:{file.line(path)}"
        lines.append(f"{place}: {fault.dotted.removeprefix('entries').lstrip('.')}: {fault.text}")
    raise DocumentError("\n".join(lines), "docs/content.md explains the keys")


def split_front(raw: bytes, name: str) -> tuple[bytes, str, int]:
    """Split a Markdown file into front matter, body, and the line the body starts at, from 1.

    Raises:
        DocumentError: not UTF-8, or no front matter.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{name}: not UTF-8 at byte {error.start}", "save the file as UTF-8"
        ) from None
    if "\0" in text:
        raise DocumentError(f"{name}: NUL at byte {raw.index(0)}", "restore the file")
    match = _FENCE.match(text)
    if match is None:
        raise DocumentError(
            f"{name}:1: no front matter", "start the file with ---, its keys, and --- again"
        )
    # An empty first line stands for the fence, so that lines count as in the file.
    front = "\n" + (match.group(1) or "")
    return front.encode(), text[match.end() :], 1 + match.group().count("\n")


def flat(
    entries: Mapping[str, Mapping[str, Mapping[str, WaiverFile]]],
) -> dict[tuple[str, str, str], WaiverFile]:
    """Return waivers by document id, code and pointer."""
    return {
        (run_id, code, pointer): waiver
        for run_id, codes in entries.items()
        for code, pointers in codes.items()
        for pointer, waiver in pointers.items()
    }
