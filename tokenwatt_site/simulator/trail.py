"""Energy over the last moments, for a meter that shows the mean power of them."""

from collections import deque


class Trail:
    """A counter of energy as straight lines between the ends of steps."""

    def __init__(self, span_s: float) -> None:
        """Keep what is needed to tell the mean power of the last ``span_s`` seconds."""
        self._span_s = span_s
        self._points = deque([(0.0, 0.0)])

    def add(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Add a step as (time in s, energy in J) at its start and at its end."""
        points = self._points
        points.extend((start, end))
        while len(points) > 1 and points[1][0] <= start[0] - self._span_s:
            points.popleft()

    def mean_w(self, t_s: float, energy_j: float) -> float | None:
        """Return the mean power of the span that ends at ``t_s`` with the counter at ``energy_j``.

        None before any time has passed.
        """
        begin_s = max(t_s - self._span_s, self._points[0][0])
        if begin_s >= t_s:
            return None
        points = (*self._points, (t_s, energy_j))
        after = next(k for k, point in enumerate(points) if point[0] > begin_s)
        (before_s, before_j), (after_s, after_j) = points[after - 1 : after + 1]
        share = (begin_s - before_s) / (after_s - before_s)
        begin_j = before_j + share * (after_j - before_j)
        return (energy_j - begin_j) / (t_s - begin_s)
