"""Series of a Prometheus server as a meter: each a device, at the times of its scrapes."""

import math
from collections.abc import Mapping, Sequence

from tokenwatt_site.documents.spec import Scope
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.span import GAP_MIN_S, GAP_PERIODS
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.prometheus_api import PrometheusApi
from tokenwatt_site.power.prometheus_query import Labels, Part, by_labels, combined
from tokenwatt_site.power.reading import checked
from tokenwatt_site.power.remote_clock import RemoteClock
from tokenwatt_site.power.web import UnansweredError

_BLANK_64 = 9.2233720368547e18
"""DCGM's integers from here on say why there is no value (DCGM_INT64_BLANK and up)."""
_BLANKS = range(140_737_488_355_328, 140_737_488_355_332)
"""DCGM_FP64_BLANK and up."""
SAME_S = 0.001
"""Prometheus keeps times to the millisecond."""
Row = Mapping[str, tuple[float, str]]


class PrometheusMeter:
    """Series of a server, each a device, stamped with the time that they were scraped at.

    The same scrape read twice is the same sample twice, with the same stamp.
    """

    name = "prometheus"

    def __init__(
        self,
        api: PrometheusApi,
        parts: Sequence[Part],
        devices: Mapping[str, Labels],
        facts: tuple[str, Scope, float | None],
        hz: float,
        clock: Now = now,
    ) -> None:
        """Read ``parts`` of ``devices`` (name -> labels) ``hz`` times a second.

        ``facts`` are the source in words, the scope and the gain error.
        """
        self._api = api
        self._parts = tuple(parts)
        self._labels = dict(devices)
        self._query = combined(parts)
        self._old_s = max(GAP_PERIODS / hz, GAP_MIN_S)
        self._clock = clock
        self._server = RemoteClock()
        self._last: dict[str, tuple[object, PowerSample]] = {}
        self.source, self.scope, self.gain_pct = facts
        self.devices = tuple(devices)

    def read(self) -> list[PowerSample]:
        """Return one sample a device: of its last scrape, or why there is none."""
        began_s = self._clock()
        try:
            found = by_labels(self._api.ask(self._query))
        except UnansweredError as error:
            middle_s = (began_s + self._clock()) / 2
            return [PowerSample(middle_s, device, error=error.code) for device in self.devices]
        ended_s = self._clock()
        middle_s = (began_s + ended_s) / 2
        for row in list(found.values())[:1]:
            self._server.see(began_s, ended_s, next(iter(row.values()))[0])
        return [
            self._fresh(self._sample(device, found.get(labels, {}), middle_s), middle_s)
            for device, labels in self._labels.items()
        ]

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def see_time(self, times: int = 5) -> None:
        """Ask the server for its time, a few times, to know how far its clock is from ours.

        Raises:
            UnansweredError: it can't be asked.
        """
        for _ in range(times):
            began_s = self._clock()
            try:
                (series,) = self._api.ask("time()").series
                server_s = float(series.points[0][1])
            except (ValueError, LookupError):
                raise UnansweredError("bad_answer", "no time of its own") from None
            self._server.see(began_s, self._clock(), server_s)

    def _fresh(self, sample: PowerSample, middle_s: float) -> PowerSample:
        """Return the sample, or an error where it is older than a gap that can be bridged."""
        if abs(middle_s - sample.t_s) <= self._old_s:
            return sample
        return PowerSample(middle_s, sample.device, error="stale")

    def _sample(self, device: str, row: Row, middle_s: float) -> PowerSample:
        values: dict[str, float] = {}
        stamps_s: list[float] = []
        codes: list[str] = []
        for part in self._parts:
            value, stamp_s, code = _reading(row, part)
            if code is not None:
                codes.append(code)
            elif stamps_s and abs(stamp_s - stamps_s[0]) > SAME_S:
                continue  # scraped at another time: one sample has one stamp
            else:
                values[part.quantity] = value
                stamps_s.append(stamp_s)
        if not stamps_s:
            return PowerSample(middle_s, device, error=codes[0])
        sample = PowerSample(
            t_s=self._server.ours(stamps_s[0]),
            device=device,
            power_w=values.get("power"),
            energy_j=values.get("energy"),
            error=codes[0] if codes else None,
        )
        # an expression has no scrape's time: only another value shows another scrape
        known = self._parts[0].selector is not None
        return self._once(device, stamps_s[0] if known else tuple(values.values()), sample)

    def _once(self, device: str, mark: object, sample: PowerSample) -> PowerSample:
        """Return a scrape's sample as it was when it was first read."""
        last = self._last.get(device)
        if last is not None and last[0] == mark:
            return last[1]
        self._last[device] = (mark, sample)
        return sample


def _reading(row: Row, part: Part) -> tuple[float, float, str | None]:
    """Return a value in W or J, when it was scraped on the server's clock, and an error's code."""
    value, stamp = row.get(f"value_{part.quantity}"), row.get(f"stamp_{part.quantity}")
    if value is None or stamp is None:
        return 0.0, 0.0, "device_missing"
    try:
        raw, stamp_s = float(value[1]), float(stamp[1])
    except ValueError:
        return 0.0, 0.0, "bad_answer"
    code = checked(raw, part.quantity) if math.isfinite(stamp_s) else "bad_answer"
    if code is None and (raw >= _BLANK_64 or raw in _BLANKS):
        code = "not_supported"
    return raw * part.factor, stamp_s, code
