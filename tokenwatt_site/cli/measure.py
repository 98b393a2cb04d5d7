"""``tokenwatt-site measure`` and its alias ``run``."""

import sys
from pathlib import Path
from typing import Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import TokenwattError, UsageError

EPILOG = """\b
Examples:
  tokenwatt-site measure specs/demo.spec.yaml
  tokenwatt-site measure my.spec.yaml --dry-run
  tokenwatt-site measure my.spec.yaml --label tp4 --role candidate --out runs/tp4.json
  tokenwatt run --spec my.spec.yaml --role baseline --out runs/mine.json --json
  tokenwatt-site measure --resume runs/mine.json

\b
Exit codes: 0 done · 1 failed · 2 usage or spec · 4 measured, no rate keeps the limits ·
5 measured, but a confirm window or a meter is invalid · 130 interrupted, draft saved.
"""


@click.command(epilog=EPILOG)
@click.argument("spec_file", metavar="[SPEC]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--spec",
    "spec_option",
    type=click.Path(path_type=Path),
    help="The spec, YAML. The same as SPEC.",
)
@click.option("--label", default="", help="The configuration's label. Default: made from the spec.")
@click.option(
    "--role",
    type=click.Choice(["baseline", "candidate"]),
    help="What the run is in a report. Default: baseline.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The document. Default: runs/<label or spec name>.json.",
)
@click.option(
    "--resume",
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="Go on with a run that was cut off, from its last finished window. SPEC may be left out.",
)
@click.option("--force", is_flag=True, help="Replace a document that exists, with its evidence.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be measured: windows, minutes, files. Sends nothing.",
)
@click.option("--yes", is_flag=True, help="Don't ask before sending load to another machine.")
@click.option(
    "--json", "as_json", is_flag=True, help="Events and result as JSON lines on standard output."
)
def measure(**options: Any) -> None:
    """Measure a server: the highest rate that keeps the latency limits, and the energy of a token.

    Sends open-loop load to an OpenAI-compatible server, reads the power meters, and writes one
    validated run document with its evidence beside it. Ctrl-C or a kill keeps what was measured,
    and --resume goes on with it: same spec, same server, same seeds.
    """
    from tokenwatt_site import measure as conductor
    from tokenwatt_site.cli.progress import teller

    resumed = _taken_up(options)
    if resumed is None:
        spec, asked = _asked(options)
    else:
        spec, asked = resumed.spec, resumed.options()
    plan = conductor.plan(spec, asked, resumed)
    if options["dry_run"]:
        _show_plan(plan, as_json=options["as_json"])
        return
    _agree(plan, yes=options["yes"])
    tell = teller(as_json=options["as_json"])
    tell({"event": "plan", **plan})
    if not options["as_json"]:
        say(_plan_line(plan), err=True)
    result = conductor.measure(spec, asked, tell, resumed)
    _show_result(result, as_json=options["as_json"])
    sys.exit(result.exit_code)


def _asked(options: dict[str, Any]) -> Any:
    """Return the spec of a new measurement, and how it is asked for."""
    from tokenwatt_site import measure as conductor
    from tokenwatt_site.documents.doors import load_spec

    path = _spec_path(options["spec_file"], options["spec_option"])
    spec = load_spec(path)
    asked = conductor.Options.of(
        spec,
        spec_file=path,
        label=options["label"],
        role=options["role"] or "baseline",
        out=options["out"],
        force=options["force"],
    )
    return spec, asked


def _taken_up(options: dict[str, Any]) -> Any:
    """Return the run that --resume names; None without it."""
    from tokenwatt_site import measure as conductor
    from tokenwatt_site.documents.doors import load_spec

    if options["resume"] is None:
        return None
    for name in ("out", "label", "role", "force"):
        if options[name]:
            raise UsageError(
                f"--{name} was settled when the run was begun", f"leave --{name} out with --resume"
            )
    named = options["spec_file"] or options["spec_option"]
    path = _spec_path(options["spec_file"], options["spec_option"]) if named else None
    return conductor.take_up(options["resume"], load_spec(path) if path else None, path)


def _spec_path(argument: Path | None, option: Path | None) -> Path:
    if argument and option and argument != option:
        raise UsageError("two specs are named", "give SPEC or --spec, not both")
    path = argument or option
    if path is None:
        raise UsageError(
            "no spec is named",
            "tokenwatt-site measure SPEC; `tokenwatt-site spec new --endpoint URL` writes one",
        )
    return path


def _plan_line(plan: dict[str, Any]) -> str:
    low, high = plan["minutes"]
    few, many = plan["windows"]
    return (
        f"{plan['endpoint']}: {few} to {many} windows, {low:.3g} to {high:.3g} minutes of load; "
        f"writing {plan['out']}"
    )


def _show_plan(plan: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(plan))
        return
    say(_plan_line(plan))
    say(f"limits: {plan['limits']}")
    say(f"workload: {plan['workload']}")
    say(f"search: {plan['search']}")
    say(f"power: {plan['power']}")
    say("files: " + ", ".join(plan["files"]))


def _agree(plan: dict[str, Any], *, yes: bool) -> None:
    """An endpoint on another machine is asked about once: this is a load generator."""
    if plan["loopback"] or yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{plan['endpoint']} is another machine", "give --yes if you may put load on it"
        )
    if not click.confirm(
        f"{plan['endpoint']} is another machine. May it be put under load?", err=True
    ):
        raise TokenwattError("not measured", "nothing was sent")


def _show_result(result: Any, *, as_json: bool) -> None:
    run = result.run
    config = run.configs[0]
    if as_json:
        import json

        click.echo(
            json.dumps(
                {
                    "event": "done",
                    "out": str(result.out),
                    "exit_code": result.exit_code,
                    "id": run.id,
                    "verdict": run.verdict.word,
                    "text": run.verdict.text,
                    "rate_rps": config.rate_rps,
                    "goodput_tok_s": config.goodput_tok_s,
                    "j_per_output_token": config.energy.j_per_output_token
                    if config.energy
                    else None,
                }
            )
        )
        return
    say(f"{run.verdict.word}: {run.verdict.text}")
    say(run.summary)
    say(f"wrote {result.out}")
