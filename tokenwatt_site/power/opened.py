"""Meters that are being read: opened from what a spec says, each with its own thread."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tokenwatt_site.documents.spec import Spec, SpecPower
from tokenwatt_site.method.meters import MeterFacts, host_specs, meter_specs
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.hosts import open_hosts
from tokenwatt_site.power.meter import averaged_s
from tokenwatt_site.power.sampler import Sampler, reading


def opened(
    meters: Iterable[SpecPower],
    stack: ExitStack,
    *,
    gpus: Sequence[int | str] | None,
    count: int,
    simulator_url: str | None,
    folder: Path | None = None,
) -> list[Sampler]:
    """Open meters and start reading them; ``stack`` stops and closes them.

    Args:
        meters: what the spec says of each, the primary one first.
        stack: takes what ends them.
        gpus: ``hardware.gpus`` of the spec.
        count: accelerators that the engine uses; 0 where that isn't known.
        simulator_url: base URL of the server under test, for the embedded engine's own meter.
        folder: the spec's.

    Raises:
        RefusedError: one that this version or this machine doesn't have.
        UsageError: the accelerators asked for aren't there, or a key lacks.
    """
    samplers: list[Sampler] = []
    for asked in meters:
        meter = open_meter(
            asked, gpus=gpus, count=count, simulator_url=simulator_url, folder=folder
        )
        samplers.append(reading(meter, asked, stack))
    for sampler in samplers:  # unwound before the first is waited for
        stack.callback(sampler.signal)
    return samplers


def opened_of(
    spec: Spec, stack: ExitStack, *, count: int, simulator_url: str | None, folder: Path
) -> list[Sampler]:
    """Open the meters of a spec and start reading them, those of several hosts together.

    Raises:
        RefusedError: one that this version, this machine or another host doesn't have.
        UsageError: the accelerators asked for aren't there, or a key lacks.
    """
    asked = meter_specs(spec)
    if not spec.hosts:
        gpus = spec.hardware.gpus
        return opened(
            asked, stack, gpus=gpus, count=count, simulator_url=simulator_url, folder=folder
        )
    return [
        reading(open_hosts(host_specs(spec), number), each, stack)
        for number, each in enumerate(asked)
    ]


def facts(sampler: Sampler) -> MeterFacts:
    """Return what a meter is that is being read."""
    meter = sampler.meter
    return MeterFacts(
        scope=meter.scope,
        devices=meter.devices,
        hz=sampler.hz,
        name=meter.name,
        source=meter.source,
        gain_pct=sampler.gain_pct,
        averaged_s=averaged_s(meter),
        hosts=getattr(meter, "hosts", ()),
    )
