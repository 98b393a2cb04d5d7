"""``tokenwatt-site conformance``: hostile streams of known truth, for this client and others."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tokenwatt_site.errors import FindingsError

if TYPE_CHECKING:
    from tokenwatt_site.load.conformance.verdict import Row

SERVE_EPILOG = """\b
Examples:
  tokenwatt-site conformance serve --port 8400
  curl http://127.0.0.1:8400/cases

\b
A client's base URL for a case is http://127.0.0.1:8400/CASE/v1. docs/conformance.md says what to
send and what to report. Exit codes: 0 stopped with Ctrl-C · 2 usage.
"""
CHECK_EPILOG = """\b
Examples:
  tokenwatt-site conformance check
  tokenwatt-site conformance check --results other-client.json

\b
Exit codes: 0 every row is right · 2 usage · 3 one isn't.
"""


@click.group()
def conformance() -> None:
    """Streams whose truth is known: what does a client make of them?"""


@conformance.command(epilog=SERVE_EPILOG)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8400,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes one that is free.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the URL as JSON.")
def serve(*, port: int, as_json: bool) -> None:
    """Serve every case on 127.0.0.1, each under a path of its own.

    GET /cases lists them with their truth: how to ask for each, its outcome, times and tokens.
    """
    asyncio.run(_serve(port, as_json=as_json))


@conformance.command(epilog=CHECK_EPILOG)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Judge what another client saw, by a file as docs/conformance.md describes it.",
)
@click.option(
    "--tolerance-ms",
    type=click.FloatRange(min=0.1, max=10_000),
    default=25,
    show_default=True,
    help="How far a time may be off; a time that misses one token is off by 50.",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON a row.")
def check(*, results: Path | None, tolerance_ms: float, as_json: bool) -> None:
    """Run this client over every case and judge what it saw.

    Prints a row a case and dialect: what is so, what was seen, the verdict. Takes a few seconds.
    Stub and client share this machine: a row whose times alone are off is played again, up to
    three times.
    """
    from tokenwatt_site.load.conformance.check import check as checked
    from tokenwatt_site.load.loop import new_loop

    if results is None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            found = runner.run(checked(tolerance_ms / 1000))
    else:
        from tokenwatt_site.load.conformance.results import judged

        found = judged(results, tolerance_ms / 1000)
    _print(found, as_json=as_json)


async def _serve(port: int, *, as_json: bool) -> None:
    """Serve until Ctrl-C, which is how it is meant to end."""
    import json

    from tokenwatt_site.load.conformance.server import serving

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(port) as url:
        if as_json:
            click.echo(json.dumps({"url": url}))
        else:
            click.echo(f"{url}/cases lists the cases\nbase URL of a case: {url}/CASE/v1")
            click.echo("stop it with Ctrl-C")
        sys.stdout.flush()
        await stop.wait()


def _print(found: "list[Row]", *, as_json: bool) -> None:
    from tokenwatt_site.cli.terminal import say
    from tokenwatt_site.load.conformance.table import as_lines, as_table

    say("\n".join(as_lines(found) if as_json else as_table(found)))
    wrong = sum(not row.green for row in found)
    if wrong:
        raise FindingsError(
            f"{wrong} of {len(found)} rows aren't as they should be",
            "docs/conformance.md says what each case is about",
        )
