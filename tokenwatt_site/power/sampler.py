"""Reads a meter in a thread of its own, at absolute deadlines."""

import math
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from contextlib import ExitStack

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.method.meters import rate_hz
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Meter, Now, now
from tokenwatt_site.power.reading import checked, finite

MOST_W, MOST_J = 1e8, 1e15
"""No machine draws as much, no counter holds as much."""
JOIN_S = 10.0
"""How long ``stop`` waits from the signal on; meters have timeouts of their own."""


class Sampler:
    """Samples of one meter, ``hz`` times a second from ``start`` to ``stop``.

    Deadline k is at start + k/hz, however long readings take; deadlines that passed during one are
    counted in ``skipped`` and never made up for. Samples can be looked at while it runs.
    """

    def __init__(
        self,
        meter: Meter,
        hz: float,
        *,
        clock: Now = now,
        wait: Callable[[float], bool] | None = None,
        gain_pct: float | None = None,
    ) -> None:
        """Prepare to read ``meter``; ``wait`` sleeps so many seconds and returns True to stop.

        ``gain_pct`` is the bound of its systematic error where the spec knows better than its kind.
        """
        self.gain_pct = meter.gain_pct if gain_pct is None else gain_pct
        self.meter = meter
        self.hz = hz
        self.skipped = 0
        self.errors = 0
        """Samples that carry an error."""
        self._samples: list[PowerSample] = []
        self._last: list[PowerSample] = []
        self._clock = clock
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._thread: threading.Thread | None = None
        self._until_s: float | None = None

    def start(self) -> None:
        """Begin, in a thread that doesn't keep the program alive."""
        self._thread = threading.Thread(
            target=self.run, name=f"meter-{self.meter.name}", daemon=True
        )
        self._thread.start()

    def signal(self) -> None:
        """Tell it to stop, without waiting: of several each is told before one is waited for."""
        self._stop.set()
        if self._until_s is None:
            self._until_s = now() + JOIN_S

    def stop(self) -> list[PowerSample]:
        """Take a last reading, so that a window that ends now is bracketed; return every sample."""
        self.signal()
        if self._thread is not None and self._until_s is not None:
            self._thread.join(max(0.0, self._until_s - now()))
        return list(self._samples)

    @property
    def hangs(self) -> bool:
        """Tell whether a reading still hasn't come back: its meter can't be closed under it."""
        return self._thread is not None and self._thread.is_alive()

    def run(self) -> None:
        """Read at every deadline until told to stop, then once more."""
        start_s, k, stopped = self._clock(), 0, False
        while not stopped:
            self._read()
            due = max(k + 1, math.floor((self._clock() - start_s) * self.hz) + 1)
            self.skipped += due - k - 1
            k = due
            stopped = self._wait(max(0.0, start_s + k / self.hz - self._clock()))
        self._read()

    def between(self, start_s: float, end_s: float) -> list[PowerSample]:
        """Return the samples of a time so far, edges included."""
        taken = self._samples[:]
        first = bisect_left(taken, start_s, key=_time)
        return taken[first : bisect_right(taken, end_s, key=_time)]

    def forget(self, before_s: float) -> None:
        """Drop the samples of before a time: an agent runs for weeks."""
        del self._samples[: bisect_left(self._samples, before_s, key=_time)]

    def recent(self) -> list[PowerSample]:
        """Return the last reading, one sample a device; empty before the first."""
        return self._last

    def _read(self) -> None:
        began_s = self._clock()
        try:
            samples = self.meter.read()
        except Exception:  # noqa: BLE001 - a meter that breaks is a gap, it must not end the run
            middle_s = (began_s + self._clock()) / 2
            samples = [
                PowerSample(middle_s, device, error="meter_failed") for device in self.meter.devices
            ]
        samples = [_guarded(sample) for sample in samples if _timed(sample)]
        self.errors += sum(sample.error is not None for sample in samples)
        for sample in samples:  # a remote meter's may be of a time before the last error's
            insort(self._samples, sample, key=_time)
        self._last = samples


def _time(sample: PowerSample) -> float:
    return sample.t_s


def _timed(sample: PowerSample) -> bool:
    """Tell whether a sample has a time; one without can't even be a gap."""
    return finite(sample.t_s)


def _guarded(sample: PowerSample) -> PowerSample:
    """Return a sample whose numbers are some, whatever a meter gave: else it is an error."""
    power_w, energy_j = sample.power_w, sample.energy_j
    whole = all(
        value is None or finite(value)
        for value in (power_w, energy_j, sample.limit_w, sample.clock_mhz, sample.temperature_c)
    )
    code = None if whole else "bad_answer"
    if whole and power_w is not None:
        code = checked(power_w, "power") or ("bad_answer" if power_w > MOST_W else None)
    if whole and code is None and energy_j is not None:
        code = checked(energy_j, "energy") or ("bad_answer" if energy_j > MOST_J else None)
    if code is None or sample.error is not None:
        return sample if whole else PowerSample(sample.t_s, sample.device, error=sample.error)
    return PowerSample(sample.t_s, sample.device, error=code)


def reading(meter: Meter, asked: SpecPower, stack: ExitStack) -> Sampler:
    """Start reading an open meter; ``stack`` stops and closes it."""
    stack.callback(lambda: None if sampler.hangs else meter.close())
    sampler = Sampler(meter, rate_hz(asked), gain_pct=asked.gain_pct)
    sampler.start()
    stack.callback(sampler.stop)
    return sampler
