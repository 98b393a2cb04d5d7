"""Reads a server's Prometheus page in a thread of its own, while it is measured."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from tokenwatt_site.load.control import Control
from tokenwatt_site.method.server_metrics import Page, page_of

EVERY_S = 2.0
"""A page of 100 kB takes a millisecond to read; the server takes longer to write it."""
_JOIN_S = 12.0


class Scraper:
    """The readings of one server's page, from ``start`` to ``stop``.

    A page that can't be had is a gap; it never ends a measurement.
    """

    def __init__(
        self,
        control: Control,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """Prepare to read ``/metrics``; ``wait`` sleeps so long and returns True to stop."""
        self._control = control
        self._clock = clock
        self._pages: list[Page] = []
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._thread: threading.Thread | None = None

    def look(self) -> bool:
        """Read once; tell whether the server says anything that we know."""
        began_s = self._clock()
        text = self._control.root_text("/metrics")
        page = page_of(text, (began_s + self._clock()) / 2)
        if not (page.values or page.buckets):
            return False
        self._pages.append(page)
        return True

    def start(self) -> None:
        """Begin, in a thread that doesn't keep the program alive."""
        self._thread = threading.Thread(target=self.run, name="server-metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; nothing more is read."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def run(self) -> None:
        """Read every two seconds until told to stop."""
        while not self._wait(EVERY_S):
            self.look()

    def between(self, start_s: float, end_s: float) -> list[Page]:
        """Return the readings of a time so far, edges included."""
        taken = self._pages[:]
        first = bisect_left(taken, start_s, key=_time)
        return taken[first : bisect_right(taken, end_s, key=_time)]


def _time(page: Page) -> float:
    return page.t_s
