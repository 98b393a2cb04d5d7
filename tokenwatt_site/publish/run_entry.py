"""One run document of the content folder: read, checked, its evidence held against its hashes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tokenwatt_site.documents import doors, jsonfile, yamlfile
from tokenwatt_site.documents.hardware import Hardware
from tokenwatt_site.documents.run import Evidence, Run
from tokenwatt_site.errors import DocumentError
from tokenwatt_site.method.checks import checks
from tokenwatt_site.publish.content_files import WaiverFile
from tokenwatt_site.publish.model import EvidenceFile, RunEntry, ShownFinding, Waiver
from tokenwatt_site.publish.problems import Problem
from tokenwatt_site.publish.tree import Tree

Waivers = Mapping[tuple[str, str, str], WaiverFile]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a document is checked against."""

    hardware: Mapping[str, Hardware]
    """By the accelerator's name."""
    waivers: Waivers
    today: str


def load_entry(tree: Tree, path: str, rules: Rules) -> tuple[RunEntry, list[Problem]]:
    """Read ``runs/<id>.json``.

    Raises:
        DocumentError: it isn't a run document, or its id isn't its file's name.
    """
    name, raw = tree.name(path), tree.files[path]
    data = jsonfile.loads(raw, name)
    run = doors.parse_run(data, name)
    stem = PurePosixPath(path).stem
    if run.id != stem:
        raise DocumentError(f"{name}: /id: {run.id!r} isn't the file's name", "make them the same")
    spec_yaml = yamlfile.dumps(data["spec"])
    evidence, problems = _evidence(tree, stem, run)
    entry = RunEntry(
        run=run,
        raw=raw,
        sha256=hashlib.sha256(raw).hexdigest(),
        spec_yaml=spec_yaml,
        spec_sha256=hashlib.sha256(spec_yaml.encode()).hexdigest(),
        path=path,
        findings=_findings(run, data, rules),
        evidence=tuple(evidence),
    )
    return entry, problems


def _findings(run: Run, data: dict[str, object], rules: Rules) -> tuple[ShownFinding, ...]:
    facts = rules.hardware.get(run.hardware.accelerator)
    checked = checks(run, data, facts, rules.today)
    return tuple(
        ShownFinding(
            finding.severity,
            finding.code,
            finding.pointer,
            finding.text,
            finding.mend,
            _waiver(rules.waivers.get((run.id, finding.code, finding.pointer))),
        )
        for finding in checked.findings
    )


def _waiver(found: WaiverFile | None) -> Waiver | None:
    return Waiver(found.reason, found.date) if found else None


def _evidence(tree: Tree, stem: str, run: Run) -> tuple[list[EvidenceFile], list[Problem]]:
    """Return the evidence that is there and has the hash that the document names.

    None of it here is no fault: it may be large, and its hashes stand in the document.
    """
    listed = [*(run.evidence or ()), *(e for config in run.configs for e in config.evidence or ())]
    found: list[EvidenceFile] = []
    problems: list[Problem] = []
    lacking = 0
    for item in listed:
        place = tree.blobs.get(f"runs/{item.path}")
        if place is None or not item.path.startswith(f"{stem}/evidence/"):
            lacking += 1
        elif _matches(item, place.read_bytes()):
            inside = item.path.removeprefix(f"{stem}/evidence/")
            found.append(EvidenceFile(inside, item.sha256, item.bytes))
        else:
            text = (
                f"{place.as_posix()}: isn't the evidence that the document names (hash or length)"
            )
            problems.append(Problem("error", text, "restore it, or remove the file"))
    if 0 < lacking < len(listed):
        name = tree.name(f"runs/{stem}.json")
        text = f"{name}: {lacking} of {len(listed)} evidence files aren't here"
        problems.append(Problem("warning", text, f"put them into runs/{stem}/evidence/"))
    return found, problems


def _matches(item: Evidence, data: bytes) -> bool:
    return len(data) == item.bytes and hashlib.sha256(data).hexdigest() == item.sha256
