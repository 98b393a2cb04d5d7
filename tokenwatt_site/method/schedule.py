"""The whole load of a window, drawn before it starts: each request's arrival and lengths."""

import hashlib
import math
import random
import struct
from array import array
from dataclasses import dataclass, replace

from tokenwatt_site.method.rng import open_unit
from tokenwatt_site.method.sharing import Shared
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
    shared: Shared | None = None
    """What the prompts have in common; None: nothing."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.arrival_s)

    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent, equal on every machine."""
        injected = f"{self.injected}/" if self.injected else ""
        sha = hashlib.sha256(f"{self.seed}/{self.rate_rps!r}/{injected}".encode())
        for column in (self.arrival_s, self.input_tokens, self.output_tokens):
            sha.update(struct.pack(f"<{len(column)}{column.typecode}", *column))
        if self.shared is not None:
            sha.update(repr((self.shared.block_tokens, self.shared.blocks)).encode())
            sha.update(repr(list(self.shared.tokens)).encode())
        return sha.hexdigest()

    def stripe(self, number: int, of: int) -> "Schedule":
        """Return the requests number, number + of, number + 2 of, …: one worker's share.

        Its request j is request ``number + j * of`` of the whole.
        """
        return replace(
            self,
            arrival_s=self.arrival_s[number::of],
            input_tokens=self.input_tokens[number::of],
            output_tokens=self.output_tokens[number::of],
            injected=len(range(number, self.injected, of)),
            shared=self.shared and self.shared.stripe(number, of),
        )


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
        input_tokens, output_tokens = workload.draw(source)
        inputs.append(input_tokens)
        outputs.append(output_tokens)
