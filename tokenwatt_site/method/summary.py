"""The summary paragraph of a document and what it says it didn't cover."""

from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method import prose
from tokenwatt_site.method.meters import meter_specs

THROTTLE_PCT = 1.0


def summary(spec: Spec, document: dict[str, Any], notes: tuple[str, ...] = ()) -> str:
    """Return a few sentences made from the document's own figures.

    Args:
        spec: what was asked.
        document: the document without its summary.
        notes: what the preflight changed or noticed.
    """
    config = document["configs"][0]
    parts = [_where(document), _workload(document), _outcome(spec, document, config)]
    parts += [_windows(document, config), _throttled(config), _energy(config)]
    parts += (
        [f"Noted before the load: {'; '.join(note.rstrip('.') for note in notes)}."]
        if notes
        else []
    )
    return " ".join(part for part in parts if part)


def not_covered(spec: Spec, *, simulated: bool) -> list[str]:
    """Return what such a measurement can't show, in addition to the publisher's words."""
    gaps: list[str] = []
    if simulated:
        gaps.append("Real hardware: server, power and throttling follow a model")
    sources = {meter.source for meter in meter_specs(spec)}
    if not sources:
        gaps.append("Power and energy: no meter is read")
    elif "replay" in sources:
        gaps.append("Power: a recorded log was played again, it isn't of this run")
    elif sources <= {"board", "simulated", "amd"}:
        gaps.append("Whole-node power: the meter sees the accelerator boards only")
    if spec.accuracy is None:
        gaps.append("Accuracy: no check was asked for")
    if spec.workload.shared_prefix is None and spec.workload.timestamps == "poisson":
        gaps.append("Prompt caching: every prompt is new")
    said = {line.partition(":")[0].strip().lower() for line in spec.not_covered}
    return [gap for gap in gaps if gap.partition(":")[0].lower() not in said]


def _where(document: dict[str, Any]) -> str:
    hardware = document["hardware"]
    count = (
        f"{hardware['count']} × {hardware['accelerator']}"
        if hardware["count"]
        else hardware["accelerator"]
    )
    software = document["software"]
    engine = f"{software['engine']} {software.get('engine_version', '')}".strip()
    kind = "Simulated measurement" if document["simulated"] else "Measurement"
    kind = f"Quick {kind.lower()}" if document["quick"] else kind
    host = f" ({text})" if (text := hardware.get("host", "").strip(" ,;:-–")) else ""
    place = f"{count or 'CPU'}{host}, {prose.day(document['started'])}"
    return f"{kind} of {document['model']['name']} with {engine} on {place}."


def _workload(document: dict[str, Any]) -> str:
    workload = document["workload"]
    name = workload["trace"] or "Own workload"
    recorded = workload.get("timestamps")
    return (
        f"{name}: input tokens {workload['input_tokens']}, "
        f"output tokens {workload['output_tokens']}, random prompts, "
        f"{'Poisson' if recorded in (None, 'poisson') else 'recorded'} arrivals."
    )


def _outcome(spec: Spec, document: dict[str, Any], config: dict[str, Any]) -> str:
    promise = prose.promise(spec)
    if document["verdict"]["word"] == "no_rate":
        return f"No rate kept {promise}."
    if config["goodput_tok_s"] is None:
        return f"No rate is confirmed within {promise}."
    begun = "Unfinished: within" if document["verdict"]["word"] == "undecided" else "Within"
    return (
        f"{begun} {promise} the server kept {config['rate_rps']:.4g} requests/s: "
        f"{config['goodput_tok_s']:,.0f} output and about "
        f"{config['input_tok_s']:,.0f} input tokens per second."
    )


def _windows(document: dict[str, Any], config: dict[str, Any]) -> str:
    if not config["repeats"]:
        return ""
    windows = "window" if config["repeats"] == 1 else "windows"
    quick = ", too short or too few for ranking" if document["quick"] else ""
    length = prose.seconds(config["windows"][0]["window_s"])
    return f"{config['repeats']} confirm {windows} of {length}{quick}."


def _throttled(config: dict[str, Any]) -> str:
    share = config.get("throttle_share_pct")
    if share is None or share <= THROTTLE_PCT:
        return ""
    reasons = ", ".join(sorted(config["throttle_counts"])) or "unknown"
    return f"The accelerators were throttled {share:.3g} % of the time ({reasons})."


def _energy(config: dict[str, Any]) -> str:
    energy = config.get("energy")
    if not energy or energy["j_per_output_token"] is None:
        return ""
    return f"{energy['j_per_output_token']:.4g} J per output token, {energy['scope']} power."
