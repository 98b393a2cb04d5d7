"""The adaptive search as a pure function of the windows measured so far."""

from collections.abc import Sequence

from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.adaptive_walk import walk
from tokenwatt_site.method.probe import Done, Measured, Probe


class Adaptive:
    """The search: says what to measure next, or the answer.

    It keeps its walk between two questions only to save time: asked from scratch with the same
    history, another one gives the same answer.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.facts = SearchFacts()
        """What is known so far."""
        self._seen: list[Measured] = []
        self._walk = walk(setting, self.facts)
        self._step: Probe | Done = next(self._walk)

    def next(self, history: Sequence[Measured]) -> Probe | Done:
        """Return the window to measure after ``history``, or the answer."""
        known = len(self._seen)
        if not _begins_with(history, self._seen):
            self._begin()
            known = 0
        for measured in history[known:]:
            if isinstance(self._step, Done):
                break
            self._seen.append(measured)
            try:
                self._step = self._walk.send(measured)
            except StopIteration as end:
                self._step = end.value
        return self._step

    def _begin(self) -> None:
        self.facts = SearchFacts()
        self._seen = []
        self._walk = walk(self._setting, self.facts)
        self._step = next(self._walk)


def _begins_with(history: Sequence[Measured], seen: Sequence[Measured]) -> bool:
    return len(seen) <= len(history) and all(
        a is b or a == b for a, b in zip(seen, history, strict=False)
    )
