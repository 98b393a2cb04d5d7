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
        before = self._points[0]
        for point in (*self._points, (t_s, energy_j)):
            if point[0] > begin_s:
                share = (begin_s - before[0]) / (point[0] - before[0])
                begin_j = before[1] + share * (point[1] - before[1])
                return (energy_j - begin_j) / (t_s - begin_s)
            before = point
        return None
