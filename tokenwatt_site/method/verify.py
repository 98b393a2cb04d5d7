"""A published document held against the same document made from its evidence."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from tokenwatt_site import __version__
from tokenwatt_site.documents import doors, jsonfile
from tokenwatt_site.documents.run import METHOD_VERSION, Evidence, Run, Tool
from tokenwatt_site.method.join import Source, Wishes, join
from tokenwatt_site.method.meters import is_simulated
from tokenwatt_site.method.rebuild import Rebuilt

ABSENT = object()
"""Where one of the two has no such key."""

AUTHORED = (
    "id",
    "status",
    "title",
    "published",
    "summary",
    "fleet",
    "not_covered",
    "reproduce",
    "version",
    "labels",
)
"""What people may write into a document that is reported or published; no figure of a window."""

_SAID = ("title", "summary")
"""Those of them that state figures: where an author changed them, both are shown."""

_ELSEWHERE = (
    *("key", "label", "source_sha256", "accuracy", "run_id", "spec", "hardware", "software"),
    *("model", "power", "evidence", "variance_band_pct"),
)
"""Keys of a joined configuration that only the whole document can be asked about."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that the evidence doesn't give."""

    place: str
    """JSON pointer; or a file of evidence and its window."""
    published: Any
    recomputed: Any


@dataclass(slots=True)
class Verification:
    """What was recomputed, and what doesn't hold."""

    mismatches: list[Mismatch] = field(default_factory=list)
    not_recomputed: list[tuple[str, str]] = field(default_factory=list)
    """JSON pointer and why."""
    values: int = 0
    """Numbers and texts of the document that were recomputed."""
    notes: list[str] = field(default_factory=list)

    def whole(self) -> bool:
        """Tell whether every configuration could be recomputed."""
        return not any(
            place == "" or place.startswith("/configs/") for place, _ in self.not_recomputed
        )

    def holds(self) -> bool:
        """Tell whether every configuration was recomputed and all of it is as published."""
        return not self.mismatches and self.values > 0 and self.whole()


@dataclass(frozen=True, slots=True)
class Part:
    """A configuration's evidence, as it was found."""

    rebuilt: Rebuilt
    evidence: Sequence[Evidence]
    """Its files with paths as published, hashes and lengths as found."""


def verify(data: Mapping[str, Any], parts: Sequence[Part | None]) -> Verification:
    """Hold a document against its evidence.

    Args:
        data: the document as parsed JSON, which is a valid run document.
        parts: what the evidence of each configuration gives; None where it can't be had.
    """
    known = [part for part in parts if part is not None]
    result = Verification()
    for part in known:
        for fault in part.rebuilt.faults:
            result.mismatches.append(Mismatch(fault.place, fault.said, fault.found))
    same = all(_same_tool(part.rebuilt, result) for part in known)
    _standing(data, known, result)
    joined = "source_sha256" in data["configs"][0]
    if len(known) < len(parts):
        _configs(data, parts, result, same=same)
        return result
    expected = doors.dump(_joined(data, known) if joined else _run(known[0], known[0].evidence))
    written = list(AUTHORED) if joined or data["status"] not in ("draft", "demo") else []
    if not joined:
        written = [key for key in written if data.get(key) != expected.get(key)]
    for key in written:
        if key in data:
            result.not_recomputed.append((f"/{key}", "an author may have written it"))
            if not joined and key in _SAID:
                result.notes.append(
                    f"/{key} IS NOT WHAT THE MEASUREMENT WROTE: published {_quoted(data[key])}, "
                    f"recomputed {_quoted(expected[key])}"
                )
    _compare(_without(data, written), _without(expected, written), "", result, same=same)
    return result


