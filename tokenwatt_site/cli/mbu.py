"""``tokenwatt-site mbu``: bandwidth utilisation from a config.json, term by term."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokenwatt_site.cli.terminal import say
from tokenwatt_site.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenwatt_site.documents.hardware import Hardware
    from tokenwatt_site.method.mbu import Mbu
    from tokenwatt_site.method.models.model import Model

EPILOG = """\b
Examples:
  tokenwatt-site mbu config.json --tp 8 --batch 32 --ctx 4000 --tpot-ms 40 --accelerator H200
  tokenwatt-site mbu models/llama/ --batch 16 --ctx 2000 --tpot-ms 30 --bandwidth-tbs 3.35
  tokenwatt-site mbu config.json --tp 8 --batch 32 --ctx 4000 --tpot-ms 40 --accelerator H200 \\
      --tokens-verified 2 --tokens-accepted 1.8 --kv-dtype fp8 --json

\b
MBU = replicas × bytes per step ÷ (TPOT × tokens accepted per step) ÷ (bandwidth × accelerators).
Every term is explained in docs/mbu.md. hf_quant_config.json is read where it lies beside CONFIG.
"""
_MOST = 1e12
_GB = 1e9
_COLUMNS = "{:>10}  {:<24}  {:<20}  {}"


class Amount(click.FloatRange):
    """A finite number; click's own range lets NaN pass."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no number that can be counted with", param, ctx)
        return number


POSITIVE = Amount(min=0, min_open=True, max=_MOST)
DEVICES = click.IntRange(1, 1_000_000)


