"""``tokenwatt-site workload show``: a workload before anything is sent."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import UsageError

if TYPE_CHECKING:
    from tokenwatt_site.method.workload_look import LengthLook, Look
    from tokenwatt_site.method.workloads import Workload

_BAR = 40
_RATES_RPS = (1e-6, 1e6)
_SPECS = (".yaml", ".yml")


@click.group()
def workload() -> None:
    """Look at what a measurement would send."""


@workload.command(
    epilog="""\b
Examples:
  tokenwatt-site workload show
  tokenwatt-site workload show my.spec.yaml --rate 12
  tokenwatt-site workload show traces/azure.csv --timestamps rescaled --rate 5
  tokenwatt-site workload show chat-mix-v1 --plot chat-mix.svg
  tokenwatt-site workload show traces/mooncake.jsonl --timestamps kept --json
"""
)
@click.argument("what", metavar="[NAME|SPEC|TRACE]", default="chat-mix-v1")
@click.option(
    "--rate",
    "rate_rps",
    type=click.FloatRange(*_RATES_RPS),
    help="Requests a second. Default: the spec's first, the trace's own, else 1.",
)
@click.option("--seed", type=int, help="Seed of the draws. Default: the spec's, else 0.")
@click.option(
    "--timestamps",
    type=click.Choice(["poisson", "rescaled", "kept"]),
    help="Arrivals of a trace file, as workload.timestamps. Default: poisson.",
)
@click.option(
    "--requests",
    type=click.IntRange(100, 1_000_000),
    default=10_000,
    show_default=True,
    help="How many requests are drawn.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Draw lengths and arrivals into a file, .svg or .html; it is replaced.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    *,
    what: str,
    rate_rps: float | None,
    seed: int | None,
    timestamps: str | None,
    requests: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Draw requests of a workload, as the first window would, and tell what they are like.

    NAME is a workload's name, SPEC a spec file, TRACE a recorded trace: Azure LLM CSV, Mooncake
    JSONL or a JSONL of t_s, input_tokens, output_tokens.
    """
    from tokenwatt_site.method.workload_look import look_at

    if plot is not None and plot.suffix not in (".svg", ".html"):
        raise UsageError(f"--plot {plot}: no .svg or .html", "name the file so")
    found, own_rate_rps, own_seed = _found(what, timestamps)
    rate_rps = rate_rps or own_rate_rps
    if not _RATES_RPS[0] <= rate_rps <= _RATES_RPS[1]:
        raise UsageError(
            f"no load of {rate_rps:g} requests/s can be drawn", "give a --rate of 1e-6 to 1e6"
        )
    look = look_at(found, rate_rps, own_seed if seed is None else seed, requests)
    if plot is not None:
        _draw(look, plot)
    if as_json:
        click.echo(json.dumps(_as_json(look), allow_nan=False))
    else:
        say(_as_text(look))


def _found(what: str, timestamps: str | None) -> "tuple[Workload, float, int]":
    """Return the workload, its first rate and its seed."""
    from tokenwatt_site.documents.doors import load_spec
    from tokenwatt_site.documents.spec_workload import SpecWorkload
    from tokenwatt_site.documents.tracefile import is_path, read_file, read_trace
    from tokenwatt_site.method.replay import trace_of
    from tokenwatt_site.method.workloads import workload_of

    is_spec = what.endswith(_SPECS)
    if timestamps is not None and (is_spec or not is_path(what)):
        raise UsageError(
            f"--timestamps is given and {what} is no trace file",
            "a spec says so itself, with workload.timestamps",
        )
    if is_spec:
        path = Path(what)
        spec = load_spec(path)
        trace = trace_of(read_trace(spec.workload.trace, path.parent))
        rates = spec.sweep.rates or [spec.sweep.start_rps]
        return workload_of(spec.workload, trace), float(rates[0]), spec.workload.seed
    asked = SpecWorkload.model_validate({"trace": what, "timestamps": timestamps or "poisson"})
    trace = trace_of(read_file(Path(what))) if is_path(what) else None
    return workload_of(asked, trace), 1.0 if trace is None else trace.rate_rps, asked.seed


