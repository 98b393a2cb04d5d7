"""A recorded log played again: a meter of another time, for trying things out."""

import gzip
import io
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tokenwatt_site.documents.neighbour import neighbour
from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.power_logs import PowerLog, power_log
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now

_MOST_BYTES = 256 * 1024 * 1024


class ReplayMeter:
    """Gives the log's readings at the distances they have there; its first one is of now."""

    name = "replay"

    def __init__(self, log: PowerLog, scope: Scope, clock: Now = now) -> None:
        self._clock = clock
        self._samples = log.samples
        self._shift_s = clock() - log.samples[0].t_s
        self._given = 0
        self.scope = scope
        self.devices = log.devices
        self.gain_pct = log.gain_pct
        self.averaged_s = log.averaged_s
        self.source = f"Replay of a recorded log ({log.kind}), not of this run"

    def read(self) -> list[PowerSample]:
        """Return the readings whose time has come since the last one; after the end, errors."""
        now_s = self._clock()
        if self._given == len(self._samples):
            return [PowerSample(now_s, device, error="log_ended") for device in self.devices]
        first = self._given
        while self._given < len(self._samples) and self._time_s(self._given) <= now_s:
            self._given += 1
        return [
            replace(sample, t_s=sample.t_s + self._shift_s)
            for sample in self._samples[first : self._given]
        ]

    def _time_s(self, number: int) -> float:
        return self._samples[number].t_s + self._shift_s

    def close(self) -> None:
        """Nothing is open."""


def open_replay(
    power: SpecPower,
    *,
    gpus: Sequence[int | str] | None,
    count: int,
    simulator_url: str | None,
    folder: Path | None = None,
) -> ReplayMeter:
    """Open a log by its path from ``folder``, the spec's; the accelerators are the log's own.

    Raises:
        RefusedError: the path leaves the folder.
        UsageError: no path, no such file, no log, or nothing says what its power includes.
    """
    del gpus, count, simulator_url
    if power.path is None:
        raise UsageError("power.source: replay needs power.path", "name the log's file")
    path = neighbour(power.path, folder or Path(), "power.path", "log")
    log = _log(path, power.path)
    scope = power.scope or log.scope
    if scope is None:
        raise UsageError(
            f"power.path {power.path}: the log doesn't say what its power includes",
            "set power.scope",
        )
    return ReplayMeter(log, scope)


def _log(path: Path, name: str) -> PowerLog:
    try:
        data = _bytes(path)
        return power_log(data.decode("utf-8"))
    except OSError as error:
        raise UsageError(
            f"power.path {name}: {error.strerror or error}", "a path is from the spec's folder"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, zlib.error, EOFError) as error:
        raise UsageError(
            f"power.path {name} is no log of power: {' '.join(str(error).split())[:200]}",
            "docs/power.md says which logs are read",
        ) from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES)
    if data[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            data = packed.read(_MOST_BYTES)
    if len(data) == _MOST_BYTES:
        raise ValueError(f"it holds more than {_MOST_BYTES} bytes")
    return data
