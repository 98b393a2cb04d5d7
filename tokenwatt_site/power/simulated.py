"""The embedded engine's own meter, polled over HTTP like any other."""

from collections.abc import Sequence

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.drivers.choice import choose
from tokenwatt_site.drivers.power_page import PageDevice, PowerPage
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now


class SimulatedMeter:
    """Reads ``GET /power``; the times on that page are of another clock and are not used."""

    name = "simulated"
    source = "Board power sum of the embedded engine (simulated)"
    scope: Scope = "board"
    gain_pct = 0.0

    def __init__(self, page: PowerPage, devices: Sequence[str], clock: Now = now) -> None:
        self._page = page
        self._clock = clock
        self.devices = tuple(devices)

    def read(self) -> list[PowerSample]:
        """Return one sample a device, all of one answer."""
        began_s = self._clock()
        found, code = self._page.read()
        t_s = (began_s + self._clock()) / 2
        by_uuid = {device.uuid: device for device in found}
        return [
            _sample(t_s, by_uuid[uuid])
            if uuid in by_uuid
            else PowerSample(t_s, uuid, error=code or "device_missing")
            for uuid in self.devices
        ]

    def close(self) -> None:
        """Close the connection."""
        self._page.close()


def _sample(t_s: float, device: PageDevice) -> PowerSample:
    return PowerSample(
        t_s=t_s,
        device=device.uuid,
        power_w=device.power_w,
        energy_j=device.energy_j,
        throttle=device.throttled,
        throttle_ns=device.throttle_ns,
        limit_w=device.limit_w,
        error="not_supported" if device.power_w is None else None,
    )


def open_simulated(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> SimulatedMeter:
    """Open the meter of the embedded engine at ``simulator_url``.

    Raises:
        RefusedError: the server under test has no such page.
        UsageError: the accelerators asked for aren't on it.
    """
    page = PowerPage(simulator_url or "")
    found, code = page.read()
    page.close()
    if code is not None:
        raise RefusedError(
            f"power.source: {power.source} is the embedded engine's own meter, and the server "
            f"has none at /power ({code})",
            "set engine.endpoint to `simulator:`, or power.source to `board` or `none`",
        )
    return SimulatedMeter(page, choose([device.uuid for device in found], gpus, count))
