"""What a check is: a code, what it finds in a document, and how to mend it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tokenwatt_site.documents.hardware import Hardware
from tokenwatt_site.documents.jsonfile import is_array, is_object
from tokenwatt_site.documents.run import Config, Run

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Spot:
    """One fault: where it is and what is wrong, in a sentence."""

    pointer: str
    text: str


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The document lacks what the check needs."""

    reason: str


Found = list[Spot] | NotApplicable


@dataclass(frozen=True, slots=True)
class Rule:
    """One check."""

    code: str
    severity: Severity
    find: Callable[["Subject"], Found]
    about: str
    """What it looks for and why, for people."""
    mend: str
    """The next step of whoever has such a finding."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A document under check."""

    run: Run
    data: dict[str, Any]
    """The document as it was written, keys left out included."""
    hardware: Hardware | None
    """Rated figures of its accelerator."""
    today: str
    """ISO date."""

    def configs(self) -> Iterator[tuple[str, Config]]:
        """Yield each configuration with its pointer."""
        for i, config in enumerate(self.run.configs):
            yield f"/configs/{i}", config

    def prose(self) -> str:
        """Return what the publisher says in words: the summary and what isn't covered."""
        return "\n".join([self.run.summary, *self.run.not_covered])

    def says(self, pattern: str) -> bool:
        """Tell whether the publisher's words hold a pattern, in any case."""
        return re.search(pattern, self.prose(), re.IGNORECASE) is not None


def walk(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value below with its JSON pointer, in the order of the document."""
    yield pointer, value
    if is_object(value):
        for key, item in value.items():
            yield from walk(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif is_array(value):
        for i, item in enumerate(value):
            yield from walk(item, f"{pointer}/{i}")


def among(spots: list[Spot], *, ran: bool, needs: str) -> Found:
    """Return the faults, or that the check could not run."""
    return spots if ran else NotApplicable(needs)
