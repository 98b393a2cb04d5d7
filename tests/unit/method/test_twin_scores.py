"""Scores: seen and played, finished and not."""

import math
from array import array

import pytest

from tests.support.twin_server import SLO, TwinServer
from tokenwatt_site.method.probe import Probe, Record
from tokenwatt_site.method.twin_player import Played
from tokenwatt_site.method.twin_scores import (
    CEILING,
    FLOOR,
    TPOT,
    TTFT,
    Limits,
    cohort,
    log_quantiles,
    log_score,
    share_over,
)

LIMITS = Limits(2.0, 0.05)


def record(first_s: float | None, last_s: float | None, tokens: int, **more: bool) -> Record:
    facts = {"finished": tokens == 11, "failed": False, "injected": False} | more
    return Record(10.0, first_s, last_s, 100, 11, tokens, **facts)


@pytest.mark.parametrize(
    "what, ttft, tpot",
    [
        (record(11.0, 12.0, 11), 0.5, 2.0),
        (record(11.0, 11.4, 5), 0.5, 2.0),
        (record(11.0, 11.0, 1), 0.5, 0.0),
        (record(None, None, 0), 3.0, 0.0),
        (record(11.0, 12.0, 11, failed=True, finished=False), math.inf, math.inf),
    ],
)
def test_what_was_seen(what: Record, ttft: float, tpot: float) -> None:
    assert LIMITS.seen(what, TTFT, 16.0) == pytest.approx(ttft)
    assert LIMITS.seen(what, TPOT, 16.0) == pytest.approx(tpot)


def test_what_was_played_is_scored_alike() -> None:
    played = Played(
        array("d", [11.0, 11.0, math.inf]),
        array("d", [12.0, 11.0, math.inf]),
        array("q", [11, 1, 0]),
    )
    at_s = [10.0, 10.0, 10.0]
    assert list(LIMITS.played(played, at_s, TTFT, 16.0)) == pytest.approx([0.5, 0.5, 3.0])
    assert list(LIMITS.played(played, at_s, TPOT, 16.0)) == pytest.approx([2.0, 0.0, 0.0])


def test_limits_are_the_spec_s() -> None:
    assert Limits.of(SLO) == Limits(4.0, 0.2)


def test_the_cohort_leaves_out_warm_up_tail_and_injected() -> None:
    measured = TwinServer().measure(Probe(5.0, "search", 20.0, 5.0, 0, 0, tail_s=4.0, inject=9))
    places = cohort(measured)
    assert len(places) == measured.n
    assert all(5.0 <= measured.records[i].arrival_s < 25.0 for i in places)
    assert all(not measured.records[i].injected for i in places)


def test_logarithms_shares_and_quantiles() -> None:
    assert log_score(0.0) == math.log(FLOOR)
    assert log_score(math.inf) == math.log(CEILING)
    assert share_over([0.5, 1.0, 1.5, 2.0], 1.0) == 0.5
    scores = [float(i) for i in range(1, 1001)]
    assert log_quantiles(reversed(scores)) == pytest.approx(
        [math.log(q) for q in (900, 950, 975, 990)]
    )
