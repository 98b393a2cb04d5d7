"""One power or energy sensor of this machine through the kernel's hwmon tree."""

from collections.abc import Sequence
from pathlib import Path

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.hwmon_sensors import ROOT, Sensor, choose_sensor, sensors
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.sysfs import read_micro


class HwmonMeter:
    """A sensor's power (µW), its running energy (µJ), or both."""

    name = "hwmon"
    gain_pct = None
    """Drivers name no accuracy; the data sheet of the chip may: power.gain_pct."""

    def __init__(self, sensor: Sensor, scope: Scope, clock: Now = now) -> None:
        self._sensor = sensor
        self._clock = clock
        self.scope = scope
        self.devices = (sensor.name,)
        kinds = {"power": sensor.power, "energy counter": sensor.energy}
        what = " and ".join(kind for kind, path in kinds.items() if path is not None)
        averaged = sensor.power is not None and sensor.power.name.endswith("_average")
        self.source = f"Hwmon {what} of {sensor.name}" + (" (driver's average)" if averaged else "")

    def read(self) -> list[PowerSample]:
        """Return one sample, stamped at the middle of its readings."""
        began_s = self._clock()
        power_uw, code = self._read(self._sensor.power)
        energy_uj, energy_code = self._read(self._sensor.energy)
        t_s = (began_s + self._clock()) / 2
        if power_uw == 0:
            power_uw, code = None, "zero_power"
        return [
            PowerSample(
                t_s=t_s,
                device=self._sensor.name,
                power_w=None if power_uw is None else power_uw / 1e6,
                energy_j=None if energy_uj is None else energy_uj / 1e6,
                error=code or energy_code,
            )
        ]

    def close(self) -> None:
        """Nothing is kept open."""

    def _read(self, path: Path | None) -> tuple[int | None, str | None]:
        return (None, None) if path is None else read_micro(path)


def open_hwmon(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> HwmonMeter:
    """Open the sensor that ``power.path`` and ``power.field`` choose, or the machine's only one.

    Raises:
        RefusedError: no sensor, no right or no use in reading it, or one of unknown scope.
        UsageError: several, and the spec doesn't say which.
    """
    del gpus, count, simulator_url
    where = Path(power.path) if power.path else ROOT
    try:
        found = sensors(where)
    except PermissionError:
        raise RefusedError(
            f"hwmon: no_permission to list {where}",
            "run as root, or give this user the right to read it",
        ) from None
    except OSError:
        found = []
    sensor = choose_sensor(found, power, where)
    scope = power.scope or sensor.scope
    if scope is None:
        raise RefusedError(
            f"hwmon: what {sensor.name} includes isn't known: its driver doesn't say so",
            "set power.scope to what it measures: board, module, package, node_dc or node_ac",
        )
    meter = HwmonMeter(sensor, scope)
    code = meter.read()[0].error
    if code is not None:
        raise RefusedError(
            f"hwmon: {sensor.name} can't be read ({code})",
            "as root: chmod a+r on its file, or run as root"
            if code == "no_permission"
            else "choose another sensor with power.field or power.path, or use another meter",
        )
    return meter
