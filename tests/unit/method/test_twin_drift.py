"""Whether a server has changed its speed, and since when."""

import math
from dataclasses import replace

import pytest

from tests.support.twin_server import MIX, SERVER, SLO, TwinServer
from tokenwatt_site.method.probe import Measured, Probe, Record
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.twin import Mirror, Replay, Speed, Twin
from tokenwatt_site.method.twin_drift import Change, change_of
from tokenwatt_site.method.twin_player import play_twin
from tokenwatt_site.method.twin_scores import TPOT, Limits
from tokenwatt_site.method.twin_stream import Stream

LIMITS = Limits.of(SLO)
MIRROR = Mirror(play_twin, LIMITS)


@pytest.fixture(scope="module")
def steady() -> list[Measured]:
    """Windows of a server that does as its twin."""
    server = TwinServer()
    probes = [Probe(2.5, "confirm", 210.0, 5.0, 0, i, tail_s=3.0, inject=15) for i in range(4)]
    return [server.measure(probe) for probe in probes]


def twin(windows: list[Measured]) -> Twin:
    boundary = Stream(MIX, 500, 5, play_twin, LIMITS).boundary(SERVER, 2.7, None, rough=True)
    replays = tuple(Replay.of(measured, LIMITS) for measured in windows)
    return Twin(SERVER, Speed(1.0, settled=True), replace(boundary, kind=TPOT), replays)


def slower(
    measured: Measured, factor: float, since_s: float = 0.0, until_s: float = math.inf
) -> Measured:
    """Stretch the answers to the requests that came in that time."""

    def stretched(record: Record) -> Record:
        ours = since_s <= record.arrival_s < until_s
        if not ours or record.first_s is None or record.last_s is None:
            return record
        last_s = record.first_s + factor * (record.last_s - record.first_s)
        return replace(record, last_s=last_s)

    return replace(measured, records=tuple(map(stretched, measured.records)))


def noisy(measured: Measured, seed: int) -> Measured:
    """Let the speed waver from one half minute to the next, by 4 %."""
    source = rng(seed, "noise")
    for since_s in range(5, 215, 30):
        measured = slower(measured, 1 + source.gauss(0, 0.04), since_s, since_s + 30)
    return measured


def found(windows: list[Measured]) -> Change | None:
    return change_of(MIRROR, twin(windows))


def test_a_steady_server_has_not_changed(steady: list[Measured]) -> None:
    assert found(steady) is None
    assert found(steady[:1]) is None
    assert found([]) is None


@pytest.mark.parametrize("factor", [1.12, 0.88])
def test_a_change_between_two_windows_is_placed_there(
    steady: list[Measured], factor: float
) -> None:
    late = [slower(measured, factor) for measured in steady[2:]]
    assert found(steady[:2] + late) == Change(2, within=False)


def test_a_change_within_a_window_is_placed_there(steady: list[Measured]) -> None:
    assert found([*steady[:2], slower(steady[2], 1.15, 5 + 2 * 30)]) == Change(2, within=True)


def test_a_change_in_a_window_before_the_newest_is_seen_there(steady: list[Measured]) -> None:
    windows = [steady[0], slower(steady[1], 1.15, 5 + 5 * 30)]
    windows += [slower(measured, 1.15) for measured in steady[2:]]
    assert found(windows) == Change(1, within=True)


def test_a_small_change_or_a_brief_one_is_none(steady: list[Measured]) -> None:
    assert found([*steady[:2], *(slower(measured, 1.08) for measured in steady[2:])]) is None
    assert found([*steady[:2], slower(steady[2], 1.15, 5 + 4 * 30)]) is None


def test_noise_is_no_change(steady: list[Measured]) -> None:
    for seed in range(20):
        assert found([noisy(m, 10 * seed + i) for i, m in enumerate(steady)]) is None
