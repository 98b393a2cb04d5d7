"""The stationary start: what a server that has long been under load would have in flight.

A request in flight is one that an instant happened to hit, so long ones are met more often: its
answer is drawn in proportion to its length, and the instant lies anywhere in it.
"""

import random
from array import array
from dataclasses import replace

from tokenwatt_site.method.rng import open_unit
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.workloads import Workload

Residuals = tuple["array[int]", "array[int]"]
"""Prompt and output tokens of requests in flight."""


def with_residuals(
    schedule: Schedule, workload: Workload, count: int, source: random.Random
) -> Schedule:
    """Return a schedule that starts with ``count`` requests in flight, all sent at 0.

    ``source`` is that of the spec's seed, purpose "residuals" and the window.
    """
    return injected(schedule, residuals(workload, count, source))


def residuals(workload: Workload, count: int, source: random.Random) -> Residuals:
    """Draw requests in flight.

    Their prompt is the prompt and the part of the answer that was produced before; their answer is
    the rest, one token at least.
    """
    inputs, outputs = array("q"), array("q")
    most = workload.output.most()
    while len(inputs) < count:
        input_tokens, output_tokens = workload.draw(source)
        if open_unit(source) * most < output_tokens:
            produced = int(open_unit(source) * output_tokens)
            inputs.append(input_tokens + produced)
            outputs.append(output_tokens - produced)
    return inputs, outputs


def injected(schedule: Schedule, flying: Residuals) -> Schedule:
    """Return a schedule that starts with requests in flight."""
    inputs, outputs = flying
    count = len(inputs)
    return replace(
        schedule,
        arrival_s=array("d", bytes(8 * count)) + schedule.arrival_s,
        input_tokens=inputs + schedule.input_tokens,
        output_tokens=outputs + schedule.output_tokens,
        injected=count,
    )
