"""What is wrong with content: collected, so that one build tells all of it at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tokenwatt_site.errors import DocumentError, FindingsError

_SHOWN = 20

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, with its place.

    An error stops the build. A broken run file is a warning that names its place: the other runs
    are still built, and ``--strict`` makes every warning an error.
    """

    severity: Severity
    text: str
    """``file:line: sentence``."""
    hint: str = ""
    path: str = ""
    """The file, relative to the content folder."""

    def __str__(self) -> str:
        """Return the sentence and the next step, as an error of the command line reads."""
        return f"{self.text}\n  next: {self.hint}" if self.hint else self.text


def raise_errors(problems: Sequence[Problem], *, strict: bool) -> None:
    """Stop the build if something is an error, or anything at all when ``strict``.

    Raises:
        DocumentError: there are errors; one line each.
        FindingsError: there are warnings only, and ``strict``.
    """
    errors = [each for each in problems if each.severity == "error"]
    fatal = errors or (list(problems) if strict else [])
    if not fatal:
        return
    lines = [each.text for each in fatal[:_SHOWN]]
    if len(fatal) > _SHOWN:
        lines.append(f"… and {len(fatal) - _SHOWN} more")
    hint = next((each.hint for each in fatal if each.hint), "mend the file")
    kind = DocumentError if errors else FindingsError
    raise kind("\n".join(lines), f"{hint}; the site is as it was")
