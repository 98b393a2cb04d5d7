"""What a power meter reads: one sample a device and deadline."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PowerSample:
    """One reading of one device; ``t_s`` is the middle of the call, on the client's clock.

    A field that the meter doesn't give, or failed to give, is None; never 0 for unknown.
    """

    t_s: float
    device: str
    power_w: float | None = None
    energy_j: float | None = None
    """Running counter."""
    throttle: tuple[str, ...] | None = None
    """Names of the throttle reasons active at the reading; empty means that none was."""
    throttle_ns: dict[str, int] = field(default_factory=dict)
    """Running counters of throttled time, by reason."""
    limit_w: float | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    error: str | None = None
    """Why the reading failed, a code such as no_permission or timeout: the sample is a gap."""
