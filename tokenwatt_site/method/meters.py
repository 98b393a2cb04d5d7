"""Which meters a spec asks for, and what a meter is that was opened."""

from dataclasses import dataclass

from tokenwatt_site.documents.spec import Scope, Spec, SpecPower


@dataclass(frozen=True, slots=True)
class MeterFacts:
    """What a meter is."""

    scope: Scope
    devices: tuple[str, ...]
    hz: float
    """Samples a second that were asked for."""
    name: str = ""
    """The adapter's name."""
    source: str = ""
    """The meter in words."""
    gain_pct: float | None = None
    """Bound of its systematic error, percent of the reading; None where nobody says."""
    averaged_s: float = 0.0
    """Each power reading is the mean of so long before it, s; 0 where it is of the moment."""


def meter_specs(spec: Spec) -> list[SpecPower]:
    """Return the meters that a spec names, the primary one first; ``none`` is no meter."""
    meters = spec.power if isinstance(spec.power, list) else [spec.power]
    return [meter for meter in meters if meter is not None and meter.source != "none"]


IDLE_S = 60.0

_HZ = {"board": 10.0, "amd": 10.0, "simulated": 10.0, "rapl": 10.0, "hwmon": 10.0}
"""What the machine's own drivers are asked for; whatever answers over a wire gets one a second."""


def rate_hz(meter: SpecPower) -> float:
    """Return how often a meter is read, 1/s: what the spec asks for, else what suits its kind."""
    return meter.sampling_hz or _HZ.get(meter.source, 1.0)


def idle_s(spec: Spec) -> float:
    """Return how long the meters are read without load, before and after; 0: not at all."""
    if not meter_specs(spec):
        return 0.0
    asked = spec.measurement.idle_s
    return IDLE_S if asked is None else asked


def primary_meter(spec: Spec) -> SpecPower | None:
    """Return the spec's first meter, None without one."""
    return next(iter(meter_specs(spec)), None)


def is_simulated(spec: Spec) -> bool:
    """Tell whether server, accelerators or a meter are the embedded engine's, by the spec."""
    return (
        spec.engine.endpoint == "simulator:"
        or spec.hardware.adapter == "simulated"
        or any(meter.source == "simulated" for meter in meter_specs(spec))
    )
