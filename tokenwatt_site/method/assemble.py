"""From spec and windows to a run document; also to a draft of one, after every window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenwatt_site import __version__
from tokenwatt_site.documents import doors
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.documents.run import METHOD_VERSION, SCHEMA_VERSION, Evidence, Hardware, Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method import prose, summary
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.figures import pooled, window_record
from tokenwatt_site.method.idle import Idle
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.meters import is_simulated, primary_meter, rate_hz
from tokenwatt_site.method.probe import Done
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.search import confirm_s
from tokenwatt_site.method.search_block import search_block
from tokenwatt_site.method.statistics import variance_band_pct
from tokenwatt_site.method.utilisation import utilisation
from tokenwatt_site.method.workload_block import workload_block

QUICK_WINDOW_S = 180
QUICK_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Resolved:
    """What was found out before the first window."""

    hardware: Hardware
    engine_version: str
    meter_source: str
    """The primary meter in words; empty without one."""
    origin: prose.Origin
    run_id: str
    started: str
    simulated: bool = False
    """The server turned out to be the embedded engine."""
    notes: tuple[str, ...] = ()
    """What the preflight changed or noticed, in sentences."""
    resumed: tuple[str, ...] = ()
    """When the measurement was gone on with."""
    model: ModelConfig | None = None
    """The keys of the model's config that bandwidth utilisation needs."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What a document is closed with."""

    at: str
    """The time of writing."""
    evidence: Sequence[Evidence]
    series: Mapping[int, dict[str, Any]]
    """Time series by window."""
    ended: str = ""
    """Code of why the measurement ended before the search did; empty while it runs."""
    facts: SearchFacts | None = None
    """What an adaptive search knows beside its answer."""
    idle: Sequence[Idle] = ()
    """What the meters read without load."""


def assemble(
    spec: Spec,
    resolved: Resolved,
    windows: Sequence[MeasuredWindow],
    done: Done | None,
    closing: Closing,
    trace: Trace | None = None,
) -> Run:
    """Return the document of what was measured so far.

    Args:
        spec: what was asked.
        resolved: what was found out before the first window.
        windows: every window, in the order they were measured.
        done: the search's answer; None while it runs.
        closing: the time of writing, what is kept and known beside the windows.
        trace: the recorded trace that the spec names.
    """
    reported = _reported(windows, done)
    config, missing = _config(spec, resolved, reported, windows, closing.idle)
    series = closing.series
    drawn = [series[w.window.index] for w in reported if w.window.index in series]
    if drawn:
        config["series"] = drawn[0]
    band_pct = variance_band_pct([w.stats.goodput_tok_s for w in reported])
    if band_pct is None:
        missing["/variance_band_pct"] = _why(
            "TOO_FEW_REPEATS", "a band needs three windows at the reported rate"
        )
    document = {
        **_resolved(spec, resolved),
        "workload": workload_block(spec, trace),
        "power": _power(spec, resolved, reported, trace),
        "runs": len(reported),
        "variance_band_pct": band_pct,
        "configs": [config],
        "finished": closing.at,
        "quick": _quick(spec, reported),
        "missing": missing,
        "verdict": _verdict(done, closing.ended),
        "search": search_block(spec, windows, done, closing.facts),
        "evidence": [each.model_dump(mode="json") for each in closing.evidence],
    }
    document["summary"] = spec.text.summary or summary.summary(spec, document, resolved.notes)
    return Run.model_validate(document)


def _resolved(spec: Spec, resolved: Resolved) -> dict[str, Any]:
    """Return the keys that stand before the first window."""
    title = prose.title(spec, resolved.hardware, resolved.engine_version)
    simulated = resolved.simulated or is_simulated(spec)
    return {
        "id": prose.document_id(spec, resolved.hardware),
        "status": "demo" if simulated else "draft",
        "title": title,
        "published": None,
        "summary": "",
        "hardware": _told(resolved.hardware.model_dump(mode="json", exclude_none=True)),
        "software": _told(
            {
                "engine": spec.engine.name,
                "engine_version": resolved.engine_version,
                "kernels": spec.engine.kernels,
            }
        ),
        "model": {
            "name": spec.model.name,
            "quantization": prose.quantization(spec),
            "parallelism": prose.parallelism(spec),
        },
        "slo": spec.slo.model_dump(mode="json"),
        "accuracy": _gate(spec),
        "fleet": None,
        "not_covered": [*spec.not_covered, *summary.not_covered(spec, simulated=simulated)],
        "reproduce": prose.reproduce(spec, resolved.origin, title),
        "spec": doors.dump(spec),
        "schema_version": SCHEMA_VERSION,
        "method_version": METHOD_VERSION,
        "version": 1,
        "tool": {"name": "tokenwatt-site", "version": __version__},
        "run_id": resolved.run_id,
        "started": resolved.started,
        **({"resumed": list(resolved.resumed)} if resolved.resumed else {}),
        "simulated": simulated,
    }


def _told(facts: dict[str, Any]) -> dict[str, Any]:
    """Leave out the texts that nobody gave; a document holds no empty ones."""
    needed = ("vendor", "accelerator", "engine")
    return {key: value for key, value in facts.items() if value != "" or key in needed}


def _reported(windows: Sequence[MeasuredWindow], done: Done | None) -> list[MeasuredWindow]:
    """Return the windows at the reported rate; while the search runs, those so far."""
    counting = [
        w for w in windows if w.valid and w.window.phase != "search" and not w.window.aborted
    ]
    if done is not None:
        return [w for w in counting if w.window.rate_rps == done.rate_rps]
    rate = counting[-1].window.rate_rps if counting else None
    so_far = [w for w in counting if w.window.rate_rps == rate]
    return so_far if all(w.stats.passed for w in so_far) else []