@click.command(epilog=EPILOG)
@click.argument("config", metavar="CONFIG", type=click.Path(path_type=Path))
@click.option("--batch", type=POSITIVE, required=True, help="Sequences that one replica decodes.")
@click.option("--ctx", type=Amount(0, _MOST), required=True, help="Tokens of context of each.")
@click.option("--tpot-ms", type=POSITIVE, required=True, help="Time per output token, ms.")
@click.option("--tp", type=DEVICES, default=1, show_default=True, help="Tensor parallel.")
@click.option("--pp", type=DEVICES, default=1, show_default=True, help="Pipeline stages.")
@click.option("--replicas", type=DEVICES, default=1, show_default=True, help="Replicas.")
@click.option("--accelerator", help="Takes the rated bandwidth of this one, such as H200.")
@click.option("--bandwidth-tbs", type=POSITIVE, help="Rated bandwidth of one accelerator, TB/s.")
@click.option("--weight-dtype", default="", help="Data type of all weights. Default: the files'.")
@click.option("--kv-dtype", default="", help="Data type of the KV cache. Default: the files'.")
@click.option(
    "--tokens-verified",
    type=Amount(1, _MOST),
    default=1.0,
    help="Tokens of a sequence in one step, with a draft. Default: 1.",
)
@click.option(
    "--tokens-accepted",
    type=Amount(1, _MOST),
    default=1.0,
    help="Tokens that a sequence gets of one step. Default: 1.",
)
@click.option(
    "--prefill-tokens",
    type=Amount(0, _MOST),
    default=0.0,
    help="Prompt tokens in each step, where they are mixed in. Default: 0.",
)
@click.option(
    "--geometry",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Replace a key of the config; the value is JSON, null leaves it out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def mbu(*, config: Path, as_json: bool, **options: Any) -> None:
    """Compute the share of the memory bandwidth that a decode step needs.

    CONFIG is a model's HuggingFace config.json, or its folder. What in it isn't understood is an
    error that names the key. Without a bandwidth the bytes are told, and no share.
    """
    from tokenwatt_site.documents.model_config import load_model_config
    from tokenwatt_site.method.mbu import Machine, Step, block
    from tokenwatt_site.method.mbu import mbu as computed
    from tokenwatt_site.method.models.model import Served, model

    served = Served(options["weight_dtype"], options["kv_dtype"], _changes(options["changes"]))
    found = model(load_model_config(config), served)
    verified = max(options["tokens_verified"], found.verified)
    accepted = max(options["tokens_accepted"], found.accepted)
    if accepted > verified:
        raise UsageError(
            "more tokens are accepted than verified", "give --tokens-verified, which is no less"
        )
    step = Step(
        options["batch"],
        options["ctx"],
        options["tpot_ms"],
        verified,
        accepted,
        options["prefill_tokens"],
    )
    peak_tbs, peak = _peak(options["accelerator"], options["bandwidth_tbs"])
    parallel = (options["replicas"], options["tp"], options["pp"])
    result = computed(found, step, Machine(peak_tbs or 1.0, *parallel))
    pct = result.pct if peak_tbs is not None else None
    if as_json:
        said = block(result, found.config.sha256)
        extra = {"mbu_pct": pct, "params": found.geometry.params, "peak_tbs": peak_tbs}
        click.echo(json.dumps({**said, **extra}, allow_nan=False))
    else:
        say("\n".join(_lines(config, found, result, peak)))
    if pct is not None and not result.possible:
        raise UsageError(
            f"MBU_IMPOSSIBLE: {pct:.0f} % of the bandwidth can't be read",
            "one of --batch, --ctx, --tpot-ms, the data types and the bandwidth is wrong",
        )


def _changes(given: "Sequence[str]") -> dict[str, Any]:
    """Return the replaced keys."""
    from tokenwatt_site.documents.jsonfile import loads

    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--geometry {text}: no KEY=VALUE", "such as num_hidden_layers=61")
        try:
            found[key] = loads(value.encode(), f"--geometry {key}")
        except DocumentError:  # a word is as good as "word"
            found[key] = value
    return found


def _peak(accelerator: str | None, bandwidth_tbs: float | None) -> tuple[float | None, str]:
    """Return the rated bandwidth of one accelerator, and where it is from."""
    if accelerator is None:
        return bandwidth_tbs, "as given" if bandwidth_tbs is not None else ""
    if bandwidth_tbs is not None:
        raise UsageError("--accelerator and --bandwidth-tbs say the same", "give one of them")
    from tokenwatt_site.documents.hardware import known_hardware
    from tokenwatt_site.resources import resource

    known = known_hardware(resource("content/hardware"))
    facts = _named(list(known.values()), accelerator)
    figure = facts.rated_bw_tbs
    if figure is None:
        raise UsageError(f"no bandwidth of {facts.name} is known", "give --bandwidth-tbs")
    return float(figure.value), f"{facts.name}, {figure.source}"


def _named(known: "Sequence[Hardware]", name: str) -> "Hardware":
    """Return the accelerator of a name, with or without its vendor's."""
    from difflib import get_close_matches

    wanted = " ".join(name.split()).casefold()
    by = {name.casefold(): each for each in known for name in (each.name, *each.aliases)}
    by |= {each.name.removeprefix(f"{each.vendor} ").casefold(): each for each in known}
    if wanted in by:
        return by[wanted]
    near = [by[match].name for match in get_close_matches(wanted, by, 3, 0.4)]
    raise UsageError(
        f"no accelerator is known as {name[:80]!r}",
        f"{'one of ' + ', '.join(dict.fromkeys(near)) + ', or ' if near else ''}"
        "give --bandwidth-tbs",
    )


def _lines(config: Path, found: "Model", result: "Mbu", peak: str) -> list[str]:
    """Return the whole computation for people."""
    shape = found.geometry
    experts = f", {shape.experts} experts, {shape.top_k} a token" if shape.moe_layers else ""
    what = f"{shape.model_type}, {shape.params / _GB:,.1f} B parameters, {shape.layers} layers"
    lines = [
        f"{config}: {what}{experts}",
        "",
        _COLUMNS.format("GB a step", "what", "data type", "how; data type by"),
    ]
    lines += [
        _COLUMNS.format(
            f"{term.bytes / _GB:,.3f}", term.name, term.precision, f"{term.formula}; {term.source}"
        )
        for term in result.terms
    ]
    total = result.weight_bytes + result.kv_bytes
    lines.append(
        _COLUMNS.format(
            f"{total / _GB:,.3f}",
            "bytes per step",
            "",
            f"{result.weight_bytes / _GB:,.2f} GB of weights + {result.kv_bytes / _GB:,.2f} GB "
            "of caches",
        )
    )
    if result.distinct_experts is not None:
        lines += ["", _experts(found, result)]
    return [*lines, "", *_share(result, total, peak), "", _left_out(found)]


def _experts(found: "Model", result: "Mbu") -> str:
    shape, step = found.geometry, result.step
    tokens = step.batch * step.verified + step.prefill_tokens
    return (
        f"distinct experts of a layer: {shape.experts} × (1 − (1 − {shape.top_k}/{shape.experts})"
        f"^{tokens:g}) = {result.distinct_experts:.1f}, an upper bound: uneven routers touch fewer"
    )


def _share(result: "Mbu", total: float, peak: str) -> list[str]:
    step, machine = result.step, result.machine
    accepted = f" × {step.accepted:g} accepted" if step.accepted != 1 else ""
    above = f"{machine.replicas} × " if machine.replicas > 1 else ""
    time = f"({step.tpot_ms:g} ms{accepted})" if accepted else f"{step.tpot_ms:g} ms"
    read = f"{above}{total / _GB:,.3f} GB ÷ {time}"
    if not peak:
        tbs = machine.replicas * total / (step.tpot_ms / 1000 * step.accepted) / 1e12
        return [
            f"read: {read} = {tbs:.3f} TB/s on {machine.accelerators} accelerators",
            "no share: give --accelerator or --bandwidth-tbs",
        ]
    offered = f"({machine.peak_tbs:g} TB/s × {machine.accelerators})"
    return [f"MBU = {read} ÷ {offered} = {result.pct:.1f} %", f"bandwidth: {peak}"]


def _left_out(found: "Model") -> str:
    keys = ", ".join(found.geometry.ignored)
    return f"keys that change nothing here: {keys or 'none'}"
