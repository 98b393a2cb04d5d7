"""The client's clock: one monotonic time for the schedule, the stamps and the windows."""

import asyncio
import time
from typing import Protocol

from tokenwatt_site.load.alarm import Alarms

_ALARM_LATE_S = 0.0002  # how late an alarm is taken to be at most: longer is no habit
_LOOP_EARLY_S = (
    0.0015  # loop timers count in whole milliseconds, and wake up late rather than early
)


class Clock(Protocol):
    """Tells the time and waits for one. Tests use one whose time jumps."""

    def now(self) -> float:
        """Return seconds from an arbitrary start; never steps back."""
        ...

    async def sleep_until(self, t_s: float) -> None:
        """Return at ``t_s`` on this clock, having let other tasks run at least once."""
        ...


class RealClock:
    """The machine's monotonic clock.

    >>> RealClock().now() <= RealClock().now()
    True
    """

    now = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._alarms = Alarms() if Alarms.available() else None
        self._late_s = 0.0001  # of late: an idle core takes that long to wake, a busy one less

    async def sleep_until(self, t_s: float) -> None:
        """Sleep until shortly before ``t_s``, then yield until it has come.

        Each yield lets the loop handle what its sockets have, so that waiting for the exact moment
        of a request delays no token's stamp. How shortly before: twice as long as alarms have been
        late, where the system has them; the loop's own timers are later.
        """
        alarm_s = t_s - 2 * self._late_s
        if self._alarms is not None and time.monotonic() < alarm_s:
            await self._alarms.wait(alarm_s)
            late_s = min(time.monotonic() - alarm_s, _ALARM_LATE_S)
            self._late_s += (late_s - self._late_s) / 16
        else:
            await asyncio.sleep(max(0.0, t_s - time.monotonic() - _LOOP_EARLY_S))
        while time.monotonic() < t_s:  # noqa: ASYNC110 - time is no event
            await asyncio.sleep(0)
