"""The balanced schedule: of 16, the nearest to the long run."""

import pytest

from tests.support.twin_server import MIX, SERVER, SLO
from tokenwatt_site.method import balance as module
from tokenwatt_site.method.balance import DRAWN, balance, distance, purpose
from tokenwatt_site.method.probe import Probe
from tokenwatt_site.method.twin import Mirror
from tokenwatt_site.method.twin_player import play_twin
from tokenwatt_site.method.twin_scores import Limits
from tokenwatt_site.method.twin_stream import Steady, Stream

LIMITS = Limits.of(SLO)
MIRROR = Mirror(play_twin, LIMITS)
PROBE = Probe(2.5, "confirm", 60.0, 5.0, 0, 3, inject=15)


def steady(rate_rps: float = 2.5) -> Steady:
    return Stream(MIX, 2000, 5, play_twin, LIMITS).steady(SERVER, rate_rps)


def test_distance_by_hand() -> None:
    assert distance([0.1, 0.0], [0.1, 0.0], 100) == 0
    assert distance([0.09, 0.01], [0.19, 0.0], 100) == pytest.approx(1.3862943611)


def test_the_nearest_of_sixteen_is_taken() -> None:
    long_run = steady()
    found = balance(PROBE, MIX, 7, MIRROR, SERVER, long_run)
    assert (found.index, found.drawn) == (3, DRAWN)
    kind = long_run.binding
    every = [
        module._shares(module._candidate(PROBE, MIX, 7, number), PROBE, MIRROR, SERVER, kind)
        for number in range(DRAWN)
    ]
    assert len({*every}) > 4
    assert found.long_run == tuple(long_run.share_over(kind, level) for level in module.LEVELS)
    assert found.shares != max(every, key=lambda s: distance(s, found.long_run, 150))
    assert found == balance(PROBE, MIX, 7, MIRROR, SERVER, long_run)


def test_another_long_run_takes_another_schedule() -> None:
    taken = {balance(PROBE, MIX, 7, MIRROR, SERVER, steady(rate)).taken for rate in (1.5, 2.5, 3.2)}
    assert len(taken) > 1
    assert purpose(7) == "balance/7"
