"""What publishing works on: the content folder, loaded and checked, before it becomes pages.

``publish/content.py`` makes a `Content`; ``publish/render.py`` turns it into paths and bytes.
Everything here is frozen, so that a page can't depend on the order in which pages are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tokenwatt_site.documents.hardware import Hardware
from tokenwatt_site.documents.run import Run

Severity = Literal["error", "warning"]
ChangeKind = Literal["new", "corrected", "superseded", "retracted", "method"]


@dataclass(frozen=True, slots=True)
class Price:
    """What electricity costs, for $/Mtok."""

    per_kwh: float
    currency: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """What electricity emits, for gCO₂e/Mtok."""

    g_per_kwh: float
    year: int
    place: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """``content/site.yaml``."""

    title: str
    base_url: str = ""
    """Absolute address of the published site, ends in a slash; empty where there is none."""
    author: str = ""
    licence: str = ""
    """Name of the licence of the data, such as CC BY 4.0."""
    licence_url: str = ""
    electricity_price: Price | None = None
    grid: Grid | None = None


@dataclass(frozen=True, slots=True)
class Waiver:
    """Why a finding is published all the same."""

    reason: str
    date: str


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding of the checks together with its waiver, if it has one."""

    severity: Severity
    code: str
    pointer: str
    """JSON pointer into the document."""
    text: str
    mend: str = ""
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file of raw observations beside a document; the build copies it to ``evidence/<name>``."""

    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run document of ``content/runs/``."""

    run: Run
    raw: bytes
    """The document's bytes, published as they are."""
    sha256: str
    spec_yaml: str
    """The document's spec as a spec file."""
    spec_sha256: str
    path: str
    """Where it was read, relative to the content folder."""
    findings: tuple[ShownFinding, ...] = ()
    evidence: tuple[EvidenceFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparisonEntry:
    """One authored comparison of ``content/compare/``."""

    slug: str
    title: str
    claim: str
    """Markdown, one paragraph: what the comparison shows."""
    run_ids: tuple[str, ...]
    """All runs in the order of the page; the baseline is one of them."""
    baseline: str
    body: str
    """Markdown."""
    path: str


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page of ``content/pages/``."""

    slug: str
    title: str
    body: str
    """Markdown."""
    path: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One line of ``content/changes.yaml``."""

    date: str
    kind: ChangeKind
    run_ids: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that is published, drafts included."""

    config: SiteConfig
    runs: tuple[RunEntry, ...]
    comparisons: tuple[ComparisonEntry, ...] = ()
    pages: tuple[PageEntry, ...] = ()
    hardware: Mapping[str, Hardware] = field(default_factory=dict[str, Hardware])
    """Rated figures by slug, the file's name."""
    changes: tuple[Change, ...] = ()
    """Newest first."""
