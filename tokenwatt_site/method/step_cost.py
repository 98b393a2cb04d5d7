"""How long a step takes and what energy it needs: bytes over bandwidth, operations, a power cap."""

from dataclasses import dataclass

from tokenwatt_site.method.scheduler import Plan
from tokenwatt_site.method.shape import Shape


@dataclass(frozen=True, slots=True)
class Span:
    """Where steps that do the same begin, and how far they may go on."""

    start_s: float
    until_s: float
    """No step but the first one begins at or after this time."""
    steps: int
    """How many there are at most."""


@dataclass(slots=True)
class Spent:
    """What some steps took; sums over them."""

    ends_s: list[float]
    """When each step ended."""
    dynamic_j: float
    """Energy above idle of one accelerator."""
    throttled_s: float
    """Time at the power limit."""
    memory_s: float
    """Time reading memory, at full speed."""


class StepCost:
    """The cost of the steps of one shape.

    With nd decoding sequences, kv tokens of their context, x prompt tokens and
    a = Σ x_c·(tokens of that prompt before + x_c/2) over their chunks, a step takes::

        memory  = (wd + we·(1 − (1 − k/E)^(nd + x)) + wk·kv) / bandwidth
        compute = cp·x + ca·a + cd·nd
        dt      = (t0 + ts·nd + memory + compute)·slowness
        dynamic = pm·memory + pc·compute                    J above idle of one accelerator
        power   = idle + dynamic/dt                         or, where that is over the limit,
        dt      = dynamic/(limit − idle)                    the cap makes the step longer

    Memory and compute don't overlap: the constants of the shapes were fitted that way.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._kv_s = shape.kv_bytes / shape.bandwidth_bytes_s
        self._weights_s: dict[int, float] = {}  # by tokens in the step

    def spend(self, plan: Plan, kv_tokens: int, slowness: float, span: Span) -> Spent:
        """Return the cost of steps that do the same, one at least and no more than fit ``span``.

        While the batch stands, a step differs from the one before by the context that grew by a
        token a sequence, and its time and energy are linear in that.
        """
        shape, kv_s = self._shape, self._kv_s
        weights_s = self._weights_read_s(plan.decoding + plan.prefill_tokens)
        compute_s = (
            shape.prefill_token_s * plan.prefill_tokens
            + shape.prefill_attention_s * plan.attended_tokens
            + shape.decode_token_s * plan.decoding
        )
        base_s = shape.fixed_s + shape.sequence_s * plan.decoding + weights_s + compute_s
        base_j = shape.memory_w * weights_s + shape.compute_w * compute_s
        kv_j = shape.memory_w * kv_s
        headroom_w = shape.limit_w - shape.idle_w
        kv = kv_tokens if plan.decoding else 0
        t_s, ends_s = span.start_s, list[float]()
        kv_read, total_j, throttled_s = 0, 0.0, 0.0
        for _ in range(span.steps):
            dt_s = (base_s + kv_s * kv) * slowness
            dynamic_j = base_j + kv_j * kv
            if dynamic_j > headroom_w * dt_s:
                dt_s = dynamic_j / headroom_w
                throttled_s += dt_s
            t_s += dt_s
            total_j += dynamic_j
            kv_read += kv
            kv += plan.decoding
            ends_s.append(t_s)
            if t_s >= span.until_s:
                break
        return Spent(ends_s, total_j, throttled_s, len(ends_s) * weights_s + kv_read * kv_s)

    def _weights_read_s(self, tokens: int) -> float:
        """Return the time to read the weights that a step of ``tokens`` tokens touches."""
        if tokens not in self._weights_s:
            shape = self._shape
            self._weights_s[tokens] = shape.weight_bytes(tokens) / shape.bandwidth_bytes_s
        return self._weights_s[tokens]
