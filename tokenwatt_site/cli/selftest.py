"""``tokenwatt-site selftest``: what this machine can send and time, against a stub of its own."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenwatt_site.load.selftest import Step

EPILOG = """\b
Examples:
  tokenwatt-site selftest
  tokenwatt-site selftest my.spec.yaml
  tokenwatt-site selftest --json

\b
A rate is held if requests leave on time (99 % within 5 ms) and all tokens come. The stub takes a
part of this machine too, so the limit is a safe one. `measure` runs a short form by itself before
a load above 8,333 token events a second.
"""
_CONCURRENCY = 3840  # what the highest rate needs, and a limit of 4,096 files allows
_ROW = "{:>14} {:>8} {:>10} {:>10} {:>10} {:>9} {:>9}  {}"
_HEADS = (
    *("token events/s", "read", "lag p99", "TTFT error", "p99"),
    *("CPU/token", "processes", ""),
)


@click.command(epilog=EPILOG)
@click.argument("spec_file", metavar="[SPEC]", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def selftest(*, spec_file: Path | None, as_json: bool) -> None:
    """Find the rate of token events that this machine holds; with SPEC, whether that is enough.

    Takes half a minute at most, and sends nothing anywhere else.
    """
    from tokenwatt_site.load.descriptors import raise_descriptors
    from tokenwatt_site.load.loop import new_loop
    from tokenwatt_site.load.selftest import RATES, rising

    asked = _asked(spec_file) if spec_file is not None else None
    raise_descriptors(_CONCURRENCY)
    upto = min(asked["needed_events_s"], RATES[-1]) if asked else RATES[-1]

    def tell(step: "Step") -> None:
        if not as_json:
            say(_line(step))

    if not as_json:
        say(_ROW.format(*_HEADS).rstrip())
    with asyncio.Runner(loop_factory=new_loop) as runner:
        found = _found(runner.run(rising(upto, tell)), asked)
    say(json.dumps(found, allow_nan=False) if as_json else _words(found))


def _asked(spec_file: Path) -> dict[str, Any]:
    """Return the highest rate that a spec may send, and what that takes."""
    from tokenwatt_site.documents.doors import load_spec
    from tokenwatt_site.documents.tracefile import read_trace
    from tokenwatt_site.method.recorded import with_recorded_rate
    from tokenwatt_site.method.replay import trace_of
    from tokenwatt_site.method.workloads import workload_of

    spec = load_spec(spec_file)
    trace = trace_of(read_trace(spec.workload.trace, spec_file.parent))
    sweep = with_recorded_rate(spec, trace).sweep
    highest_rps = max(sweep.rates) if sweep.rates else sweep.max_rps
    tokens = workload_of(spec.workload, trace).output.mean()
    return {
        "highest_rps": highest_rps,
        "mean_output_tokens": tokens,
        "needed_events_s": highest_rps * tokens,
    }


def _found(steps: "Sequence[Step]", asked: dict[str, Any] | None) -> dict[str, Any]:
    """Return the steps, the limit, and the verdict on what was asked."""
    held = [step.asked_events_s for step in steps if step.held]
    limit = max(held, default=None)
    found: dict[str, Any] = {
        "steps": [step.row() for step in steps],
        "held_events_s": limit,
        "at_least": all(step.held for step in steps) or steps[-1].stub_bound,
    }
    if asked is not None:
        found["spec"] = asked | {
            "holds": limit is not None and limit >= asked["needed_events_s"],
            "held_rps": None if limit is None else limit / asked["mean_output_tokens"],
        }
    return found


def _line(step: "Step") -> str:
    if step.held:
        verdict = "held"
    else:
        verdict = "not held: the stub was late" if step.stub_bound else "not held"
    return _ROW.format(
        *(f"{step.asked_events_s:,.0f}", f"{step.events_s:,.0f}", _ms(step.lag_p99_s)),
        *(_ms(step.ttft_error_p50_s), _ms(step.ttft_error_p99_s)),
        *(f"{step.cpu_us_per_event:.1f} µs", step.workers, verdict),
    )


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


def _words(found: dict[str, Any]) -> str:
    limit = found["held_events_s"]
    if limit is None:
        return "this machine holds none of these rates now: see what else it runs"
    more = "at least " if found["at_least"] else ""
    words = f"this machine holds {more}{limit:,.0f} token events a second"
    if "spec" not in found:
        return words
    spec = found["spec"]
    need = (
        f"the spec's highest rate is {spec['highest_rps']:,.6g} requests/s of "
        f"{spec['mean_output_tokens']:,.4g} tokens: {spec['needed_events_s']:,.0f} a second"
    )
    verdict = (
        "this machine holds it"
        if spec["holds"]
        else f"this machine holds {more}{spec['held_rps']:,.3g} requests/s of them, and a window "
        "above that would be invalid if the server went along"
    )
    return f"{words}\n{need}\n{verdict}"
