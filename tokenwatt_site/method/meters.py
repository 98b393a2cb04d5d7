"""Which meters a spec asks for, and what a meter is that was opened."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from tokenwatt_site.documents.spec import Scope, Spec, SpecHost, SpecPower


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One of several hosts whose meters are read together."""

    name: str
    role: str = ""
    """What it serves, such as prefill or decode."""
    clock_offset_ms: float | None = None
    """Its wall clock less this host's when the run began; None for this host."""
    clock_error_ms: float | None = None
    """Bound of how far the times of its readings may be off."""


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
    hosts: tuple[HostFacts, ...] = ()
    """Several hosts: the part of a device's name before its slash is its host's."""

    def row(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return what a row says."""
        hosts = tuple(HostFacts(**host) for host in row.get("hosts", ()))
        changed: dict[str, Any] = {"devices": tuple(row["devices"]), "hosts": hosts}
        return cls(**{**row, **changed})


def meter_specs(spec: Spec) -> list[SpecPower]:
    """Return the meters that a spec names, the primary one first; ``none`` is no meter.

    Of several hosts each has the same ones. ``board`` is the accelerators' own meter: ``amd`` where
    ``hardware.adapter`` says so.
    """
    if spec.hosts:
        return _named(spec, spec.hosts[0].power)
    return _named(spec, spec.power if isinstance(spec.power, list) else [spec.power])


def host_specs(spec: Spec) -> list[SpecHost]:
    """Return the hosts that a spec names, each with its meters as ``meter_specs`` has them."""
    return [
        host.model_copy(update={"power": _named(spec, host.power)}) for host in spec.hosts or ()
    ]


def _named(spec: Spec, meters: Sequence[SpecPower | None]) -> list[SpecPower]:
    named = [meter for meter in meters if meter is not None and meter.source != "none"]
    if spec.hardware.adapter != "amd":
        return named
    amd = {"source": "amd"}
    return [each.model_copy(update=amd) if each.source == "board" else each for each in named]


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
    """Tell whether server, accelerators or a meter aren't real, or not of this run, by the spec."""
    return (
        spec.engine.endpoint == "simulator:"
        or spec.hardware.adapter == "simulated"
        or any(meter.source in ("simulated", "replay") for meter in meter_specs(spec))
    )
