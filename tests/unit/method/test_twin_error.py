"""How well a twin tells what a server does."""

import math

import pytest

from tests.support.twin_server import MIX, SLO, TwinServer
from tokenwatt_site.method.probe import Measured, Probe
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.twin import Guess, Mirror, Twin, twin_of
from tokenwatt_site.method.twin_error import error_of, residual_error
from tokenwatt_site.method.twin_player import play_twin
from tokenwatt_site.method.twin_scores import Limits
from tokenwatt_site.method.twin_stream import Stream

MIRROR = Mirror(play_twin, Limits.of(SLO))


def windows(slowness: list[float], window_s: float = 130.0) -> list[Measured]:
    server = TwinServer(slowness=lambda index: slowness[index])
    probes = [
        Probe(2.5, "confirm", window_s, 5.0, 0, index, tail_s=3.0, inject=15)
        for index in range(len(slowness))
    ]
    return [server.measure(probe) for probe in probes]


def twin(seen: list[Measured]) -> Twin:
    stream = Stream(MIX, 3000, 5, play_twin, Limits.of(SLO))
    found = twin_of(seen, MIRROR, stream, None, Guess(2.7))
    assert found is not None
    return found


def test_blocks_that_depend_on_each_other_say_less() -> None:
    source = rng(1, "blocks")
    free = [source.gauss(0, 1) for _ in range(400)]
    assert residual_error([free]) == pytest.approx(1 / 20, rel=0.25)
    bound = [free[0]]
    for step in free[1:]:
        bound.append(0.6 * bound[-1] + 0.8 * step)
    assert residual_error([bound[:200], bound[200:]]) == pytest.approx(1.6 / 20, rel=0.35)


def test_seven_blocks_say_nothing() -> None:
    assert residual_error([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]) is None
    assert residual_error([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]) is not None


def test_a_twin_of_its_own_kind_moves_as_the_server_does() -> None:
    seen = windows([1.0] * 4)
    told = error_of(MIRROR, twin(seen))
    assert told.corr is not None
    assert told.corr > 0.99
    assert told.residual is not None
    assert told.residual < 0.005
    assert told.relative is not None
    few = error_of(MIRROR, twin(seen[:1]))
    assert (few.residual, few.relative, few.corr) == (None, None, None)


def test_errors_are_numbers() -> None:
    told = error_of(MIRROR, twin(windows([1.0, 1.05, 0.97])))
    assert told.relative is not None
    assert 0 < told.relative < 0.2
    assert math.isfinite(told.relative)