def _config(
    spec: Spec,
    resolved: Resolved,
    reported: list[MeasuredWindow],
    windows: Sequence[MeasuredWindow],
    idle: Sequence[Idle],
) -> tuple[dict[str, Any], dict[str, Any]]:
    config: dict[str, Any] = {
        "key": resolved.origin.role,
        "label": resolved.origin.label
        or prose.label(spec, resolved.hardware, resolved.engine_version),
        "engine": prose.engine_line(spec, resolved.engine_version),
        "mbu_pct": None,  # its place; filled in last
        "node_power_kw": None,
        "goodput_tok_s": None,
        "ttft_p99_ms": None,
        "tpot_p99_ms": None,
        "slo_pass_count": sum(w.stats.passed for w in reported),
        "repeats": len(reported),
        "throttle_counts": {},
        "accuracy": None,
    }
    if reported:
        config |= pooled(reported, spec.slo, idle)
    chosen = {w.window.index for w in reported}
    config["windows"] = [window_record(w) for w in reported]
    config["sweep"] = [window_record(w) for w in windows if w.window.index not in chosen]
    if resolved.hardware.power_limit_w is not None:
        config["power_limit_w"] = resolved.hardware.power_limit_w
    peak_tbs, stats = resolved.hardware.rated_bw_tbs_per_gpu, [w.stats for w in reported]
    used = utilisation(spec, resolved.model, peak_tbs, stats)
    config["mbu_pct"] = used.pct
    if used.block:
        config["mbu"] = used.block
    missing = _missing(spec, config, measured=bool(reported))
    if used.missing:
        missing["/configs/0/mbu_pct"] = _why(*used.missing)
    return config, missing


def _missing(spec: Spec, config: dict[str, Any], *, measured: bool) -> dict[str, Any]:
    """Say why each measured key of the configuration is null."""
    at = "/configs/0/"
    missing = {
        f"{at}accuracy": (
            _why("NOT_IN_THIS_VERSION", "this version doesn't run accuracy suites")
            if spec.accuracy
            else _why("NOT_ASKED", "the spec asks for no accuracy check")
        ),
    }
    if not measured:
        text = "no window at a confirmed rate was measured"
        for key in ("goodput_tok_s", "ttft_p99_ms", "tpot_p99_ms"):
            missing[at + key] = _why("NO_CONFIRMED_RATE", text)
    elif config["tpot_p99_ms"] is None:
        missing[f"{at}tpot_p99_ms"] = _why(
            "NOT_APPLICABLE", "TPOT isn't defined for answers of a single token event"
        )
    if config["node_power_kw"] is None:
        missing[f"{at}node_power_kw"] = _no_power(spec, config, measured=measured)
    return missing


def _no_power(spec: Spec, config: dict[str, Any], *, measured: bool) -> dict[str, str]:
    if primary_meter(spec) is None:
        return _why("NO_METER", "the spec names no power meter")
    if not measured:
        return _why("NO_CONFIRMED_RATE", "no window at a confirmed rate was measured")
    reasons = config.get("energy", {}).get("reasons", [])
    return _why(
        "METER_INVALID", f"the meter's readings can't be used: {', '.join(reasons) or 'no reading'}"
    )


def _why(code: str, text: str) -> dict[str, str]:
    return {"code": code, "text": text}


def _power(
    spec: Spec, resolved: Resolved, reported: list[MeasuredWindow], trace: Trace | None
) -> dict[str, Any]:
    meter = primary_meter(spec)
    window_s = reported[0].window.length_s if reported else confirm_s(spec, trace)
    scope = reported[0].meters[0].facts.scope if reported and reported[0].meters else None
    return {
        "source": spec.text.source or resolved.meter_source or "none",
        "kind": _kind(scope) if meter else "none",
        "sampling_hz": rate_hz(meter) if meter else None,
        "window": spec.text.window or f"{prose.seconds(window_s)} steady state",
    }


def _kind(scope: str | None) -> str:
    """The seed's coarse form of a scope: board, node or rack."""
    return {"node_dc": "node", "node_ac": "node", "rack_ac": "rack"}.get(scope or "", "board")


def _gate(spec: Spec) -> dict[str, Any] | None:
    if spec.accuracy is None:
        return None
    suite = spec.accuracy.name or spec.accuracy.suite.rsplit("/", 1)[-1]
    return {"suite": suite, "threshold_pts": spec.accuracy.max_drop_pts}


def _quick(spec: Spec, reported: list[MeasuredWindow]) -> bool:
    """Mode quick, windows under 180 s or fewer than three: good for checking a set-up only."""
    short = any(w.window.length_s < QUICK_WINDOW_S for w in reported)
    return spec.sweep.mode == "quick" or short or len(reported) < QUICK_REPEATS


_ENDED = {
    "": ("UNFINISHED", "the measurement isn't finished"),
    "INTERRUPTED": ("INTERRUPTED", "the measurement was interrupted before it was finished"),
    "SERVER_GONE": ("SERVER_GONE", "the server could not be measured to the end"),
}


def _verdict(done: Done | None, ended: str) -> dict[str, str]:
    if done is None:
        code, text = _ENDED[ended]
        return {"word": "undecided", "text": text, "code": code}
    if done.invalid:
        return {"word": done.word, "text": done.text, "code": "WINDOW_INVALID"}
    return {"word": done.word, "text": done.text}
