"""``tokenwatt-site doctor``: what this machine can measure, and what it lacks."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import FindingsError

if TYPE_CHECKING:
    from tokenwatt_site.doctor import Examination, MeterLook
    from tokenwatt_site.method.update_period import UpdatePeriod

EPILOG = """\b
Examples:
  tokenwatt-site doctor
  tokenwatt-site doctor --endpoint http://127.0.0.1:8000/v1
  tokenwatt-site doctor my.spec.yaml
  tokenwatt-site doctor --json

\b
With SPEC, its server, accelerators and meters are looked at as `measure` would, and the exit code
is 3 where one of them can't be had. Meters are read for three seconds; the server is asked for its
models and a few tokens.
"""
_WIDTH = 13


@click.command(epilog=EPILOG)
@click.argument("spec_file", metavar="[SPEC]", required=False, type=click.Path(path_type=Path))
@click.option("--endpoint", help="The server's base URL with /v1, where no spec names it.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.5, 600),
    default=3.0,
    show_default=True,
    help="How long meters are read; a meter slower than half of it shows no period.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(*, spec_file: Path | None, endpoint: str | None, seconds: float, as_json: bool) -> None:
    """Say what can be measured from here: server, accelerators, each meter with a reading."""
    from tokenwatt_site.doctor import examine
    from tokenwatt_site.documents.doors import load_spec

    spec = load_spec(spec_file) if spec_file else None
    if not as_json:
        say(f"reading every meter for {seconds:g} s…", err=True)
    folder = spec_file.parent if spec_file else None
    found = examine(spec, endpoint, seconds, folder=folder)
    say(json.dumps(_row(found), allow_nan=False) if as_json else "\n".join(_lines(found)))
    lacking = found.lacking()
    if spec_file and lacking:
        raise FindingsError(
            f"{spec_file} asks for what can't be had from here: {', '.join(lacking)}",
            "see the lines above",
        )


def _row(found: "Examination") -> dict[str, Any]:
    server = asdict(found.server) if found.server else None
    refused = found.server_refused
    return {
        "machine": found.machine,
        "server": server or (refused and {"refused": refused.what, "hint": refused.hint}),
        "accelerators": found.accelerators,
        "meters": [asdict(look) for look in found.meters],
        "lacking": found.lacking(),
    }


def _lines(found: "Examination") -> list[str]:
    machine = found.machine
    files = f"{machine['files_hard']:,}" if machine["files_hard"] else "any number of"
    lines = [
        _line(
            "machine",
            f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
            f"{files} open files; `tokenwatt-site selftest` finds the load that it can time",
        )
    ]
    if found.server:
        context = f", context {found.server.max_context:,}" if found.server.max_context else ""
        version = f" {found.server.engine_version}" if found.server.engine_version else ""
        lines += [_line("server", f"{found.server.model}{version}{context}")]
        lines += [_line("", note) for note in found.server.notes]
    if found.server_refused:
        lines += _refused("server", found.server_refused.what, found.server_refused.hint)
    for each in found.accelerators:
        lines += _accelerators(each)
    for look in found.meters:
        lines += _meter(look)
    read = [look.source for look in found.meters if look.state == "read"]
    words = f"power can be read by: {', '.join(read)}" if read else "no meter of power can be read"
    return [*lines, "", words if read else f"{words}: latency can be measured, energy can't"]


def _accelerators(each: dict[str, Any]) -> list[str]:
    if "refused" in each:
        return _refused(each["adapter"], each["refused"], each["hint"])
    limit = f", limit {each['power_limit_w']:,.0f} W" if each["power_limit_w"] else ""
    driver = f", driver {each['driver']}" if each["driver"] else ""
    return [
        _line(each["adapter"], f"{each['count']} × {each['name']}{driver}{limit}"),
        *(_line("", uuid) for uuid in each["uuids"]),
    ]


def _meter(look: "MeterLook") -> list[str]:
    if look.state in ("refused", "unnamed"):
        return _refused(look.source, look.words, look.hint)
    if look.state == "failing":
        return _refused(look.source, look.words, look.hint)
    gain = "nobody says how far it may be off" if look.gain_pct is None else ""
    gain = gain or f"expected error ± {look.gain_pct:g} %"
    facts = [
        f"{look.power_w:,.1f} W now",
        f"scope {look.scope}",
        f"{look.devices} device{'s' if look.devices > 1 else ''}",
        "energy counter" if look.counter else "samples only",
        _update(look.update),
        gain,
    ]
    missed = f"; some readings failed: {', '.join(look.errors)}" if look.errors else ""
    return [_line(look.source, look.words), _line("", ", ".join(facts) + missed)]


def _update(update: "UpdatePeriod | None") -> str:
    if update is None:
        return "too few new values to tell its period"
    return f"new every {1000 * update.seconds:,.0f} ms{' or faster' if update.at_most else ''}"


def _refused(name: str, what: str, hint: str) -> list[str]:
    return [_line(name, f"no: {what}"), *([_line("", f"next: {hint}")] if hint else [])]


def _line(name: str, text: str) -> str:
    return f"{name:<{_WIDTH}}{text}"
