"""How the boundary was found, as ``documents.run.Search`` holds it."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.probe import Done

_OVERRIDES = ("window_s", "repeats", "warmup_s")


def search_block(
    spec: Spec,
    windows: Sequence[MeasuredWindow],
    done: Done | None,
    facts: SearchFacts | None,
) -> dict[str, Any]:
    """Return the block of a search that has measured these windows.

    Args:
        spec: what was asked.
        windows: every window, in order.
        done: the answer; None while it runs.
        facts: what an adaptive search knows beside its answer.
    """
    block: dict[str, Any] = {"strategy": spec.sweep.strategy or "ladder", "probes": len(windows)}
    low, high = _ends(done) if done is not None else (None, None)
    if low is not None:
        block["lo_rps"] = low
    if high is not None:
        block["hi_rps"] = high
    return block if facts is None else block | _adaptive(spec, facts)


def _ends(done: Done) -> tuple[float | None, float | None]:
    """Return the highest rate that passed and the lowest that failed.

    One window of the rate that was found may have failed where all of them together passed.
    """
    low, high, rate = done.lo_rps, done.hi_rps, done.rate_rps
    if rate is not None:
        low = max(rate, low or 0.0)
        high = high if high is not None and high > rate else None
    return low, high if high is None or math.isfinite(high) else None


def _adaptive(spec: Spec, facts: SearchFacts) -> dict[str, Any]:
    named = spec.measurement.model_fields_set
    block: dict[str, Any] = {
        "mode": spec.sweep.mode or "standard",
        "overrides": [key for key in _OVERRIDES if key in named],
        "candidates": facts.candidates,
        "climbs": facts.climbs,
        "restarts": facts.restarts,
        "drift": facts.drift,
        "twin": facts.twin,
        "twin_reason": facts.stopped,
        "est_rps": facts.est_rps,
        "bound_by": facts.bound_by,
        "kappa": facts.kappa,
        "corr": facts.corr,
        "error_pct": _pct(facts.error),
        "resid_se_pct": _pct(facts.resid_se),
    }
    block = {key: value for key, value in block.items() if value not in (None, [])}
    if facts.interval_rps is not None:
        block["interval_rps"] = [max(0.0, rate) for rate in facts.interval_rps]
    if facts.model is not None:
        block["model"] = asdict(facts.model)
    if facts.balanced:
        block["balanced"] = [
            asdict(each) | {"shares": list(each.shares), "long_run": list(each.long_run)}
            for each in facts.balanced
        ]
    return block


def _pct(share: float | None) -> float | None:
    return None if share is None or not math.isfinite(share) else 100 * share
