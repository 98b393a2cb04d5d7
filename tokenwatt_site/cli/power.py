"""``tokenwatt-site power watch``, ``record`` and ``agent``: meters without a load."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import InvalidMeasurement, UsageError

if TYPE_CHECKING:
    from tokenwatt_site.method.samples import PowerSample
    from tokenwatt_site.power.sampler import Sampler

_EVERY_S = 1.0
_LAST_PORT = 65_535


@click.group()
def power() -> None:
    """Read power meters without a load: watch them, record them, show them to another host."""


@power.command(
    epilog="""\b
Examples:
  export TOKENWATT_AGENT_TOKEN="$(openssl rand -hex 16)"   # the same on every host
  tokenwatt-site power agent two-nodes.spec.yaml --host node1 --listen 10.0.0.2:8470
\b
The spec is that of the measuring host: `hosts` names each host's meters, and for the others the
address of their agent and the variable of the token. Only who knows the token gets an answer.
"""
)
@click.argument("spec_file", metavar="SPEC", type=click.Path(path_type=Path))
@click.option("--host", "name", required=True, help="This host's name in the spec's `hosts`.")
@click.option(
    "--listen",
    default="127.0.0.1:8470",
    show_default=True,
    help="Address and port to listen on; port 0 takes a free one.",
)
def agent(*, spec_file: Path, name: str, listen: str) -> None:
    """Show the meters of this host, one of several, to the host that measures."""
    import os

    from tokenwatt_site.documents.doors import load_spec
    from tokenwatt_site.drivers.agent import checked_token
    from tokenwatt_site.drivers.choice import EVERY
    from tokenwatt_site.power.agent import Agent
    from tokenwatt_site.power.opened import opened

    hosts = {host.name: host for host in load_spec(spec_file).hosts or ()}
    if name not in hosts:
        raise UsageError(
            f"{spec_file} names no host {name}", f"its hosts are: {', '.join(hosts) or 'none'}"
        )
    host = hosts[name]
    token = checked_token(os.environ.get(host.token_env or ""), host.token_env)
    with ExitStack() as stack:
        samplers = opened(host.power, stack, gpus=host.gpus, count=EVERY, simulator_url=None)
        try:
            server = stack.enter_context(Agent(_address(listen), name, samplers, token))
        except OSError as error:
            raise UsageError(f"--listen {listen}: {error.strerror}", "choose another") from None
        where, port = server.server_address[:2]
        say(f"agent of {name} at http://{where!s}:{port}; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise UsageError(f"--listen {listen}: no ADDRESS:PORT", "such as 127.0.0.1:8470")
    return host, int(port)


def _asked(command: "Callable[..., None]") -> "Callable[..., None]":
    """Give a command the options that name its meters."""
    spec = click.argument(
        "spec_file", metavar="[SPEC]", required=False, type=click.Path(path_type=Path)
    )
    source = click.option(
        "--source", help="A meter of this machine by name, such as board, rapl or hwmon."
    )
    seconds = click.option(
        "--seconds",
        type=click.FloatRange(min=0.1),
        help="Stop after so many seconds. Default: at Ctrl-C.",
    )
    return spec(source(seconds(command)))


@power.command(
    epilog="""\b
Examples:
  tokenwatt-site power watch --source board
  tokenwatt-site power watch my.spec.yaml --seconds 10 --json
"""
)
@_asked
@click.option("--json", "as_json", is_flag=True, help="Print a JSON line a second and meter.")
def watch(
    *, spec_file: Path | None, source: str | None, seconds: float | None, as_json: bool
) -> None:
    """Show the meters of SPEC, or one by name, once a second."""
    with _reading(spec_file, source) as samplers:
        if not as_json:
            say("  ".join(f"{s.meter.name}: {s.meter.source} ({s.meter.scope})" for s in samplers))
        for _ in _ticks(seconds):
            if as_json:
                for sampler in samplers:
                    say(json.dumps(_row(sampler), allow_nan=False))
            else:
                say("  ".join(map(_words, samplers)))


@power.command(
    epilog="""\b
Examples:
  tokenwatt-site power record --source board --out idle.jsonl.gz --seconds 60
  tokenwatt-site power record my.spec.yaml --out node.jsonl
