"""What can be measured from here: the server, its accelerators, each meter with a reading.

Nothing is guessed: a meter is opened and read for some seconds, or it says itself why it can't be,
and what to do about it.
"""

import itertools
import os
import platform
import statistics
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenwatt_site import accelerators, power
from tokenwatt_site.documents.spec import Scope, Spec, SpecHardware, SpecModel, SpecPower
from tokenwatt_site.drivers.choice import EVERY
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load.address import Address
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.preflight import preflight
from tokenwatt_site.method.meters import host_specs, meter_specs, rate_hz
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.update_period import UpdatePeriod, update_period
from tokenwatt_site.power.hosts import open_hosts
from tokenwatt_site.power.meter import Meter
from tokenwatt_site.power.sampler import Sampler

LOOK_S = 3.0
"""Long enough to see a meter change that changes once a second."""
_LOCAL_HZ, _REMOTE_HZ = 20.0, 2.0
_LOCAL = frozenset({"board", "amd", "rapl", "hwmon", "simulated"})

# meters that have to be told where or what they read, and the keys that say so
NEEDS: dict[str, str] = {
    "redfish": "{source: redfish, url: https://…, username: …, password_env: …}",
    "command": "{source: command, command: […], unit: W, scope: …}",
    "prometheus": "{source: prometheus, url: http://…}",
    "replay": "{source: replay, path: …}",
    "simulated": "{source: simulated}, with engine.endpoint `simulator:`",
}

Wait = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class MeterLook:
    """One meter as it was found, or why it wasn't."""

    source: str
    """As a spec names it."""
    state: str
    """read, refused, failing (it opens, its readings don't come) or unnamed (it needs a spec)."""
    words: str
    """The meter in words, or what refused it."""
    hint: str = ""
    """The next step."""
    scope: Scope | None = None
    devices: int = 0
    power_w: float | None = None
    """Mean of the readings, all devices together."""
    counter: bool = False
    """It has an energy counter."""
    update: UpdatePeriod | None = None
    """The slowest device's."""
    call_s: float | None = None
    """Median time between the readings that came."""
    gain_pct: float | None = None
    errors: tuple[str, ...] = ()
    """Codes of readings that failed."""
    asked: bool = False
    """The spec names it."""


@dataclass(slots=True)
class Examination:
    """What was found."""

    machine: dict[str, Any]
    server: ServerFacts | None = None
    server_refused: TokenwattError | None = None
    accelerators: list[dict[str, Any]] = field(default_factory=list)
    meters: list[MeterLook] = field(default_factory=list)

    def lacking(self) -> list[str]:
        """Return what a spec asks for and can't be had."""
        lacks = [f"power.source {look.source}" for look in self.meters if look.asked and look.hint]
        lacks += [f"hardware.adapter {each['adapter']}" for each in self.accelerators
                  if each["asked"] and "refused" in each]  # fmt: skip
        return [*lacks, *(["engine.endpoint"] if self.server_refused else [])]


def examine(
    spec: Spec | None,
    endpoint: str | None,
    seconds: float = LOOK_S,
    wait: Wait | None = None,
    folder: Path | None = None,
) -> Examination:
    """Look at everything that can be looked at from here.

    Args:
        spec: its server, accelerators and meters are looked at too; None: only this machine.
        endpoint: base URL of a server, where no spec names one.
        seconds: how long the meters are read.
        wait: waits so many seconds while they are.
        folder: the spec's.
    """
    url = spec.engine.endpoint if spec else endpoint
    found = Examination(_machine())
    if url is not None and url != "simulator:":
        try:
            found.server = preflight(spec or _bare(url), url)
        except TokenwattError as error:
            found.server_refused = error
    found.accelerators = _accelerators(spec, url)
    found.meters = _meters(spec, (url, folder), seconds, wait or threading.Event().wait)
    return found


def _bare(url: str) -> Spec:
    values = {"name": "doctor", "engine": {"endpoint": url}, "model": {"name": "doctor"}}
    return Spec.model_validate(values)


def _machine() -> dict[str, Any]:
    import resource  # noqa: PLC0415 - POSIX alone has it

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "files_soft": None if soft == resource.RLIM_INFINITY else soft,
        "files_hard": None if hard == resource.RLIM_INFINITY else hard,
    }


def _accelerators(spec: Spec | None, url: str | None) -> list[dict[str, Any]]:
    """Ask the driver that the spec names; without one, every vendor's."""
    hardware = spec.hardware if spec else None
    if spec and hardware and hardware.adapter not in ("none", "simulated"):
        return [_identified(hardware, spec.model, url, asked=True)]
    return [
        _identified(SpecHardware.model_validate({"adapter": name}), None, url, asked=False)
        for name in accelerators.ADAPTERS
        if name not in ("none", "simulated")
    ]


def _identified(
    hardware: SpecHardware, model: SpecModel | None, url: str | None, *, asked: bool
) -> dict[str, Any]:
    try:
        found = accelerators.identify(hardware, model, url)
    except TokenwattError as error:
        told: dict[str, Any] = {"refused": error.what, "hint": error.hint}
    else:
        told = {
            "name": found.name,
            "count": found.count,
            "driver": found.driver,
            "uuids": list(found.uuids),
            "power_limit_w": found.power_limit_w,
        }
    return {"adapter": hardware.adapter, "asked": asked, **told}


