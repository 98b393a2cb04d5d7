"""Processor packages of this machine through the kernel's powercap tree (Intel and AMD RAPL)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.meters import rate_hz
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.rapl_zones import ROOT, Zone, mirrors, zones

MOST_W = 1000.0
"""More than any package draws: how soon a counter may start again."""
WRAP_SHARE = 1 / 3
"""A counter is read at least this often in the time that it takes to start again."""


@dataclass(slots=True)
class _Counter:
    """A counter that starts again at its range, made one that doesn't."""

    zone: Zone
    last_uj: int | None = None
    last_s: float = 0.0
    total_uj: int = 0

    def add(self, uj: int, t_s: float) -> float:
        """Take a reading; return the running total, J.

        A step of more than half the range is no start from 0 but a reset, and after a pause in
        which it may have started again more than once nobody knows: the total then falls, so that
        whoever looks at it sees a reset.
        """
        if self.last_uj is None:
            self.total_uj = uj
        else:
            step_uj = (uj - self.last_uj) % self.zone.range_uj
            paused = t_s - self.last_s > _wrap_s(self.zone)
            reset = paused or step_uj > self.zone.range_uj / 2
            self.total_uj = 0 if reset else self.total_uj + step_uj
        self.last_uj, self.last_s = uj, t_s
        return self.total_uj / 1e6


class RaplMeter:
    """The running energy of each package; a counter only, RAPL tells no power."""

    name = "rapl"
    gain_pct = None
    """Neither Intel nor AMD names a bound for the package domain."""

    def __init__(
        self,
        counted: Sequence[Zone],
        scope: Scope,
        mirrored: Sequence[str] = (),
        clock: Now = now,
    ) -> None:
        self._counters = [_Counter(zone) for zone in counted]
        self._clock = clock
        self.scope = scope
        self.devices = tuple(zone.name for zone in counted)
        also = f"; {', '.join(mirrored)} shows the same counter and isn't added" if mirrored else ""
        self.source = f"RAPL energy counter of {', '.join(self.devices)} (powercap{also})"

    def read(self) -> list[PowerSample]:
        """Return one sample a package, stamped at the middle of its reading."""
        return [self._sample(counter) for counter in self._counters]

    def close(self) -> None:
        """Nothing is kept open."""

    def _sample(self, counter: _Counter) -> PowerSample:
        began_s = self._clock()
        uj, code = counter.zone.read_uj()
        t_s = (began_s + self._clock()) / 2
        if uj is None:
            return PowerSample(t_s, counter.zone.name, error=code)
        if uj > counter.zone.range_uj:
            return PowerSample(t_s, counter.zone.name, error="bad_answer")
        return PowerSample(t_s, counter.zone.name, energy_j=counter.add(uj, t_s))


def open_rapl(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> RaplMeter:
    """Open the packages of this machine; which accelerators are under test doesn't matter.

    ``power.field`` may be ``psys``, the platform domain of some machines, instead of ``package``.

    Raises:
        RefusedError: no RAPL, no right to read it, or a platform domain of unknown extent.
        UsageError: a field that isn't known, or a rate that would miss a counter's start from 0.
    """
    del gpus, count, simulator_url
    field = power.field or "package"
    if field not in {"package", "psys"}:
        raise UsageError(
            f"power.field: {field!r} is no domain that is read",
            "leave it out for the processor packages, or name psys for the platform",
        )
    found = _found(Path(power.path) if power.path else ROOT, field)
    for zone in found:
        _check_readable(zone)
        _check_rate(zone, power)
    same = mirrors(found)
    counted = [zone for zone in found if zone.name not in same]
    return RaplMeter(counted, _scope(power, field), tuple(same))


def _found(root: Path, field: str) -> list[Zone]:
    try:
        every = zones(root)
    except PermissionError:
        raise RefusedError(
            f"RAPL: no_permission to list {root}",
            "run as root, or give this user the right to read it",
        ) from None
    except OSError:
        every = []
    found = [zone for zone in every if zone.is_package == (field == "package")]
    if not found:
        names = ", ".join(zone.name for zone in every)
        raise RefusedError(
            f"RAPL: {root} shows no {field} domain" + (f", only {names}" if names else ""),
            "load the kernel's module intel_rapl_msr; a virtual machine has none, and a container "
            "needs the host's tree mounted and named in power.path",
        )
    return found


def _check_readable(zone: Zone) -> None:
    code = zone.read_uj()[1]
    if code == "no_permission":
        raise RefusedError(
            f"RAPL: no_permission to read {zone.folder / 'energy_uj'} ({zone.name} is there)",
            "as root: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj (until the next boot; a "
            "udev or tmpfiles rule keeps it), or run as root",
        )
    if code is not None:
        raise RefusedError(
            f"RAPL: {zone.folder / 'energy_uj'} can't be read ({code})",
            "look into the kernel's log for intel_rapl, or use another meter",
        )


def _check_rate(zone: Zone, power: SpecPower) -> None:
    wrap_s = _wrap_s(zone)
    if rate_hz(power) * wrap_s * WRAP_SHARE < 1:
        raise UsageError(
            f"power.sampling_hz: at {rate_hz(power):g} Hz the counter of {zone.name} may start "
            f"again unseen: at {MOST_W:g} W it does after {wrap_s:.0f} s",
            f"sample at {1 / (wrap_s * WRAP_SHARE):.2g} Hz or faster",
        )


def _wrap_s(zone: Zone) -> float:
    """Return how soon a counter may start again, s."""
    return zone.range_uj / 1e6 / MOST_W


def _scope(power: SpecPower, field: str) -> Scope:
    if field == "package":
        return "package"
    if power.scope is None:
        raise RefusedError(
            "RAPL: what the platform domain (psys) includes is up to the maker of the board",
            "set power.scope to what the machine's maker says, such as node_dc, or measure the "
            "packages: power.field: package",
        )
    return power.scope
