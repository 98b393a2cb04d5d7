"""The twin's speed and boundary, from windows of a server that is a twin itself."""

import math

import pytest

from tests.support.twin_server import MIX, SERVER, SLO, TwinServer
from tokenwatt_site.method.probe import Measured, Probe
from tokenwatt_site.method.twin import Guess, Mirror, Replay, speed, twin_of
from tokenwatt_site.method.twin_player import TwinParams, play_twin
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits
from tokenwatt_site.method.twin_stream import Stream

LIMITS = Limits.of(SLO)
MIRROR = Mirror(play_twin, LIMITS)


def window(rate_rps: float, params: TwinParams = SERVER, index: int = 0) -> Measured:
    probe = Probe(rate_rps, "search", 120.0, 10.0, 0, index, tail_s=5.0, inject=15)
    return TwinServer(params).measure(probe)


def stream(replicas: int = 1) -> Stream:
    return Stream(MIX, 6000, 5, play_twin, LIMITS, replicas)


@pytest.mark.parametrize("kind, slack", [(TTFT, 0.03), (TPOT, 2e-3)])
@pytest.mark.parametrize("factor", [0.8, 1.15])
def test_it_finds_how_much_slower_a_server_is(kind: int, factor: float, slack: float) -> None:
    """By TTFT less well: at a moderate load it is the time of one step or two."""
    seen = [Replay.of(window(2.4, SERVER.scaled(factor), index), LIMITS) for index in range(2)]
    found = speed(MIRROR, SERVER, seen, kind)
    assert found.kappa == pytest.approx(factor, rel=slack)
    assert found.settled


def test_a_twin_of_its_own_kind_has_its_boundary() -> None:
    twin = twin_of([window(2.6), window(2.7, index=1)], MIRROR, stream(), None, Guess(2.4))
    assert twin is not None
    assert twin.speed.settled
    direct = stream().boundary(SERVER, 2.6)
    assert twin.boundary.rate_rps == pytest.approx(direct.rate_rps, rel=0.02)
    assert twin.boundary.kind == direct.kind


def test_where_the_queue_binds_ttft_sets_the_speed() -> None:
    few = TwinParams(48e-3, 4e-4, 0.0, 12e-3, 8e-5, 4e-9, max_sequences=6)
    limit = stream().boundary(few, 1.5).rate_rps
    twin = twin_of([window(limit * 0.99, few)], MIRROR, stream(), None, Guess(limit))
    assert twin is not None
    assert twin.boundary.kind == TTFT
    assert twin.boundary.rate_rps == pytest.approx(limit, rel=0.03)


def test_replicas_share_the_requests_in_turns() -> None:
    mirror = Mirror(play_twin, LIMITS, replicas=2)
    replay = Replay.of(window(2.4), LIMITS)
    both = mirror.scores(SERVER, replay, TPOT)
    arrival_s, inputs, outputs = replay.columns
    look_s = replay.measured.look_s
    for number in (0, 1):
        share = slice(number, None, 2)
        played = play_twin(SERVER, arrival_s[share], inputs[share], outputs[share], look_s)
        alone = LIMITS.played(played, arrival_s[share], TPOT, look_s)
        ours = [both[k] for k, i in enumerate(replay.cohort) if i % 2 == number]
        assert ours == [alone[i // 2] for i in replay.cohort if i % 2 == number]


def test_with_too_few_requests_only_the_speed_of_the_twin_before_moves() -> None:
    long_run = stream()
    before = twin_of([window(2.6)], MIRROR, long_run, None, Guess(2.6))
    assert before is not None
    short = Probe(2.6, "search", 8.0, 1.0, 0, 7, tail_s=0.5)
    few = TwinServer(SERVER.scaled(1.3)).measure(short)
    after = twin_of([few], MIRROR, long_run, before, Guess(2.6))
    assert after is not None
    assert after.raw == before.raw
    assert after.speed.kappa > 1.1 * before.speed.kappa
    assert twin_of([few], MIRROR, long_run, None, Guess(2.6)) is None
    assert twin_of([], MIRROR, long_run, before, Guess(2.6)) is None


def test_failed_requests_are_left_out() -> None:
    measured = window(2.4)
    records = [
        type(r)(r.arrival_s, None, None, r.input_tokens, r.output_tokens, 0, False, True, False)  # noqa: FBT003
        if i % 3 == 0
        else r
        for i, r in enumerate(measured.records)
    ]
    kept = sum(not r.failed for r in records)
    replay = Replay.of(
        Measured(measured.probe, False, True, records=records, w0_s=10.0, w1_s=130.0, look_s=135.0),  # noqa: FBT003
        LIMITS,
    )
    assert len(replay.columns[0]) == kept
    assert all(math.isfinite(score) for score in replay.seen[TPOT])