def differences(published: Any, recomputed: Any, pointer: str = "") -> Iterator[Mismatch]:
    """Yield every place where two JSON values differ, to the last digit."""
    if jsonfile.is_object(published) and jsonfile.is_object(recomputed):
        for key in [*published, *(key for key in recomputed if key not in published)]:
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            pair = published.get(key, ABSENT), recomputed.get(key, ABSENT)
            yield from differences(*pair, place)
    elif jsonfile.is_array(published) and jsonfile.is_array(recomputed):
        both = zip_longest(published, recomputed, fillvalue=ABSENT)
        for index, (one, two) in enumerate(both):
            yield from differences(one, two, f"{pointer}/{index}")
    elif published is not recomputed and not _equal(published, recomputed):
        yield Mismatch(pointer, published, recomputed)


def leaves(value: Any) -> int:
    """Return how many numbers, texts, truths and nulls a JSON value holds."""
    if jsonfile.is_object(value):
        return sum(map(leaves, value.values()))
    return sum(map(leaves, value)) if jsonfile.is_array(value) else 1


def _equal(one: Any, two: Any) -> bool:
    """2 and 2.0 are one number; true and 1 aren't."""
    return isinstance(one, bool) == isinstance(two, bool) and one == two


def _compare(
    published: Any, recomputed: Any, pointer: str, result: Verification, *, same: bool
) -> None:
    result.values += leaves(published)
    for found in differences(published, recomputed, pointer):
        # another version may publish more than this document had
        if same or found.published is not ABSENT:
            result.mismatches.append(found)


def _standing(data: Mapping[str, Any], parts: Sequence[Part], result: Verification) -> None:
    """Hold that nothing simulated is published as measured: its texts would go unchecked."""
    begins = [part.rebuilt.begin for part in parts]
    simulated = any(begin.resolved.simulated or is_simulated(begin.spec) for begin in begins)
    if simulated and data["status"] in ("imported", "published"):
        result.mismatches.append(Mismatch("/status", data["status"], "demo"))


def _configs(
    data: Mapping[str, Any], parts: Sequence[Part | None], result: Verification, *, same: bool
) -> None:
    """Compare the configurations whose evidence there is, one by one."""
    for index, part in enumerate(parts):
        if part is not None:
            expected = doors.dump(_run(part, part.evidence))["configs"][0]
            mine = _without(data["configs"][index], _ELSEWHERE)
            theirs = _without(expected, _ELSEWHERE)
            _compare(mine, theirs, f"/configs/{index}", result, same=same)
    if result.values:
        result.not_recomputed.append(
            ("", "what isn't in those configurations: evidence is missing")
        )


def _joined(data: Mapping[str, Any], parts: Sequence[Part]) -> Run:
    """Join the runs anew, as the author wished it."""
    sources: list[Source] = []
    for part in parts:
        stem = PurePath(part.rebuilt.begin.resolved.origin.out).stem
        named = [
            each.model_copy(update={"path": f"{stem}/{PurePath(each.path).name}"})
            for each in part.evidence
        ]
        source = _run(part, named)
        digest = hashlib.sha256(jsonfile.dumps(doors.dump(source)).encode()).hexdigest()
        moved = source.model_copy(update={"evidence": list(part.evidence)})
        sources.append(Source(moved, f"{stem}.json", digest))
    cards = data["fleet"]["cards"] if data["fleet"] else None
    wishes = Wishes(data["title"], data["id"], data["summary"], cards)
    return join(sources, wishes)


def _run(part: Part, evidence: Sequence[Evidence]) -> Run:
    """Return the document of a measurement, by the program that made it."""
    begin = part.rebuilt.begin
    told = {
        "tool": Tool(name="tokenwatt-site", version=begin.tool),
        "method_version": begin.method,
    }
    return part.rebuilt.document(evidence).model_copy(update=told)


def _same_tool(rebuilt: Rebuilt, result: Verification) -> bool:
    begin = rebuilt.begin
    if (begin.tool, begin.method) == (__version__, METHOD_VERSION):
        return True
    result.notes.append(
        f"measured by version {begin.tool} (method {begin.method}), recomputed by {__version__} "
        f"(method {METHOD_VERSION})"
    )
    return False


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _without(data: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}
