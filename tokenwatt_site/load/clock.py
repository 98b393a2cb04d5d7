"""The client's clock: one monotonic time for the schedule, the stamps and the windows."""

import asyncio
import time
from typing import Protocol

_EARLY_S = 0.0015  # loop timers count in whole milliseconds, and wake up late rather than early


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

    def now(self) -> float:
        """Return seconds from an arbitrary start."""
        return time.monotonic()

    async def sleep_until(self, t_s: float) -> None:
        """Sleep until shortly before ``t_s``, then yield until it has come.

        Each yield lets the loop handle what its sockets have, so that waiting for the exact moment
        of a request delays no token's stamp.
        """
        await asyncio.sleep(max(0.0, t_s - time.monotonic() - _EARLY_S))
        while time.monotonic() < t_s:  # noqa: ASYNC110 - time is no event
            await asyncio.sleep(0)
