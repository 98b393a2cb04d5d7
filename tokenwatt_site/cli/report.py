"""``tokenwatt-site report``."""

from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  tokenwatt-site report runs/mine.json --title 'My model on 4× H200'
  tokenwatt-site report runs/base.json runs/tp8.json --id my-model-tp8 --fleet-cards 64

\b
Exit codes: 0 done · 1 a run or its evidence can't be read · 2 usage, or runs that don't go
together; the message names the field.
"""


@click.command(epilog=EPILOG)
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--title", help="The document's title. Default: the baseline's.")
@click.option(
    "--id",
    "run_id",
    help="The document's id, part of its address. Default: the name of --out, or the baseline's.",
)
@click.option("--summary", help="The document's summary. Default: the baseline's.")
@click.option(
    "--fleet-cards",
    type=click.IntRange(min=1),
    help="Accelerators of the fleet that the figures are projected to.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The document. Default: content/runs/<id>.json, or ./<id>.json without a content folder.",
)
@click.option("--force", is_flag=True, help="Replace a document that exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def report(
    *,
    runs: tuple[Path, ...],
    run_id: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Join runs into one document for publishing: a baseline and any number of candidates.

    A run's role was given when it was measured. The runs must promise the same latency limits and
    share workload and power scope. Evidence is copied beside the document. One run alone is fine.
    """
    from tokenwatt_site.method.join import Wishes
    from tokenwatt_site.publish import report as reporting

    wishes = Wishes(id=run_id, **said)
    done = reporting.report(runs, wishes, out, force=force)
    if as_json:
        import json

        result = {
            "out": str(done.out),
            "id": done.run.id,
            "status": done.run.status,
            "configs": [config.key for config in done.run.configs],
            "evidence": done.evidence,
        }
        click.echo(json.dumps(result))
        return
    keys = ", ".join(config.key for config in done.run.configs)
    click.echo(f"{done.out}: {keys}; status {done.run.status}; {done.evidence} evidence files")
    if done.out.parent == Path("content/runs"):
        draft = " --drafts" if done.run.status == "draft" else ""
        click.echo(f"next: tokenwatt-site build{draft}", err=True)
