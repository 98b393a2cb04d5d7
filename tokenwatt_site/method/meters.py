"""Which meters a spec asks for: one reading of a key that may be an object, a list or null."""

from tokenwatt_site.documents.spec import Spec, SpecPower


def meter_specs(spec: Spec) -> list[SpecPower]:
    """Return the meters, the primary one first; ``none`` is no meter."""
    meters = spec.power if isinstance(spec.power, list) else [spec.power]
    return [meter for meter in meters if meter is not None and meter.source != "none"]


_HZ = {"board": 10.0, "amd": 10.0, "simulated": 10.0, "rapl": 10.0, "hwmon": 10.0}
"""What the machine's own drivers are asked for; whatever answers over a wire gets one a second."""


def rate_hz(meter: SpecPower) -> float:
    """Return how often a meter is read, 1/s: what the spec asks for, else what suits its kind."""
    return meter.sampling_hz or _HZ.get(meter.source, 1.0)


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
