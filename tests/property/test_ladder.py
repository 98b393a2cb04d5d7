"""The ladder against servers of any mood: what must hold whatever the windows say."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.documents.spec import SpecMeasurement, SpecSweep
from tokenwatt_site.method.ladder import bounds, next_probe
from tokenwatt_site.method.probe import Done, Measured, Probe

SWEEPS = st.builds(
    SpecSweep,
    rates=st.none() | st.lists(st.floats(0.1, 50), min_size=1, max_size=5),
    start_rps=st.floats(0.1, 20),
    growth=st.floats(1.2, 4),
    max_rps=st.floats(50, 500),
    bisect_steps=st.integers(0, 4),
    backoff=st.floats(0.3, 0.95),
    max_backoffs=st.integers(0, 4),
    confirm=st.sampled_from(["backoff", "bisect"]),
    floor_rps=st.none() | st.floats(0.1, 50),
    confirm_steps=st.integers(0, 4),
)
MEASUREMENTS = st.builds(
    SpecMeasurement,
    warmup_s=st.just(10),
    window_s=st.sampled_from([5, 300]),
    search_window_s=st.just(30),
    repeats=st.integers(1, 3),
)


class Server:
    """A server that passes up to a rate, with luck, and whose windows are sometimes invalid."""

    def __init__(self, source: random.Random, luck: float, invalid: float) -> None:
        """Take the boundary from the source of its moods."""
        self.source = source
        self.limit_rps = source.uniform(0.05, 100)
        self.luck, self.invalid = luck, invalid

    def __call__(self, probe: Probe) -> Measured:
        """Measure one window."""
        right = self.source.random() >= self.luck
        passed = (probe.rate_rps <= self.limit_rps) == right
        undecided = probe.window_s * probe.rate_rps < 100
        valid = self.source.random() >= self.invalid
        return Measured(probe, passed and not undecided, valid, undecided)


SERVERS = st.builds(
    Server,
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([0.0, 0.05]),
)


def search(
    server: Server, sweep: SpecSweep, measurement: SpecMeasurement
) -> tuple[list[Measured], Done]:
    history: list[Measured] = []
    while isinstance(answer := next_probe(history, sweep, measurement), Probe):
        history.append(server(answer))
        assert len(history) < 1000
    return history, answer


@given(SERVERS, SWEEPS, MEASUREMENTS)
def test_a_reported_rate_never_failed_a_window_and_all_its_confirm_windows_passed(
    server: Server, sweep: SpecSweep, measurement: SpecMeasurement
) -> None:
    history, done = search(server, sweep, measurement)
    counted = [m for m in history if m.valid and m.probe.rate_rps == done.rate_rps]
    assert (done.rate_rps is None) == (done.word != "met")
    if done.word == "met":
        assert all(m.passed for m in counted)
        full = [m for m in counted if m.probe.phase != "search"]
        assert len(full) == measurement.repeats
        assert not done.invalid


@given(SERVERS, SWEEPS, MEASUREMENTS)
def test_rates_stay_within_the_knobs(
    server: Server, sweep: SpecSweep, measurement: SpecMeasurement
) -> None:
    history, _ = search(server, sweep, measurement)
    rates = [m.probe.rate_rps for m in history]
    if sweep.rates is not None:
        assert set(rates) <= set(sweep.rates)
    else:
        assert all(0 < rate <= sweep.max_rps for rate in rates)
        assert rates[0] == sweep.start_rps


@given(SERVERS, SWEEPS, MEASUREMENTS)
def test_replaying_the_history_asks_for_the_same_windows(
    server: Server, sweep: SpecSweep, measurement: SpecMeasurement
) -> None:
    history, done = search(server, sweep, measurement)
    for i, measured in enumerate(history):
        assert next_probe(history[:i], sweep, measurement) == measured.probe
    assert next_probe(history, sweep, measurement) == done


@given(SERVERS, SWEEPS, MEASUREMENTS)
def test_the_ends_of_the_bracket_are_in_order(
    server: Server, sweep: SpecSweep, measurement: SpecMeasurement
) -> None:
    _, done = search(server, sweep, measurement)
    ends: list[Any] = [done.rate_rps, done.lo_rps, done.hi_rps]
    known = [end for end in ends if end is not None]
    assert known == sorted(known)
    assert done.hi_rps is None or done.lo_rps is None or done.lo_rps < done.hi_rps


@given(SERVERS, SWEEPS, MEASUREMENTS)
def test_no_search_of_valid_windows_costs_more_than_the_dry_run_says(
    server: Server, sweep: SpecSweep, measurement: SpecMeasurement
) -> None:
    server.invalid = 0.0
    history, _ = search(server, sweep, measurement)
    found = bounds(sweep, measurement)
    assert len(history) <= found.windows_max
    minutes = sum(m.probe.warmup_s + m.probe.window_s for m in history) / 60
    assert minutes <= found.minutes_worst + 1e-9
