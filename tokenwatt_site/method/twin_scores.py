"""Scores: a request's TTFT and TPOT over their limits. Over 1 is a miss."""

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenwatt_site.method.probe import Measured, Record
from tokenwatt_site.method.slo import Slo
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.twin_player import Played

TTFT, TPOT = 0, 1
"""The two kinds of score."""
QUANTILES = (0.9, 0.95, 0.975, 0.99)
"""Where a twin is compared with what was seen."""
FLOOR, CEILING = 1e-9, 1e9
"""A score is kept between these, so that it has a logarithm."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an SLO, in seconds."""

    ttft_s: float
    tpot_s: float

    @classmethod
    def of(cls, slo: Slo) -> "Limits":
        """Return the limits of a spec's SLO."""
        return cls(slo.ttft_p99_ms / 1000, slo.tpot_p99_ms / 1000)

    def seen(self, record: Record, kind: int, look_s: float) -> float:
        """Return the score of what was recorded; +inf for a request that failed.

        What is unfinished when the load ends is taken as it stands: TTFT by the time that has
        passed, TPOT by the running mean.
        """
        if record.failed:
            return math.inf
        if kind == TTFT:
            first_s = look_s if record.first_s is None else record.first_s
            return (first_s - record.arrival_s) / self.ttft_s
        if record.first_s is None or record.last_s is None or record.tokens <= 1:
            return 0.0
        return (record.last_s - record.first_s) / (record.tokens - 1) / self.tpot_s

    def played(
        self, played: Played, arrival_s: Sequence[float], kind: int, look_s: float = math.inf
    ) -> "array[float]":
        """Return the scores of all requests of a play that ended at ``look_s``."""
        if kind == TTFT:
            return array(
                "d",
                [
                    (min(first_s, look_s) - at_s) / self.ttft_s
                    for first_s, at_s in zip(played.first_s, arrival_s, strict=True)
                ],
            )
        return array(
            "d",
            [
                (last_s - first_s) / (tokens - 1) / self.tpot_s if tokens > 1 else 0.0
                for first_s, last_s, tokens in zip(*played, strict=True)
            ],
        )


def cohort(measured: Measured) -> list[int]:
    """Return the places of the requests whose latency counts, among the records of a window."""
    end_s = min(measured.w1_s, measured.look_s)
    return [
        i
        for i, record in enumerate(measured.records)
        if not record.injected and measured.w0_s <= record.arrival_s < end_s
    ]


def log_quantiles(scores: Iterable[float]) -> list[float]:
    """Return ln of the scores' quantiles at :data:`QUANTILES`."""
    ordered = sorted(scores)
    return [log_score(nearest_rank(ordered, q)) for q in QUANTILES]


def log_score(score: float) -> float:
    """Return ln(score), of one that is 0 or infinite the ends'."""
    return math.log(min(max(score, FLOOR), CEILING))


def share_over(ordered: Sequence[float], limit: float) -> float:
    """Return the share of scores, ascending, that are over a limit."""
    return (len(ordered) - bisect_right(ordered, limit)) / len(ordered)