\b
A log is JSON lines: what the meter is, then one line a reading, as in the evidence of a run.
`power: {source: replay, path: idle.jsonl.gz}` reads it. Of several meters the second goes into
idle-2.jsonl.gz, and so on.
"""
)
@_asked
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The log's file.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def record(
    *, spec_file: Path | None, source: str | None, seconds: float | None, out: Path, force: bool
) -> None:
    """Write what the meters of SPEC read, or one by name, to a log; Ctrl-C keeps it."""
    from tokenwatt_site.power.log import PowerLog

    with _reading(spec_file, source) as samplers, ExitStack() as stack:
        logs = [
            stack.enter_context(PowerLog(sampler, _numbered(out, number), force=force))
            for number, sampler in enumerate(samplers)
        ]
        for _ in _ticks(seconds):
            for log in logs:
                log.write()
    for log in logs:
        say(f"wrote {log.path}: {log.readings:,} readings, {log.failed:,} of them failed")
    if any(log.failed == log.readings for log in logs):
        raise InvalidMeasurement("a meter gave no reading", "`tokenwatt-site doctor` says why")


@contextmanager
def _reading(spec_file: Path | None, source: str | None) -> "Generator[list[Sampler]]":
    from tokenwatt_site.documents.doors import load_spec
    from tokenwatt_site.documents.spec import SpecPower
    from tokenwatt_site.drivers.choice import EVERY
    from tokenwatt_site.method.meters import meter_specs
    from tokenwatt_site.power import METERS
    from tokenwatt_site.power.opened import opened, opened_of

    if (spec_file is None) == (source is None):
        raise UsageError("name a SPEC, or a meter by --source", "`tokenwatt-site power --help`")
    spec = load_spec(spec_file) if spec_file else None
    if source is not None and source not in METERS:
        raise UsageError(f"--source: there is no meter {source}", f"known: {', '.join(METERS)}")
    meters = meter_specs(spec) if spec else [SpecPower.model_validate({"source": source or "none"})]
    if not meters:
        raise UsageError(f"{spec_file} names no meter", "add power: {source: …}; see docs/power.md")
    with ExitStack() as stack:
        if spec is None or spec_file is None:
            yield opened(meters, stack, gpus=None, count=EVERY, simulator_url=None)
        else:
            count = EVERY if spec.hardware.adapter == "none" else spec.model.ranks
            url, folder = spec.engine.endpoint, spec_file.parent
            yield opened_of(spec, stack, count=count, simulator_url=url, folder=folder)


def _ticks(seconds: float | None) -> Iterator[None]:
    """Yield once a second until the time is over or Ctrl-C comes."""
    end_s = None if seconds is None else time.monotonic() + seconds
    try:
        while end_s is None or time.monotonic() < end_s:
            left_s = _EVERY_S if end_s is None else end_s - time.monotonic()
            time.sleep(max(0.0, min(_EVERY_S, left_s)))
            yield
    except KeyboardInterrupt:
        yield


def _last(sampler: "Sampler") -> "list[PowerSample]":
    """Return the last sample of each device; one reading may hold several."""
    return list({sample.device: sample for sample in sampler.recent()}.values())


def _row(sampler: "Sampler") -> dict[str, Any]:
    last = _last(sampler)
    return {
        "meter": sampler.meter.name,
        "scope": sampler.meter.scope,
        "devices": {s.device: s.power_w for s in last},
        "energy_j": {s.device: s.energy_j for s in last if s.energy_j is not None},
        "errors": sorted({s.error for s in last if s.error}),
    }


def _words(sampler: "Sampler") -> str:
    last = _last(sampler)
    watts = [s.power_w for s in last if s.power_w is not None]
    errors = sorted({s.error for s in last if s.error})
    whole = len(watts) == len(sampler.meter.devices)
    total = f"{sum(watts):,.1f} W" if watts and whole else "no power"
    throttled = sorted({reason for s in last for reason in s.throttle or ()})
    notes = [*errors, *throttled]
    return f"{sampler.meter.name} {total}" + (f" ({', '.join(notes)})" if notes else "")


def _numbered(out: Path, number: int) -> Path:
    stem, dot, rest = out.name.partition(".")
    return out if number == 0 else out.with_name(f"{stem}-{number + 1}{dot}{rest}")
