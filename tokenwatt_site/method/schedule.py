"""The whole load of a window, drawn before it starts: each request's arrival and lengths."""

import hashlib
import math
import random
import struct
from array import array
from dataclasses import dataclass

from tokenwatt_site.method.rng import open_unit
from tokenwatt_site.method.workloads import Workload


@dataclass(frozen=True, slots=True)
class Schedule:
    """Requests in the order of their arrival; the three arrays have the same length."""

    arrival_s: "array[float]"
    """Seconds after the load starts, ascending, in whole microseconds."""
    input_tokens: "array[int]"
    output_tokens: "array[int]"
    seed: int
    rate_rps: float
    injected: int = 0
    """So many of the first requests stand for what a steady server would have in flight already."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.arrival_s)

    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent, equal on every machine."""
        injected = f"{self.injected}/" if self.injected else ""
        sha = hashlib.sha256(f"{self.seed}/{self.rate_rps!r}/{injected}".encode())
        for column in (self.arrival_s, self.input_tokens, self.output_tokens):
            sha.update(struct.pack(f"<{len(column)}{column.typecode}", *column))
        return sha.hexdigest()


def poisson_schedule(workload: Workload, rate_rps: float, horizon_s: float, seed: int) -> Schedule:
    """Return a Poisson stream of requests in [0, horizon_s).

    Gaps are exponential with mean ``1 / rate_rps`` and stay as drawn: rescaling them to end at a
    round time would take the bursts out. A longer horizon continues the same stream.
    """
    source = random.Random(seed)  # noqa: S311 - load, not secrets
    arrival_s, inputs, outputs = array("d"), array("q"), array("q")
    now_s = 0.0
    while True:
        now_s -= math.log(open_unit(source)) / rate_rps
        at_s = round(now_s, 6)  # machines differ in the last digits of a logarithm
        if at_s >= horizon_s:
            return Schedule(arrival_s, inputs, outputs, seed, rate_rps)
        arrival_s.append(at_s)
        inputs.append(workload.input.draw(source))
        outputs.append(workload.output.draw(source))
