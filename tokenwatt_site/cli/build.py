"""``tokenwatt-site build``."""

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tokenwatt_site.publish.build import Built

EPILOG = """\b
Examples:
  tokenwatt-site build
  tokenwatt-site build --drafts --out /tmp/preview
  tokenwatt-site build --base-url https://me.example/tokens/ --strict --json

\b
Exit codes: 0 done · 1 failed, the old site is as it was · 2 usage · 3 warnings, with --strict.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--content",
    type=click.Path(path_type=Path),
    default=Path("content"),
    show_default=True,
    help="The content folder.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("site"),
    show_default=True,
    help="The site. Replaced whole, and only if a build made it.",
)
@click.option("--base-url", help="Address the site will have. Default: base_url of site.yaml.")
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option("--drafts", is_flag=True, help="Build runs whose status is draft, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def build(
    *,
    content: Path,
    out: Path,
    base_url: str | None,
    strict: bool,
    drafts: bool,
    as_json: bool,
) -> None:
    """Render the content folder into a static site.

    Everything is checked first and written beside the old site, which is replaced last, by two
    renames. What the checks find in a document is shown on its page and never stops a build.
    """
    from tokenwatt_site.publish import build as building

    wanted = building.Wanted(content, out, today(), base_url, strict=strict, drafts=drafts)
    built = building.build(wanted)
    tell_warnings(built)
    if as_json:
        click.echo(as_line(built))
    else:
        click.echo(summary(built))
        click.echo(f"{built.out}\n{built.url}")


def today() -> str:
    """Return the ISO date of today, in UTC; ``SOURCE_DATE_EPOCH`` sets it."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = (
        dt.datetime.fromtimestamp(int(epoch), dt.UTC)
        if epoch.isdigit()
        else dt.datetime.now(dt.UTC)
    )
    return now.date().isoformat()


def tell_warnings(built: "Built") -> None:
    """Print what is wrong and didn't stop the build."""
    for problem in built.warnings:
        click.echo(f"warning: {problem}", err=True)
    if built.warnings:
        count = len(built.warnings)
        click.echo(f"{count} warning{'s' if count > 1 else ''}", err=True)


def summary(built: "Built") -> str:
    """Return one line of counts."""
    return (
        f"{built.runs} run{'s' if built.runs != 1 else ''}, {built.pages} pages, "
        f"{built.files} files ({built.unchanged} unchanged), "
        f"{built.size_bytes:,} bytes, {built.seconds:.2f} s"
    )


def as_line(built: "Built") -> str:
    """Return the result as JSON."""
    import json

    return json.dumps(
        {
            "out": str(built.out),
            "url": built.url,
            "runs": built.runs,
            "pages": built.pages,
            "files": built.files,
            "bytes": built.size_bytes,
            "unchanged": built.unchanged,
            "seconds": round(built.seconds, 3),
            "warnings": [problem.text for problem in built.warnings],
        }
    )
