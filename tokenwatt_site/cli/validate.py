"""``tokenwatt-site validate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.errors import DocumentError, FindingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenwatt_site.method.checks import Finding

EPILOG = """\b
Examples:
  tokenwatt-site validate runs/mine.json
  tokenwatt-site validate content/runs/*.json --strict --json
  tokenwatt-site validate --explain THROTTLING_UNDISCLOSED

\b
Exit codes: 0 valid, whatever the findings · 1 a file that is no run document · 2 usage ·
3 findings, with --strict.
"""


@click.command(epilog=EPILOG)
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit with 3 if there is any finding.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a file.")
@click.option("--explain", metavar="CODE", help="Say what a check looks for, and why.")
def validate(*, files: tuple[Path, ...], strict: bool, as_json: bool, explain: str | None) -> None:
    """Check run documents: against the schema, then against every rule.

    Prints what isn't a run document by file and JSON pointer, then findings: errors, which keep a
    document from being published unless they are waived by name, and warnings.
    """
    if explain:
        click.echo(_explained(explain))
        return
    if not files:
        raise UsageError("no file is named", "tokenwatt-site validate runs/mine.json")
    results = [_result(file) for file in files]
    for result in results:
        click.echo(_as_json(result) if as_json else "\n".join(_lines(result)))
    broken = sum(bool(result["faults"]) for result in results)
    found = sum(len(result["findings"]) for result in results)
    if broken:
        raise DocumentError(
            f"{broken} of {len(files)} files can't be used as run documents",
            "mend the places above; schemas/run.schema.json is the contract",
        )
    if strict and found:
        raise FindingsError(
            f"{found} finding{'s' if found > 1 else ''}, and --strict allows none",
            "mend them; `tokenwatt-site validate --explain CODE` says why they matter",
        )


def _result(file: Path) -> dict[str, Any]:
    """Return a file's faults, or else its findings."""
    from tokenwatt_site.cli.build import today
    from tokenwatt_site.documents import jsonfile
    from tokenwatt_site.documents.doors import run_faults
    from tokenwatt_site.documents.hardware import known_hardware
    from tokenwatt_site.documents.run import Run
    from tokenwatt_site.method.checks import checks
    from tokenwatt_site.resources import resource

    result: dict[str, Any] = {"file": str(file), "faults": [], "findings": [], "not_applicable": []}
    try:
        data = jsonfile.load(file)
    except DocumentError as error:
        return result | {"faults": [{"pointer": "", "text": error.what}]}
    run = run_faults(data)
    if not isinstance(run, Run):
        return result | {"faults": [{"pointer": f.pointer, "text": f.text} for f in run]}
    facts = known_hardware(resource("content/hardware")).get(run.hardware.accelerator)
    checked = checks(run, data, facts, today())
    return result | {"findings": checked.findings, "not_applicable": checked.not_applicable}


def _as_json(result: dict[str, Any]) -> str:
    import json
    from dataclasses import asdict

    skipped = [{"code": code, "needs": needs} for code, needs in result["not_applicable"]]
    findings = [asdict(finding) for finding in result["findings"]]
    return json.dumps(result | {"findings": findings, "not_applicable": skipped})


def _lines(result: dict[str, Any]) -> list[str]:
    name = result["file"]
    if result["faults"]:
        return [_fault(name, fault["pointer"], fault["text"]) for fault in result["faults"]]
    findings: Sequence[Finding] = result["findings"]
    errors = sum(finding.severity == "error" for finding in findings)
    lines = [f"{name}: {_count(errors, 'error')}, {_count(len(findings) - errors, 'warning')}"]
    for finding in findings:
        lines += [
            f"  {finding.severity} {finding.code} {finding.pointer or '/'}",
            f"    {finding.text}",
            f"    next: {finding.mend}",
        ]
    skipped = ", ".join(f"{code} (needs {needs})" for code, needs in result["not_applicable"])
    return [*lines, f"  not applicable: {skipped}"] if skipped else lines


def _fault(name: str, pointer: str, text: str) -> str:
    """A file that can't be read names itself in its message."""
    return f"{name}: {pointer}: {text}" if pointer or name not in text else text


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _explained(code: str) -> str:
    from difflib import get_close_matches

    from tokenwatt_site.method.checks import RULES

    rules = {rule.code: rule for rule in RULES}
    if code.upper() not in rules:
        near = get_close_matches(code.upper(), rules, 1)
        hint = f"did you mean {near[0]}?" if near else f"codes: {', '.join(rules)}"
        raise UsageError(f"no check has the code {code!r}", hint)
    rule = rules[code.upper()]
    return f"{rule.code} ({rule.severity})\n{rule.about}\nnext: {rule.mend}"
