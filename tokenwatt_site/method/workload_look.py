"""What a workload looks like: the requests of its first window, counted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation

from tokenwatt_site.method.flow import dispersion, gap_cv
from tokenwatt_site.method.recorded import draw_schedule
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.workloads import LengthDist, Workload

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
_BIN_GAPS = 10
_SAMPLE = 8


@dataclass(frozen=True, slots=True)
class LengthLook:
    """Lengths of one kind, tokens."""

    words: str
    nominal_mean: float
    """What the distribution says."""
    drawn_mean: float
    clamp: int
    """The longest that is drawn."""
    ordered: tuple[int, ...]
    """What was drawn, ascending."""

    def quantiles(self) -> dict[str, int]:
        """Return the nearest-rank quantiles of what was drawn, by name: p1, p10, ..."""
        return {f"p{100 * q:g}": int(nearest_rank(self.ordered, q)) for q in QUANTILES}

    def histogram(self) -> list[tuple[int, int, int]]:
        """Return (from, to, requests) of bins that double, both ends included, none empty outside.

        >>> LengthLook("", 0, 0, 9, (1, 2, 3, 9)).histogram()
        [(1, 1, 1), (2, 3, 2), (4, 7, 0), (8, 15, 1)]
        """
        first, last = self.ordered[0].bit_length(), self.ordered[-1].bit_length()
        counts = [0] * (last - first + 1)
        for tokens in self.ordered:
            counts[tokens.bit_length() - first] += 1
        return [(1 << b - 1, (1 << b) - 1, n) for b, n in enumerate(counts, first)]


@dataclass(frozen=True, slots=True)
class Look:
    """A workload's first window at a rate, until so many requests came."""

    workload: Workload
    seed: int
    rate_rps: float
    schedule: Schedule
    input: LengthLook
    output: LengthLook
    gap_cv: float | None
    """Standard deviation of the gaps between arrivals over their mean; 1 for Poisson."""
    bin_s: float
    counts: tuple[int, ...]
    """Arrivals in each ``bin_s``, of 10 on average."""

    @property
    def dispersion(self) -> float | None:
        """Variance of the counts over their mean: 1 for Poisson, more for bursts."""
        return dispersion(self.schedule.arrival_s, 0.0, len(self.counts) * self.bin_s)

    @property
    def length_correlation(self) -> float | None:
        """Pearson's correlation of prompt and answer lengths; None where one doesn't vary."""
        inputs, outputs = self.schedule.input_tokens, self.schedule.output_tokens
        if len(set(inputs)) == 1 or len(set(outputs)) == 1:
            return None
        return correlation(inputs, outputs)

    @property
    def shared_pct(self) -> float:
        """Prompt tokens with which an earlier prompt begins too."""
        shared = self.schedule.shared
        total = sum(self.schedule.input_tokens)
        return 100 * sum(shared.known) / total if shared is not None else 0.0

    def sample(self) -> list[tuple[float, int, int]]:
        """Return arrival (s), prompt and answer length of the first requests."""
        columns = (self.schedule.arrival_s, self.schedule.input_tokens, self.schedule.output_tokens)
        return list(zip(*(column[:_SAMPLE] for column in columns), strict=True))


def look_at(workload: Workload, rate_rps: float, seed: int, requests: int) -> Look:
    """Draw about ``requests`` requests of a measurement's first window and count them.

    Args:
        workload: what requests look like.
        rate_rps: their mean rate; a trace with its own times keeps its own.
        seed: the spec's.
        requests: 100 or more; of a trace in its own order once round at most.
    """
    if workload.trace is not None and workload.arrivals == "kept":
        rate_rps = workload.trace.rate_rps
    if workload.trace is not None and workload.arrivals != "poisson":
        requests = max(_BIN_GAPS, min(requests, len(workload.trace)))
    bin_s = _BIN_GAPS / rate_rps
    bins = requests // _BIN_GAPS
    schedule = draw_schedule(workload, rate_rps, bins * bin_s, derive_seed(seed, "schedule", 0))
    counts = [0] * bins
    for at_s in schedule.arrival_s:
        counts[min(int(at_s / bin_s), bins - 1)] += 1
    return Look(
        workload,
        seed,
        rate_rps,
        schedule,
        _lengths(workload.input, schedule.input_tokens),
        _lengths(workload.output, schedule.output_tokens),
        gap_cv(schedule.arrival_s),
        bin_s,
        tuple(counts),
    )


def _lengths(dist: LengthDist, drawn: Sequence[int]) -> LengthLook:
    mean = math.fsum(drawn) / len(drawn)
    return LengthLook(dist.describe(), dist.mean(), mean, dist.most(), tuple(sorted(drawn)))
