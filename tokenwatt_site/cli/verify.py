"""``tokenwatt-site verify``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import FindingsError

if TYPE_CHECKING:
    from tokenwatt_site.method.verify import Verification

EPILOG = """\b
Examples:
  tokenwatt-site verify runs/mine.json
  tokenwatt-site verify content/runs/my-model.json --json

\b
Exit codes: 0 every figure holds · 1 a file that is no run document · 2 usage · 3 a figure or a
file of evidence isn't what was published, or a configuration couldn't be recomputed.
"""
_SHOWN = 200


@click.command(epilog=EPILOG)
@click.argument("files", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a document.")
def verify(*, files: tuple[Path, ...], as_json: bool) -> None:
    """Recompute every figure of a run document from its evidence, and compare to the last digit.

    Hashes and lengths of the evidence, the loads drawn from the seed, the verdict of each window,
    energy, percentiles, sums, and the path of the search. No stored verdict is believed. Prints a
    line for each value that doesn't hold, and what could not be recomputed and why.
    """
    from tokenwatt_site.verify import verify as check

    results = [(file, check(file)) for file in files]
    for file, result in results:
        if as_json:
            click.echo(_as_json(file, result))
        else:
            for line in _lines(file, result):
                say(line)
    bad = [str(file) for file, result in results if not result.holds()]
    if bad:
        raise FindingsError(
            f"{', '.join(bad)}: not what its evidence gives, or not all of it can be recomputed",
            "restore document and evidence from where they were published, or measure again",
        )


def _lines(file: Path, result: "Verification") -> list[str]:
    lines = [
        f"{found.place or '/'}: published {_value(found.published)}, "
        f"recomputed {_value(found.recomputed)}"
        for found in result.mismatches
    ]
    lines += [f"note: {note}" for note in result.notes]
    reasons: dict[str, list[str]] = {}
    for place, why in result.not_recomputed:
        reasons.setdefault(why, []).append(place or "/")
    lines += [f"not recomputed: {', '.join(at)}: {why}" for why, at in reasons.items()]
    if not result.values:
        return [*lines, f"{file}: nothing could be recomputed"]
    bad = len(result.mismatches)
    held = f"{bad} do not hold" if bad else "all hold"
    held += "" if result.whole() else ", but not every configuration could be recomputed"
    return [*lines, f"{file}: {result.values} values recomputed from the evidence; {held}"]


def _value(value: Any) -> str:
    """Return a value as JSON, cut where it is long."""
    import json

    from tokenwatt_site.method.verify import ABSENT

    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _as_json(file: Path, result: "Verification") -> str:
    import json

    from tokenwatt_site.method.verify import ABSENT

    mismatches: list[dict[str, Any]] = []
    for found in result.mismatches:
        row = {"published": found.published, "recomputed": found.recomputed}
        known = {key: value for key, value in row.items() if value is not ABSENT}
        mismatches.append({"place": found.place, **known})
    return json.dumps(
        {
            "file": str(file),
            "holds": result.holds(),
            "values": result.values,
            "mismatches": mismatches,
            "not_recomputed": [
                {"place": place, "why": why} for place, why in result.not_recomputed
            ],
            "notes": result.notes,
        }
    )
