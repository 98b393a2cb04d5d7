"""The load of a window, drawn from spec, probe and trace alone: to play it, and to check it later.

Nothing else goes into the draws, so that a resumed or repeated run sends the same requests.
"""

from dataclasses import replace
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.probe import Probe
from tokenwatt_site.method.recorded import draw_schedule
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.rng import derive_seed, rng
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.sharing import shared_prefix
from tokenwatt_site.method.stationary import with_residuals
from tokenwatt_site.method.workloads import workload_of


def draw(spec: Spec, probe: Probe, trace: Trace | None = None) -> Schedule:
    """Draw a window's whole load: warm-up, window, arrivals until the last verdict is due."""
    seed = derive_seed(spec.workload.seed, probe.draw, probe.index)
    workload = workload_of(spec.workload, trace)
    drawn = draw_schedule(workload, probe.rate_rps, horizon_s(spec, probe, trace), seed)
    if not probe.inject:
        return drawn
    source = rng(spec.workload.seed, "residuals", probe.index)
    whole = with_residuals(drawn, workload, probe.inject, source)
    if workload.prefix is not None:
        return replace(whole, shared=shared_prefix(workload.prefix, whole.input_tokens))
    return replace(whole, shared=drawn.shared and drawn.shared.after(probe.inject))


def schedule_row(
    spec: Spec, probe: Probe, schedule: Schedule, trace: Trace | None = None
) -> dict[str, Any]:
    """Return the line of ``schedule.jsonl`` of a window's load."""
    return {
        "w": probe.index,
        "rate_rps": probe.rate_rps,
        "seed": str(schedule.seed),
        "requests": len(schedule),
        "horizon_s": horizon_s(spec, probe, trace),
        "sha256": schedule.digest(),
    }


def horizon_s(spec: Spec, probe: Probe, trace: Trace | None = None) -> float:
    """Return for how long arrivals are drawn."""
    tail = tail_s(spec, trace) if probe.tail_s is None else probe.tail_s
    return probe.warmup_s + probe.window_s + tail


def tail_s(spec: Spec, trace: Trace | None = None) -> float:
    """Return how long after a window every request of it has its verdict, whatever happens.

    By then it has no token though the TTFT limit has passed, or its running TPOT is over, or it
    has all its tokens.
    """
    longest = workload_of(spec.workload, trace).output.most()
    bound = (spec.slo.ttft_p99_ms + spec.slo.tpot_p99_ms * longest) / 1000 + 1
    return min(bound, float(spec.measurement.request_timeout_s))