def _draw(look: "Look", plot: Path) -> None:
    from tokenwatt_site.publish.charts.file import file_svg
    from tokenwatt_site.publish.charts.standalone import file_html
    from tokenwatt_site.publish.charts.workload import workload_chart
    from tokenwatt_site.store import replace

    chart = workload_chart(look)
    replace(plot, file_svg(chart) if plot.suffix == ".svg" else file_html(chart))
    say(f"wrote {plot}", err=True)


def _as_json(look: "Look") -> dict[str, Any]:
    found = look.workload
    trace = found.trace
    return {
        "name": found.name,
        "seed": look.seed,
        "rate_rps": look.rate_rps,
        "requests": len(look.schedule),
        "arrivals": found.arrivals,
        "gap_cv": look.gap_cv,
        "dispersion": look.dispersion,
        "input_tokens": _lengths_json(look.input),
        "output_tokens": _lengths_json(look.output),
        "length_correlation": look.length_correlation,
        "planned_cached_pct": look.shared_pct,
        "schedule_sha256": look.schedule.digest(),
        "sample": [
            {"t_s": at_s, "input_tokens": inputs, "output_tokens": outputs}
            for at_s, inputs, outputs in look.sample()
        ],
        "trace": None
        if trace is None
        else {
            "sha256": trace.sha256,
            "form": trace.form,
            "requests": len(trace),
            "seconds": trace.at_s[-1],
            "rate_rps": trace.rate_rps,
            "raised": trace.raised,
        },
    }


def _lengths_json(lengths: "LengthLook") -> dict[str, Any]:
    return {
        "words": lengths.words,
        "nominal_mean": lengths.nominal_mean,
        "drawn_mean": lengths.drawn_mean,
        "clamp": lengths.clamp,
        **lengths.quantiles(),
        "histogram": lengths.histogram(),
    }


def _as_text(look: "Look") -> str:
    from tokenwatt_site.units import fmt, significant

    lines = [look.workload.describe()]
    if (trace := look.workload.trace) is not None:
        lines.append(
            f"trace: {len(trace):,} requests in {significant(trace.at_s[-1], 6)} s "
            f"({fmt(trace.rate_rps, 'rps')}), {trace.form} form, SHA-256 {trace.sha256}"
        )
        if trace.raised:
            lines.append(f"trace: {trace.raised:,} lengths of 0 tokens raised to 1")
    lines += ["", *_length_rows(look), ""]
    cv, dispersion = (
        "unknown" if value is None else significant(value, 3)
        for value in (look.gap_cv, look.dispersion)
    )
    lines.append(
        f"arrivals: {look.workload.arrivals} at {fmt(look.rate_rps, 'rps')}, gap CV {cv}, "
        f"dispersion of counts {dispersion} (Poisson: 1 and 1)"
    )
    if (together := look.length_correlation) is not None:
        lines.append(f"lengths: correlation of prompt and answer {significant(together, 2)}")
    lines.append(f"prompts: {significant(look.shared_pct, 3)} % of their tokens shared by plan")
    lines.append(f"seed: {look.seed}; schedule SHA-256 {look.schedule.digest()}")
    for name, lengths in (("prompt", look.input), ("answer", look.output)):
        lines += ["", f"{name} tokens", *_histogram(lengths)]
    lines += ["", "first requests:      at s   prompt   answer"]
    lines += [f"{at:25,.3f} {one:8,} {two:8,}" for at, one, two in look.sample()]
    return "\n".join(lines)


def _length_rows(look: "Look") -> list[str]:
    names = [*look.input.quantiles(), "mean", "nominal", "clamp"]
    rows = [f"{f'{len(look.schedule):,} requests':16}" + "".join(f"{n:>10}" for n in names)]
    for name, lengths in (("prompt tokens", look.input), ("answer tokens", look.output)):
        values = [
            *lengths.quantiles().values(),
            lengths.drawn_mean,
            lengths.nominal_mean,
            lengths.clamp,
        ]
        rows.append(f"{name:16}" + "".join(f"{value:10,.0f}" for value in values))
    return rows


def _histogram(lengths: "LengthLook") -> list[str]:
    bins = lengths.histogram()
    most = max(count for _, _, count in bins)
    return [
        f"{low:9,} to {high:9,} {count:8,} {'#' * -(-_BAR * count // most)}"
        for low, high, count in bins
    ]