def _meters(
    spec: Spec | None, place: tuple[str | None, Path | None], seconds: float, wait: Wait
) -> list[MeterLook]:
    """Open every meter, read them all for the same seconds, and say what came."""
    url, folder = place
    named = meter_specs(spec) if spec else []
    looks: list[MeterLook | tuple[SpecPower, Sampler, bool]] = []
    with ExitStack() as stack:
        for number, asked in enumerate([*named, *_others(named)]):
            by_spec = number < len(named)
            if not by_spec and _unnamed(asked.source, url):
                looks.append(_not_named(asked.source))
                continue
            try:
                if spec and spec.hosts and by_spec:
                    meter: Meter = open_hosts(host_specs(spec), number)
                else:
                    meter = _open(asked, spec if by_spec else None, url, folder)
            except TokenwattError as error:
                look = MeterLook(asked.source, "refused", error.what, error.hint, asked=by_spec)
                looks.append(look)
                continue
            looks.append((asked, _sampling(meter, asked, stack), by_spec))
        if any(isinstance(look, tuple) for look in looks):
            wait(seconds)
        return [look if isinstance(look, MeterLook) else _look(*look) for look in looks]


def _others(named: Sequence[SpecPower]) -> list[SpecPower]:
    """Return the meters that a spec doesn't name, as they are without keys."""
    sources = {each.source for each in named}
    return [
        SpecPower.model_validate({"source": source})
        for source in power.METERS
        if source not in sources
    ]


def _sampling(meter: Meter, asked: SpecPower, stack: ExitStack) -> Sampler:
    stack.callback(meter.close)
    hz = _LOCAL_HZ if asked.source in _LOCAL else max(_REMOTE_HZ, rate_hz(asked))
    sampler = Sampler(meter, hz, gain_pct=asked.gain_pct)
    sampler.start()
    stack.callback(sampler.stop)
    return sampler


def _unnamed(source: str, url: str | None) -> bool:
    return source in NEEDS and not (source == "simulated" and url not in (None, "simulator:"))


def _not_named(source: str) -> MeterLook:
    return MeterLook(source, "unnamed", "must be told where", f"in a spec: power: {NEEDS[source]}")


def _open(asked: SpecPower, spec: Spec | None, url: str | None, folder: Path | None) -> Meter:
    gpus = spec.hardware.gpus if spec else None
    count = EVERY
    if spec and spec.hardware.adapter != "none":
        count = spec.model.ranks
    return power.open_meter(
        asked, gpus=gpus, count=count, simulator_url=_server(url), folder=folder
    )


def _server(url: str | None) -> str | None:
    return None if url in (None, "simulator:") else Address.of(url or "").url


def _look(asked: SpecPower, sampler: Sampler, by_spec: bool) -> MeterLook:  # noqa: FBT001
    meter, samples = sampler.meter, sampler.stop()
    by_device = {name: [s for s in samples if s.device == name] for name in meter.devices}
    errors = tuple(sorted({s.error for s in samples if s.error}))
    means = [_mean_w(each) for each in by_device.values()]
    read = all(mean is not None for mean in means)
    periods = [each for each in map(_period, by_device.values()) if each is not None]
    stamps = sorted({s.t_s for s in samples})
    steps = [b - a for a, b in itertools.pairwise(stamps)]
    return MeterLook(
        source=asked.source,
        state="read" if read else "failing",
        words=meter.source,
        hint="" if read else f"its readings fail: {', '.join(errors) or 'none came'}",
        scope=meter.scope,
        devices=len(meter.devices),
        power_w=sum(mean for mean in means if mean is not None) if read else None,
        counter=any(s.energy_j is not None for s in samples),
        update=max(periods, key=lambda each: each.seconds, default=None),
        call_s=statistics.median(steps) if steps else None,
        gain_pct=sampler.gain_pct,
        errors=errors,
        asked=by_spec,
    )


def _mean_w(samples: Sequence[PowerSample]) -> float | None:
    """Return a device's mean power: of its power readings, else of its counter."""
    watts = [s.power_w for s in samples if s.power_w is not None]
    if watts:
        return statistics.fmean(watts)
    counted = [(s.t_s, s.energy_j) for s in samples if s.energy_j is not None]
    if len(counted) < 2 or counted[-1][0] <= counted[0][0]:  # noqa: PLR2004 - a slope needs two
        return None
    (from_s, from_j), (to_s, to_j) = counted[0], counted[-1]
    return (to_j - from_j) / (to_s - from_s) if to_j > from_j else None


def _period(samples: Sequence[PowerSample]) -> UpdatePeriod | None:
    """Return the time between new values, of the counter where there is one."""
    for values in (
        [(s.t_s, s.energy_j) for s in samples if s.energy_j is not None],
        [(s.t_s, s.power_w) for s in samples if s.power_w is not None],
    ):
        found = update_period([t_s for t_s, _ in values], [value for _, value in values])
        if found is not None:
            return found
    return None
