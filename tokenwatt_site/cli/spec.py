"""``tokenwatt-site spec new`` and ``spec check``."""

from pathlib import Path
from typing import Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import UsageError


@click.group()
def spec() -> None:
    """Write a spec for a server, or check spec files."""


@spec.command(
    epilog="""\b
Examples:
  tokenwatt-site spec new --endpoint http://127.0.0.1:8000/v1 --out my.spec.yaml
  tokenwatt-site spec new --endpoint simulator: | less
"""
)
@click.option("--endpoint", required=True, help="The server's base URL with /v1, or `simulator:`.")
@click.option(
    "--model",
    default="",
    help="The model's name in the API. Default: the only one the server lists.",
)
@click.option(
    "--api",
    type=click.Choice(["completions", "chat", "responses"]),
    default="completions",
    show_default=True,
    help="The API dialect; ids can be sent to completions only.",
)
@click.option("--api-key-env", help="Name of the environment variable that holds the API key.")
@click.option(
    "--ca-file", help="PEM file of the authority that signed the server's certificate, if unknown."
)
@click.option("--name", default="", help="The spec's name. Default: made from model and engine.")
@click.option("--out", type=click.Path(path_type=Path), help="The file. Default: standard output.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def new(*, out: Path | None, force: bool, **asked: Any) -> None:
    """Ask the server, the GPUs and the meters of this machine, and write a commented spec."""
    from tokenwatt_site.first_spec import new_spec

    if out and out.exists() and not force:
        raise UsageError(f"{out} exists already", "choose another --out, or --force to replace it")
    text, notes = new_spec(**asked)
    for note in notes:
        say(note, err=True)
    if out is None:
        click.echo(text, nl=False)
        return
    from tokenwatt_site.store import replace

    replace(out, text.encode())
    click.echo(f"wrote {out}\nnext: tokenwatt-site measure {out} --dry-run", err=True)


@spec.command(
    epilog="""\b
Examples:
  tokenwatt-site spec check specs/*.spec.yaml
"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Check spec files: every key, every value; say what a measurement would do."""
    from tokenwatt_site import measure
    from tokenwatt_site.documents.doors import load_spec

    for path in files:
        found = load_spec(path)
        options = measure.Options.of(
            found, spec_file=path, label="", role="baseline", out=None, force=False
        )
        planned = measure.plan(found, options)
        low, high = planned["minutes"]
        say(f"{path}: a valid spec; {planned['search']}, {low:.3g} to {high:.3g} minutes of load")
