"""The command line: parse, call one function, print. Commands are loaded when they are named."""

import importlib
import sys

import click

from tokenwatt_site import __version__
from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import Interrupted, TokenwattError

_SHOWN = 500

# name -> (module, attribute, help). The help stands here so that --help imports no command.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "demo": (
        "demo",
        "demo",
        "Measure the embedded engine and build a site of it, in two minutes.",
    ),
    "doctor": ("doctor", "doctor", "Say what this machine can measure, and what it lacks."),
    "spec": ("spec", "spec", "Write a spec for a server, or check one."),
    "measure": (
        "measure",
        "measure",
        "Measure a server: load, latency, power; write one run document.",
    ),
    "run": ("measure", "measure", "The same as measure."),
    "report": ("report", "report", "Join runs into one document: baseline and candidates."),
    "validate": ("validate", "validate", "Check run documents: schema, then every rule."),
    "verify": ("verify", "verify", "Recompute every figure of a run from its evidence."),
    "build": ("build", "build", "Render the content folder into a static site."),
    "serve": ("serve", "serve", "Build, serve on 127.0.0.1 and rebuild when content changes."),
    "simulate": (
        "simulate",
        "simulate",
        "Serve the embedded engine, or compute its true SLO boundary.",
    ),
    "selftest": ("selftest", "selftest", "Find the load that this machine can send and time."),
    "workload": ("workload", "workload", "Print and plot what a workload sends."),
    "power": ("power", "power", "Watch power meters, or record them to a log."),
    "mbu": ("mbu", "mbu", "Compute memory bandwidth utilisation from a config.json."),
    "conformance": (
        "conformance",
        "conformance",
        "Hostile streams of known truth: check this client, or another one, over them.",
    ),
}

EXAMPLES = """\b
Examples:
  tokenwatt-site demo
  tokenwatt-site spec new --endpoint http://127.0.0.1:8000/v1 --out my.spec.yaml
  tokenwatt-site measure my.spec.yaml --role baseline --out runs/mine.json
  tokenwatt-site report runs/mine.json --title 'My run'
  tokenwatt-site build"""


class LazyGroup(click.Group):
    """A group whose commands are imported only when they run or show their own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the command names in the order of work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(
            importlib.import_module(f"tokenwatt_site.cli.{module}"), attribute
        )
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the commands with their lines, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tokenwatt-site")
def cli() -> None:
    """What a token costs in energy under a latency promise: measure it, publish it, repeat it."""


def main() -> None:
    """Run the program; whatever goes wrong is one message and its exit code, never a traceback."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except TokenwattError as error:
        say(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - the last resort
        sys.exit(_last_resort(error))


def _last_resort(error: BaseException) -> int:
    """Tell of an interrupt, or of what nobody foresaw; return the exit code."""
    if _was_interrupted(error):
        say("interrupted", err=True)
        return Interrupted.exit_code
    said = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
    say(
        f"unexpected: {said}\n"
        "  next: a fault of the program: report it, with this line, the command and its spec",
        err=True,
    )
    return TokenwattError.exit_code


def _was_interrupted(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: pydantic, for one, wraps it and drops the cause."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt | click.Abort) or "KeyboardInterrupt" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
