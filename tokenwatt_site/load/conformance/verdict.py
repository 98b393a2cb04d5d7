"""What a client made of a case, held against the truth."""

from dataclasses import dataclass
from typing import Literal, Self

from tokenwatt_site.load.conformance.case import Case, Truth
from tokenwatt_site.load.conformance.writer import PROMPT_TOKENS


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client reports of one request. None: it doesn't say."""

    outcome: Literal["ok", "failed"]
    reason: str | None = None
    tokens: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    source: str | None = None
    prompt_tokens: int | None = None
    answer_s: float | None = None
    coalesced: bool | None = None


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong, a phrase each."""

    facts: tuple[str, ...] = ()
    """Outcome, reason, tokens, a TPOT that nobody can know: the same however busy a machine is."""
    times: tuple[str, ...] = ()
    """Times beyond the tolerance: a busy machine's too."""

    @property
    def all(self) -> tuple[str, ...]:
        """Return both kinds."""
        return self.facts + self.times


@dataclass(frozen=True, slots=True)
class Row:
    """A case in one dialect, and what a client made of it."""

    case: Case
    api: str
    seen: Seen | None
    """None: not run."""
    faults: Faults

    @classmethod
    def of(cls, case: Case, api: str, seen: Seen | None, tolerance_s: float) -> Self:
        """Return the row with its verdict."""
        found = Faults() if seen is None else judge(case.truth, seen, tolerance_s)
        return cls(case, api, seen, found)

    @property
    def green(self) -> bool:
        """Tell whether it was run and nothing is wrong."""
        return self.seen is not None and not self.faults.all


def judge(truth: Truth, seen: Seen, tolerance_s: float) -> Faults:
    """Return what is wrong with what a client saw.

    A reason counts where the client gives one, and so do what tells the tokens, the prompt's, the
    first token of the answer, and whether most came in one read. Of a request that failed only the
    outcome and the reason count: tokens and times of a failed request are in no figure.
    """
    if seen.outcome != truth.outcome:
        if not (truth.lenient and seen.outcome == "ok"):
            return Faults((f"{seen.outcome}, is {_named(truth)}",))
    elif truth.outcome == "failed":
        wrong = seen.reason is not None and seen.reason != truth.reason
        return Faults((f"reason {seen.reason}, is {truth.reason}",) if wrong else ())
    return Faults(_facts(truth, seen), _times(truth, seen, tolerance_s))


def _facts(truth: Truth, seen: Seen) -> tuple[str, ...]:
    wrong: list[str] = []
    if seen.tokens != truth.tokens:
        wrong.append(f"tokens {seen.tokens}, are {truth.tokens}")
    if seen.source not in (None, truth.source):
        wrong.append(f"tokens by {seen.source}, are by {truth.source}")
    if seen.prompt_tokens not in (None, PROMPT_TOKENS):
        wrong.append(f"prompt tokens {seen.prompt_tokens}, are {PROMPT_TOKENS}")
    if truth.coalesced and seen.tpot_s is not None:
        wrong.append(f"TPOT {_ms(seen.tpot_s)}, is unknown: most tokens came in one read")
    return tuple(wrong)


def _times(truth: Truth, seen: Seen, tolerance_s: float) -> tuple[str, ...]:
    """Compare the times of a request that is ok; TPOT by the time of the whole answer."""
    wrong: list[str] = []
    decoded = max(1, (truth.tokens or 1) - 1)
    for name, told_s, true_s, within_s in (
        ("TTFT", seen.ttft_s, truth.ttft_s, tolerance_s),
        ("TPOT", seen.tpot_s, truth.tpot_s, tolerance_s / decoded),
    ):
        if true_s is not None and (told_s is None or abs(told_s - true_s) > within_s):
            wrong.append(f"{name} {_ms(told_s)}, is {_ms(true_s)}")
    answer_s = truth.answer_s or truth.ttft_s
    if seen.answer_s and answer_s and abs(seen.answer_s - answer_s) > tolerance_s:
        wrong.append(f"answer {_ms(seen.answer_s)}, is {_ms(answer_s)}")
    if seen.coalesced not in (None, truth.coalesced):
        wrong.append("most tokens in one read" if seen.coalesced else "tokens in several reads")
    return tuple(wrong)


def _named(truth: Truth) -> str:
    return f"failed: {truth.reason}" if truth.reason else "ok"


def _ms(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{1000 * seconds:.1f} ms"
