"""What another machine's clock shows more than ours, by its answers."""

from collections import deque

_RECENT = 60


class RemoteClock:
    """Another clock, by the quickest of its last answers.

    An answer was stamped somewhere between question and answer: the error is half of that time
    (Cristian, Probabilistic clock synchronization, Distributed Computing 3, 1989).
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=_RECENT)

    def see(self, began_s: float, ended_s: float, stamp_s: float) -> None:
        """Take an answer: when it was asked for and came, by ours, and its stamp."""
        self._seen.append((ended_s - began_s, stamp_s - (began_s + ended_s) / 2))

    @property
    def offset_s(self) -> float:
        """Return what it shows more than ours."""
        return min(self._seen)[1]

    @property
    def error_s(self) -> float:
        """Return how far the offset may be off."""
        return min(self._seen)[0] / 2

    def ours(self, stamp_s: float) -> float:
        """Return one of its times on our clock."""
        return stamp_s - self.offset_s
