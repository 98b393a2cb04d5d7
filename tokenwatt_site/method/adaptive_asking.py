"""How a search asks for a window: its place in the history, one more try, and the time it has."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

from tokenwatt_site.method.probe import Done, Measured, Probe, Word
from tokenwatt_site.units import fmt

CANCEL_S = 2.0
"""Server time that a cancelled load takes to drain."""

Step = Generator[Probe, Measured, Measured]


class Ended(Exception):  # noqa: N818 - no error: it ends the search from wherever it stands
    """The search is over before it has an answer."""

    def __init__(self, word: Word, text: str, *, invalid: bool = False) -> None:
        super().__init__(text)
        self.word: Word = word
        self.text = text
        self.invalid = invalid


@dataclass(slots=True)
class Asking:
    """Asks for windows and keeps the account of all that were measured."""

    max_minutes: float | None
    history: list[Measured] = field(default_factory=list)
    spent_s: float = 0.0

    @property
    def index(self) -> int:
        """The place of the next window in the history."""
        return len(self.history)

    def window(self, probe: Probe, finish: Callable[[Probe], Probe] | None = None) -> Step:
        """Measure a window, once more under a new index if it is invalid.

        Args:
            probe: what to measure, with any index.
            finish: completes a probe that has its index.

        Raises:
            Ended: the window was invalid twice, or there is no time left for it.
        """
        for _ in range(2):
            asked = replace(probe, index=self.index)
            if finish is not None:
                asked = finish(asked)
            self._check_time(asked)
            measured = yield asked
            self.history.append(measured)
            self.spent_s += measured.look_s + CANCEL_S
            if measured.valid:
                return measured
        raise Ended(
            "undecided",
            f"the window at {rate_words(probe.rate_rps)} was invalid twice: it says nothing about"
            " the server",
            invalid=True,
        )

    def done(self, word: Word, rate_rps: float | None, text: str, *, invalid: bool = False) -> Done:
        """Return the answer, with the ends of what was measured."""
        low, high = ends(self.history)
        return Done(word, rate_rps, low, high, text, invalid=invalid)

    def _check_time(self, probe: Probe) -> None:
        if self.max_minutes is None:
            return
        needed_s = probe.warmup_s + probe.window_s + (probe.tail_s or 0.0) + CANCEL_S
        if self.spent_s + needed_s > 60 * self.max_minutes:
            raise Ended(
                "undecided",
                f"sweep.max_minutes {self.max_minutes:g} were not enough to confirm a rate",
            )


def ends(history: list[Measured]) -> tuple[float | None, float | None]:
    """Return the highest rate that passed below any that failed, and the lowest that failed."""
    counted = [m for m in history if m.valid and (m.aborted or not m.undecided)]
    high = min((m.probe.rate_rps for m in counted if not m.passed), default=None)
    passed = [m.probe.rate_rps for m in counted if m.passed]
    return max((r for r in passed if high is None or r < high), default=None), high


def rate_words(rate_rps: float) -> str:
    """Return a rate for readers."""
    return str(fmt(rate_rps, "rps"))
