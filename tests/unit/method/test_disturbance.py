"""Noise, drift and pauses: their statistics over long times."""

import math
from statistics import fmean, pstdev

import pytest

from tests.support.steps import plain
from tokenwatt_site.method.disturbance import Disturbance


def log_slowness(every_s: float, n: int, seed: int = 1) -> list[float]:
    disturbance = Disturbance(plain(noise_sd=0.1, noise_tau_s=1.0), seed)
    values: list[float] = []
    for k in range(n):
        disturbance.renew(k * every_s)
        values.append(math.log(disturbance.slowness))
    return values


@pytest.mark.parametrize("every_s", [0.02, 0.5, 5.0])
def test_noise_has_its_spread_however_often_it_is_drawn(every_s: float) -> None:
    values = log_slowness(every_s, 20_000)
    correlated = max(1, 2 / every_s)  # draws in two time constants count once
    error = 0.1 / math.sqrt(20_000 / correlated)
    assert fmean(values) == pytest.approx(0, abs=4 * error)
    assert pstdev(values) == pytest.approx(0.1, abs=4 * error)


def test_noise_is_forgotten_over_its_time_constant() -> None:
    values = log_slowness(0.5, 20_000)
    for lag, expected in ((1, math.exp(-0.5)), (2, math.exp(-1)), (12, 0.0)):
        product = fmean(a * b for a, b in zip(values, values[lag:], strict=False))
        assert product / 0.01 == pytest.approx(expected, abs=0.05)


def test_a_quiet_server_is_quiet_for_ever() -> None:
    disturbance = Disturbance(plain(), 0)
    assert (disturbance.slowness, disturbance.until_s, disturbance.stall_at_s) == (
        1.0,
        math.inf,
        math.inf,
    )


def test_the_slowness_of_noise_holds_for_a_part_of_its_time_constant() -> None:
    disturbance = Disturbance(plain(noise_sd=0.1, noise_tau_s=10.0), 0)
    assert disturbance.until_s == pytest.approx(0.2)


def test_drift_comes_at_its_time_and_stays() -> None:
    disturbance = Disturbance(plain(drift_speed=0.8, drift_after_s=600.0), 0)
    assert (disturbance.slowness, disturbance.until_s) == (1.0, 600.0)
    disturbance.renew(600.0)
    assert (disturbance.slowness, disturbance.until_s) == (1.25, math.inf)


def test_pauses_come_at_their_rate_and_have_their_mean() -> None:
    disturbance = Disturbance(plain(stalls_per_s=0.5, stall_s=0.2), 2)
    pauses = [disturbance.pause_s(float(t)) for t in range(20_000)]
    assert sum(pauses) == pytest.approx(20_000 * 0.5 * 0.2, rel=0.05)
    assert sum(1 for pause in pauses if pause) == pytest.approx(
        20_000 * (1 - math.exp(-0.5)), rel=0.03
    )


def test_a_pause_in_idle_time_delays_nobody() -> None:
    disturbance = Disturbance(plain(stalls_per_s=0.5, stall_s=0.2), 2)
    disturbance.skip(10_000.0)
    assert disturbance.stall_at_s > 10_000.0
    assert disturbance.pause_s(10_000.0) == 0.0


def test_servers_of_other_seeds_differ() -> None:
    assert log_slowness(1.0, 3, seed=1) != log_slowness(1.0, 3, seed=2)
    assert log_slowness(1.0, 3, seed=1) == log_slowness(1.0, 3, seed=1)
