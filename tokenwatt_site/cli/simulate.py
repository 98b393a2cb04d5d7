"""``tokenwatt-site simulate``: the embedded engine by hand, its shapes, its true SLO boundary."""

import asyncio
import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tokenwatt_site.documents.spec import Spec
    from tokenwatt_site.method.shape import Shape
    from tokenwatt_site.method.truth import Truth
    from tokenwatt_site.simulator.server import Setup

EPILOG = """\b
Examples:
  tokenwatt-site simulate
  tokenwatt-site simulate --profile cal --port 8000 --override max_sequences=48
  tokenwatt-site simulate --list
  tokenwatt-site simulate --truth specs/demo.spec.yaml --seeds 8

\b
The engine asks for an API key if the environment variable TOKENWATT_SIMULATOR_API_KEY has one.
"""


@click.command(epilog=EPILOG)
@click.option("--profile", default="demo", show_default=True, help="The shape, see --list.")
@click.option(
    "--override",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of the shape or the meter, see --list. May be repeated.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any free port.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the engine's own noise.")
@click.option(
    "--list",
    "list_",
    is_flag=True,
    help="Print the profiles and all values of --profile, and stop.",
)
@click.option(
    "--truth",
    "spec_file",
    metavar="SPEC",
    type=click.Path(path_type=Path),
    help="Compute the true SLO boundary of a spec's embedded engine in virtual time, and stop.",
)
@click.option(
    "--seeds",
    type=click.IntRange(2, 1000),
    default=5,
    show_default=True,
    help="With --truth: independent streams.",
)
@click.option(
    "--requests",
    type=click.IntRange(1000),
    default=100_000,
    show_default=True,
    help="With --truth: requests of a stream, a tenth of them warm-up.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def simulate(
    *,
    profile: str,
    pairs: tuple[str, ...],
    host: str,
    port: int,
    seed: int,
    list_: bool,
    spec_file: Path | None,
    seeds: int,
    requests: int,
    as_json: bool,
) -> None:
    """Serve the embedded engine on this machine, or compute its true SLO boundary.

    The engine is a step model of a continuous-batching server with a simulated power meter, behind
    an OpenAI-compatible API. Nothing that it shows is a measurement of hardware.
    """
    from tokenwatt_site.method.overrides import parse, split
    from tokenwatt_site.method.profiles import shape_of

    if list_:
        _list(shape_of(profile, parse(pairs)), as_json=as_json)
    elif spec_file is not None:
        if pairs:
            raise click.UsageError("--truth takes profile and overrides from the spec")
        _truth(spec_file, seeds, requests, as_json=as_json)
    else:
        from tokenwatt_site.simulator.server import API_KEY_ENV, Setup

        overrides = parse(pairs)
        setup = Setup(
            shape_of(profile, overrides),
            split(overrides).meter,
            seed=seed,
            host=host,
            port=port,
            api_key=os.environ.get(API_KEY_ENV, ""),
        )
        asyncio.run(_serve(setup, as_json=as_json))


async def _serve(setup: "Setup", *, as_json: bool) -> None:
    """Serve until Ctrl-C, which is how it is meant to end."""
    from tokenwatt_site.simulator.server import serve

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready(url: str) -> None:
        if as_json:
            click.echo(json.dumps({"url": url}))
        else:
            click.echo(f"{setup.shape.name}: {setup.shape.about}")
            click.echo(f"serving {url}   (power: {url.removesuffix('/v1')}/power)")
            click.echo("stop it with Ctrl-C")
        sys.stdout.flush()

    await serve(setup, ready, stop)


def _list(shape: "Shape", *, as_json: bool) -> None:
    """Print what --profile and --override take."""
    from tokenwatt_site.method.overrides import values_of
    from tokenwatt_site.method.profiles import PROFILES

    values = {key: None if value == math.inf else value for key, value in values_of(shape).items()}
    if as_json:
        profiles = {name: profile.about for name, profile in PROFILES.items()}
        click.echo(json.dumps({"profiles": profiles, "profile": shape.name, "values": values}))
        return
    formatter = click.HelpFormatter(width=96)
    with formatter.section("Profiles"):
        formatter.write_dl([(name, profile.about) for name, profile in PROFILES.items()])
    with formatter.section(f"Values of {shape.name}, which --override changes"):
        formatter.write_dl([(key, _plain(value)) for key, value in values.items()])
    click.echo(formatter.getvalue().rstrip())


def _plain(value: float | None) -> str:
    return "never" if value is None else str(value).lower()


def _truth(spec_file: Path, seeds: int, requests: int, *, as_json: bool) -> None:
    from tokenwatt_site.documents.doors import load_spec
    from tokenwatt_site.documents.tracefile import read_trace
    from tokenwatt_site.method.replay import trace_of
    from tokenwatt_site.method.truth import truth_of_spec
    from tokenwatt_site.units import fmt

    def progress(done: int, rate_rps: float) -> None:
        where = f"seed {done} of {seeds}" if done else "near"
        click.echo(f"{where}: {fmt(rate_rps, 'rps')}", err=True)

    spec = load_spec(spec_file)
    trace = trace_of(read_trace(spec.workload.trace, spec_file.parent))
    found = truth_of_spec(spec, seeds=seeds, requests=requests, progress=progress, trace=trace)
    if as_json:
        click.echo(json.dumps(_as_json(found), allow_nan=False))
    else:
        click.echo(_as_text(found, spec))


def _as_json(found: "Truth") -> dict[str, Any]:
    return {
        "rate_rps": found.rate_rps,
        "interval_rps": [found.lo_rps, found.hi_rps],
        "seed_rates_rps": list(found.seed_rates_rps),
        "bound_by": found.bound_by,
        "slope": found.slope if math.isfinite(found.slope) else None,
        "requests": found.requests,
    }


def _as_text(found: "Truth", spec: "Spec") -> str:
    from tokenwatt_site.units import fmt, span

    limit_ms = spec.slo.ttft_p99_ms if found.bound_by == "ttft" else spec.slo.tpot_p99_ms
    return (
        f"true SLO boundary: {fmt(found.rate_rps, 'rps')}\n"
        f"  95 % interval over {len(found.seed_rates_rps)} seeds: "
        f"{span(found.lo_rps, found.hi_rps, 'rps')}\n"
        f"  bound by {found.bound_by.upper()} p99 ≤ {fmt(limit_ms, 'ms')}"
    )
