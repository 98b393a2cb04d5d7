"""Linux timers as descriptors: an event loop wakes up on them to 0.1 ms, on its own timers to 1 ms.

Through the C library, because Python has them from 3.13 on only.
"""

import asyncio
import ctypes
import os
import sys
import time
import weakref
from functools import cache
from typing import Any

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_SECOND_NS = 1_000_000_000


class Alarms:
    """Waits for times of the monotonic clock. Each wait under way has a descriptor.

    >>> Alarms.available() in (True, False)
    True
    """

    def __init__(self) -> None:
        self._idle: list[int] = []
        weakref.finalize(self, _close, self._idle)

    @staticmethod
    def available() -> bool:
        """Tell whether this system has them."""
        return _library() is not None

    async def wait(self, t_s: float) -> None:
        """Return at ``t_s``, at once where it has passed.

        Raises:
            OSError: no descriptor is left.
        """
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[None] = loop.create_future()
        timer = self._idle.pop() if self._idle else _new()
        _set(timer, t_s)
        loop.add_reader(timer, _ring, loop, timer, rung)
        try:
            await rung
        finally:
            loop.remove_reader(timer)
            self._idle.append(timer)


def _ring(loop: asyncio.AbstractEventLoop, timer: int, rung: "asyncio.Future[None]") -> None:
    loop.remove_reader(timer)  # it stays readable until it is set anew
    if not rung.done():
        rung.set_result(None)


def _new() -> int:
    timer: int = _checked(
        _library().timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
    )
    return timer


def _set(timer: int, t_s: float) -> None:
    due_ns = max(1, round(t_s * _SECOND_NS))  # 0 would disarm it
    seconds, rest_ns = divmod(due_ns, _SECOND_NS)
    once = (ctypes.c_long * 4)(0, 0, seconds, rest_ns)  # struct itimerspec: interval, first
    _checked(_library().timerfd_settime(timer, _ABSOLUTE, once, None))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@cache
def _library() -> Any:
    """Return the C library where it has the calls and its seconds are as wide as a long."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_long) < 8:  # noqa: PLR2004
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timerfd_create") else None


def _close(timers: list[int]) -> None:
    for timer in timers:
        os.close(timer)
