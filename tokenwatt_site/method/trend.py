"""Whether a window found the server in a steady state: the requests in flight show no trend."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median, stdev

from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import Window

MOST_BLOCKS = 12
LEAST_BLOCKS = 5
STAYS = 1.5
"""A block is at least so many times as long as a request stays: its mean is nearly its own."""
NOTICED = 0.15
"""A change over the window smaller than this share of the mean is none."""
ERRORS = 5.0
"""A change under so many of its standard errors may be chance: on the calibrated step model, in
steady state near its boundary, 1 window in 40 is called unsteady."""


def stationary(traces: Sequence[RequestTrace], window: Window, now_s: float) -> bool | None:
    """Tell whether requests in flight stay where they are over the window.

    The window is cut into 5 to 12 blocks. The slope is the median of those between any two of their
    means (Theil and Sen), its error comes from their spread about that line. None where the window
    is too short for five blocks, or empty.

    Args:
        traces: every request of the load.
        window: the seconds that count.
        now_s: when the load ended; what still ran is in flight until then.
    """
    flights = [
        (t.t_send_s, now_s if t.t_end_s is None else t.t_end_s)
        for t in traces
        if t.t_send_s is not None
    ]
    inside = [(a, b) for a, b in flights if a < window.w1_s and b > window.w0_s]
    stays_s = math.fsum(b - a for a, b in inside)
    if not stays_s:
        return None
    blocks = int(window.length_s * len(inside) / (STAYS * stays_s))
    if blocks < LEAST_BLOCKS:
        return None
    return not _trend(_means(inside, window, min(MOST_BLOCKS, blocks)))


def _means(flights: Sequence[tuple[float, float]], window: Window, count: int) -> list[float]:
    """Return the mean number in flight of each block."""
    length_s = window.length_s / count
    sums = [0.0] * count
    for begin_s, end_s in flights:
        begin = max(0.0, (begin_s - window.w0_s) / length_s)
        end = min(float(count), (end_s - window.w0_s) / length_s)
        for block in range(int(begin), min(count, math.ceil(end))):
            sums[block] += min(end, block + 1.0) - max(begin, float(block))
    return sums


def _trend(means: Sequence[float]) -> bool:
    """Tell whether the blocks' means go up or down by more than chance makes them."""
    n = len(means)
    slope = median((means[j] - means[i]) / (j - i) for i, j in combinations(range(n), 2))
    spread = stdev(mean - slope * i for i, mean in enumerate(means))
    change = abs(slope) * n
    enough = NOTICED * math.fsum(means) / n
    return change > max(enough, ERRORS * spread * math.sqrt(12 / n))
