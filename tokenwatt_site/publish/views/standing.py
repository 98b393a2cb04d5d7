"""How a run stands: quick, simulated, draft, superseded, retracted; its banners and its rank."""

import re
from dataclasses import dataclass
from typing import Literal

from tokenwatt_site.documents.run import Run
from tokenwatt_site.publish.charts.sweep import Marking
from tokenwatt_site.publish.model import Change, Content

Look = Literal["q", "s", "i", "r"]
_QUICK = re.compile(r"quick[- ]mode|not for publishing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tag:
    """A short word beside a figure; ``look`` picks its colour."""

    word: str
    look: str


@dataclass(frozen=True, slots=True)
class Banner:
    """A sentence above the numbers."""

    look: Look
    word: str
    text: str
    link: str = ""
    """Address from the site's root that the sentence leads to."""
    link_text: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a reader must know before the numbers."""

    quick: bool
    simulated: bool
    banners: tuple[Banner, ...]
    tags: tuple[Tag, ...]

    @property
    def hollow(self) -> bool:
        """Whether markers over several runs are hollow."""
        return self.quick or self.simulated

    @property
    def kind(self) -> str:
        """The run's kind as the results table filters it."""
        return self.tags[0].word if self.tags else "full"

    @property
    def marking(self) -> Marking:
        """How the run's charts are marked."""
        if self.simulated:
            return Marking("SIMULATED", "simulated")
        word = self.tags[0].word if self.tags else ""
        return Marking("DRAFT" if word == "draft" else "", word)


def is_quick(run: Run) -> bool:
    """Return whether the windows are too short or too few for ranking, as the document says it."""
    if run.quick is not None:
        return run.quick
    return any(_QUICK.search(text) for text in (run.summary, *run.not_covered))


def is_simulated(run: Run) -> bool:
    """Return whether the figures come from the embedded engine."""
    return bool(run.simulated) or run.status == "demo"


def is_ranked(run: Run) -> bool:
    """Return whether the run takes part in rankings: whole, real, published, and within its SLO."""
    whole = not is_quick(run) and not is_simulated(run)
    met = run.verdict is None or run.verdict.word in {"met", "proven"}
    return whole and met and run.status in {"published", "imported"}


def is_listed(run: Run) -> bool:
    """Return whether the run stands in tables; superseded or retracted, it keeps its page only."""
    return run.status not in {"superseded", "retracted"}


def standing(run: Run, content: Content, errors: int = 0, warnings: int = 0) -> Standing:
    """Return how ``run`` stands, with the number of its findings for the banner."""
    quick, simulated = is_quick(run), is_simulated(run)
    banners = [*_life(run, content), *_unmet(run)]
    tags = [Tag(run.status, "bad")] if run.status == "retracted" else []
    tags += [Tag(run.status, "")] if run.status == "superseded" else []
    if simulated:
        banners.append(_SIMULATED)
        tags.append(Tag("simulated", "s"))
    elif run.status in {"draft", "imported"}:
        banners.append(_DRAFT if run.status == "draft" else _IMPORTED)
        tags.append(Tag(run.status, "q"))
    if quick:
        banners.append(_quick(errors, warnings))
        tags.append(Tag("quick", "q"))
    return Standing(quick, simulated, tuple(banners), tuple(tags))


_SIMULATED = Banner(
    "s",
    "Simulated.",
    "Every figure comes from the embedded engine and its simulated meter, not from a machine. "
    "Simulated runs carry this mark on each chart and can’t be published.",
)
_DRAFT = Banner("q", "Draft.", "Not published: figures and text may still change.")
_IMPORTED = Banner(
    "i",
    "Imported.",
    "Made from another tool’s result file; what it doesn’t record is missing here.",
)


def _quick(errors: int, warnings: int) -> Banner:
    text = "Short windows or few repeats: good for checking a setup, kept out of the rankings."
    if not errors + warnings:
        return Banner("q", "Quick mode.", text)
    found = " and ".join(
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    )
    return Banner("q", "Quick mode.", f"{text} The checks found", "#checks", found)


def _unmet(run: Run) -> list[Banner]:
    """A verdict that isn't a kept promise comes before every number."""
    if run.verdict is None or run.verdict.word in {"met", "proven"}:
        return []
    words = {
        "failed": "The limits weren’t kept.",
        "undecided": "Not decided.",
        "no_rate": "No rate kept the limits.",
    }
    text = run.verdict.text[:1].upper() + run.verdict.text[1:]
    return [Banner("r", words[run.verdict.word], text.rstrip(".") + "." if text else "")]


def _life(run: Run, content: Content) -> list[Banner]:
    """Corrections, a newer run in its place, a retraction: from the change log."""
    mine = [change for change in content.changes if run.id in change.run_ids]
    banners: list[Banner] = []
    if run.status == "retracted":
        banners.append(
            Banner("r", "Retracted.", _when(mine, "retracted", "The figures must not be used."))
        )
    if run.status == "superseded":
        banners.append(
            Banner("i", "Superseded.", _when(mine, "superseded", "This page stays as it was."))
        )
    if any(change.kind == "corrected" for change in mine):
        banners.append(Banner("q", "Corrected.", _when(mine, "corrected", "")))
    return banners


def _when(changes: list[Change], kind: str, more: str) -> str:
    found = next((change for change in changes if change.kind == kind), None)
    if found is None:
        return more
    return f"{found.date}: {found.reason.rstrip('.')}. {more}".strip()
