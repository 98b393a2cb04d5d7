"""The load of a window for any workload: Poisson arrivals, or those of a recorded trace."""

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace
from math import isclose

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.rng import open_unit
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.sharing import shared_blocks, shared_prefix
from tokenwatt_site.method.workloads import Workload


def draw_schedule(workload: Workload, rate_rps: float, horizon_s: float, seed: int) -> Schedule:
    """Return the requests of [0, horizon_s) and what their prompts share.

    A recorded trace that is rescaled begins anywhere, by the seed, and goes round; its time is
    stretched so that its mean rate is ``rate_rps``. One that is kept begins with its first request
    and must have this rate.
    """
    trace = workload.trace
    if workload.arrivals == "poisson" or trace is None:
        drawn = poisson_schedule(workload, rate_rps, horizon_s, seed)
        return replace(drawn, shared=shared_prefix(workload.prefix, drawn.input_tokens))
    start = 0
    if workload.arrivals == "rescaled":
        start = int(open_unit(random.Random(seed)) * len(trace))  # noqa: S311 - load, not secrets
    stretch = 1.0 if workload.arrivals == "kept" else trace.rate_rps / rate_rps
    places, arrival_s = _played(trace, start, stretch, horizon_s)
    n = len(trace)
    inputs = array("q", (trace.input_tokens[place % n] for place in places))
    outputs = array("q", (trace.output_tokens[place % n] for place in places))
    drawn = Schedule(arrival_s, inputs, outputs, seed, rate_rps)
    if trace.blocks:
        return replace(drawn, shared=shared_blocks(_blocks(trace, places), inputs))
    return replace(drawn, shared=shared_prefix(workload.prefix, inputs))


def _played(
    trace: Trace, start: int, stretch: float, horizon_s: float
) -> tuple["array[int]", "array[float]"]:
    """Return places and arrivals from a row on; place n is the first row again.

    Round the end the gap is the mean one. A start at the first row is the recording's own zero; any
    other one begins with the gap before it.
    """
    n = len(trace)
    round_s = trace.at_s[-1] + 1 / trace.rate_rps
    zero_s = trace.at_s[start - 1] if start else 0.0
    places, arrival_s = array("q"), array("d")
    for place in range(start, start + n * (2 + int(horizon_s / stretch / round_s))):
        laps, row = divmod(place, n)
        at_s = round((trace.at_s[row] + laps * round_s - zero_s) * stretch, 6)
        if at_s >= horizon_s:
            break
        places.append(place)
        arrival_s.append(at_s)
    return places, arrival_s


def _blocks(trace: Trace, places: Sequence[int]) -> list[tuple[int, ...]]:
    """Return each request's blocks; another round has blocks of its own, or all would be known."""
    n, ids = len(trace), 1 + max(max(blocks, default=0) for blocks in trace.blocks)
    return [
        tuple(block + place // n * ids for block in trace.blocks[place % n]) for place in places
    ]


def with_recorded_rate(spec: Spec, trace: Trace | None) -> Spec:
    """Return the spec with the one rate that a trace with its own times has.

    Raises:
        UsageError: the spec asks for another rate.
    """
    if trace is None or spec.workload.timestamps != "kept":
        return spec
    rates = spec.sweep.rates
    if rates is None:
        sweep = spec.sweep.model_copy(update={"rates": [trace.rate_rps]})
        return spec.model_copy(update={"sweep": sweep})
    if len(rates) != 1 or not isclose(rates[0], trace.rate_rps, rel_tol=1e-6):
        raise UsageError(
            f"spec field sweep.rates: {trace.name} with its own times has one rate,"
            f" {trace.rate_rps:.6g} requests/s",
            "remove sweep.rates, or set workload.timestamps to rescaled",
        )
    return spec
