"""What every meter is, and the clock that it stamps its readings with."""

import time
from collections.abc import Callable
from typing import Protocol

from tokenwatt_site.documents.spec import Scope
from tokenwatt_site.method.samples import PowerSample

Now = Callable[[], float]
"""The client's monotonic clock, s."""
now: Now = time.monotonic


def averaged_s(meter: object) -> float:
    """Return over how long a meter's power readings are means, s; 0 for most, which don't say."""
    return float(getattr(meter, "averaged_s", 0.0))


class Meter(Protocol):
    """One meter: a device's power and its energy counter are one meter, not two."""

    @property
    def name(self) -> str:
        """The adapter's name."""
        ...

    @property
    def source(self) -> str:
        """The meter in words, for the document."""
        ...

    @property
    def scope(self) -> Scope:
        """What the readings include."""
        ...

    @property
    def devices(self) -> tuple[str, ...]:
        """Every device that a reading must have, by UUID or name."""
        ...

    @property
    def gain_pct(self) -> float | None:
        """Bound of its systematic error, percent of the reading; None where nobody says."""
        ...

    def read(self) -> list[PowerSample]:
        """Return one sample a device, stamped at the middle of its call.

        Never raises for a device that can't be read: its sample carries the error's code.
        """
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...
