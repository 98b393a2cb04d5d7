"""The embedded engine's page of its accelerators, ``GET /power``."""

import http.client
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 2.0
_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class PageDevice:
    """One accelerator as the page shows it; what it leaves out is None."""

    uuid: str
    name: str
    power_w: float | None
    energy_j: float | None
    limit_w: float | None
    rated_bw_tbs: float | None
    throttled: tuple[str, ...] | None
    throttle_ns: dict[str, int]


class PowerPage:
    """Reads the page over one connection that is kept, and made anew after a failure."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        """Take the engine's base URL, with or without ``/v1``; connect on the first read."""
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=timeout_s
        )

    def read(self) -> tuple[list[PageDevice], str | None]:
        """Return the accelerators as they are now, or none and timeout, unreachable, bad_answer."""
        try:
            return self._read(), None
        except TimeoutError:
            code = "timeout"
        except OSError:
            code = "unreachable"
        except (http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError):
            code = "bad_answer"
        self.close()
        return [], code

    def _read(self) -> list[PageDevice]:
        self._connection.request("GET", "/power", headers={"Accept": "application/json"})
        answer = self._connection.getresponse()
        body = answer.read(_MOST_BYTES)
        if answer.status != http.client.OK or answer.read(1):
            raise ValueError("no page of accelerators")
        return [_device(entry) for entry in json.loads(body)["devices"]]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _device(entry: Mapping[str, Any]) -> PageDevice:
    throttled: Sequence[str] | None = entry.get("throttled")
    counted: Mapping[str, int] = entry.get("throttle_ns", {})
    return PageDevice(
        uuid=str(entry["uuid"]),
        name=str(entry.get("name", "")),
        power_w=_number(entry.get("power_w")),
        energy_j=_number(entry.get("energy_j")),
        limit_w=_number(entry.get("limit_w")),
        rated_bw_tbs=_number(entry.get("rated_bw_tbs")),
        throttled=None if throttled is None else tuple(map(str, throttled)),
        throttle_ns={str(reason): int(spent) for reason, spent in counted.items()},
    )


def _number(value: object) -> float | None:
    """Return a number that JSON can hold; NaN and infinity are none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"no number: {value!r}")
    return float(value) if math.isfinite(value) else None
