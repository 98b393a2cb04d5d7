"""How the boundary was found, as ``documents.run.Search`` holds it."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.figures import MeasuredWindow
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
    if done is not None and done.lo_rps is not None:
        block["lo_rps"] = done.lo_rps
    if done is not None and done.hi_rps is not None and math.isfinite(done.hi_rps):
        block["hi_rps"] = done.hi_rps
    return block if facts is None else block | _adaptive(spec, facts)


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
