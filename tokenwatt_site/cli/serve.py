"""``tokenwatt-site serve``."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tokenwatt_site.errors import TokenwattError
    from tokenwatt_site.publish.build import Built

EPILOG = """\b
Examples:
  tokenwatt-site serve
  tokenwatt-site serve --port 0 --no-drafts

\b
Exit codes: 0 stopped with Ctrl-C · 2 usage.
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
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes one that is free.",
)
@click.option("--drafts/--no-drafts", default=True, show_default=True, help="Show drafts, too.")
def serve(*, content: Path, port: int, drafts: bool) -> None:
    """Build the site, serve it on 127.0.0.1 and build again when the content changes.

    Nothing outside this machine can reach it. A build that fails is told, and the site before it
    is still served. The output folder of `build` isn't touched.
    """
    from tokenwatt_site.cli.build import summary, tell_warnings, today
    from tokenwatt_site.publish import serve as serving
    from tokenwatt_site.publish.build import Wanted

    def built(done: "Built") -> None:
        tell_warnings(done)
        click.echo(summary(done))

    def failed(error: "TokenwattError") -> None:
        click.echo(f"error: {error}", err=True)

    def started(url: str) -> None:
        click.echo(f"{url}\nCtrl-C stops")

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves no folder behind either
    wanted = Wanted(content, Path("site"), today(), drafts=drafts)
    try:
        serving.serve(wanted, port, serving.Told(started, built, failed))
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
