"""Each knob of the seed's sweep, as tables: what the server can do, and which windows follow."""

from collections.abc import Callable
from typing import Any

import pytest

from tokenwatt_site.documents.spec import SpecMeasurement, SpecSweep
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.ladder import bounds, check_sweep, next_probe
from tokenwatt_site.method.probe import Done, Measured, Probe

MEASUREMENT = SpecMeasurement(window_s=300, search_window_s=60, warmup_s=45, repeats=2)
Server = Callable[[Probe], Measured]


def able(limit_rps: float) -> Server:
    """Return a server that keeps the limits up to a rate."""
    return lambda probe: Measured(probe, passed=probe.rate_rps <= limit_rps, valid=True)


def moody(limit_rps: float, confirm_rps: float) -> Server:
    """Return a server whose short windows pass up to one rate and its long ones up to another."""
    limits = {"search": limit_rps, "confirm": confirm_rps, "rate": confirm_rps}
    return lambda probe: Measured(probe, probe.rate_rps <= limits[probe.phase], valid=True)


def search(server: Server, sweep: SpecSweep) -> tuple[list[Measured], Done]:
    history: list[Measured] = []
    while isinstance(answer := next_probe(history, sweep, MEASUREMENT), Probe):
        assert len(history) < 500
        history.append(server(answer))
    return history, answer


def rates(history: list[Measured], phase: str = "search") -> list[float]:
    return [round(m.probe.rate_rps, 3) for m in history if m.probe.phase == phase]


@pytest.mark.parametrize(
    "limit_rps, knobs, searched, confirmed",
    [
        (5.3, {}, [2, 4, 8, 5.657, 4.757, 5.187], 5.187),
        (5.3, {"start_rps": 3}, [3, 6, 4.243, 5.045, 5.502], 5.045),
        (5.3, {"growth": 3}, [2, 6, 3.464, 4.559, 5.23], 5.23),
        (5.3, {"max_rps": 5}, [2, 4, 5], 5),
        (5.3, {"max_rps": 2}, [2], 2),
        (5.3, {"bisect_steps": 0}, [2, 4, 8], 4),
        (5.3, {"bisect_steps": 1}, [2, 4, 8, 5.657], 4),
        (1.7, {}, [2, 1.8, 1.62, 1.708, 1.663, 1.685], 1.685),
        (1.7, {"backoff": 0.5}, [2, 1, 1.414, 1.682, 1.834], 1.682),
        (1.7, {"max_backoffs": 1}, [2, 1.8], None),
        (1.7, {"max_backoffs": 0}, [2], None),
        (0.1, {}, [2, 1.8, 1.62, 1.458, 1.312], None),
    ],
)
def test_the_search_follows_its_knobs(
    limit_rps: float, knobs: dict[str, Any], searched: list[float], confirmed: float | None
) -> None:
    sweep = SpecSweep(**({"bisect_steps": 3, "start_rps": 2.0} | knobs))
    history, done = search(able(limit_rps), sweep)
    assert rates(history)[: len(searched)] == searched
    assert done.rate_rps == (confirmed if confirmed is None else pytest.approx(confirmed, abs=1e-3))
    assert done.word == ("no_rate" if confirmed is None else "met")
    assert len(rates(history, "confirm")) == (0 if confirmed is None else 2)


@pytest.mark.parametrize(
    "holds_rps, knobs, confirms, answer",
    [
        (9, {}, [4, 4], 4),
        (3.3, {}, [4, 3.6, 3.24, 3.24], 3.24),
        (3.3, {"backoff": 0.8}, [4, 3.2, 3.2], 3.2),
        (3.3, {"max_backoffs": 1}, [4, 3.6], None),
        (3.3, {"max_backoffs": 0}, [4], None),
        (
            3.3,
            {"confirm": "bisect", "confirm_steps": 3},
            [4, 2.828, 2.828, 3.364, 3.084, 3.084],
            3.084,
        ),
        (3.3, {"confirm": "bisect", "confirm_steps": 0}, [4], None),
        (
            3.3,
            {"confirm": "bisect", "confirm_steps": 2, "floor_rps": 3},
            [4, 3.464, 3.224, 3.224],
            3.224,
        ),
        (1, {"confirm": "bisect", "confirm_steps": 2}, [4, 2.828, 2.378], None),
        # without room below the failed rate: as far down as backing off would have gone, 4 × 0.9⁴
        (3.3, {"confirm": "bisect", "confirm_steps": 1, "start_rps": 4.0}, [4, 3.24, 3.24], 3.24),
        (3.3, {"confirm": "bisect", "confirm_steps": 1, "floor_rps": 4}, [4, 3.24, 3.24], 3.24),
    ],
)
def test_a_failed_confirm_goes_down_by_its_knobs(
    holds_rps: float, knobs: dict[str, Any], confirms: list[float], answer: float | None
) -> None:
    sweep = SpecSweep(**({"start_rps": 2.0, "bisect_steps": 0} | knobs))
    history, done = search(moody(5.3, holds_rps), sweep)
    assert rates(history, "confirm") == confirms
    assert done.rate_rps == (answer if answer is None else pytest.approx(answer, abs=1e-3))


def test_all_confirm_windows_must_pass() -> None:
    def server(probe: Probe) -> Measured:
        second = probe.phase == "confirm" and probe.rate_rps == 4 and probe.index == 4
        return Measured(probe, passed=probe.rate_rps <= 5 and not second, valid=True)

    history, done = search(server, SpecSweep(start_rps=2.0, bisect_steps=0))
    assert rates(history, "confirm") == [4, 4, 3.6, 3.6]
    assert (done.rate_rps, done.lo_rps, done.hi_rps) == (3.6, 3.6, 4)


def test_listed_rates_are_measured_upwards_once_each_until_they_fail() -> None:
    history, done = search(able(4), SpecSweep(rates=[4, 2, 8.0, 4]))
    assert rates(history, "rate") == [2, 2, 4, 4, 8]
    assert (done.word, done.rate_rps, done.hi_rps) == ("met", 4.0, 8.0)


def test_a_pass_above_a_rate_that_failed_is_luck() -> None:
    def server(probe: Probe) -> Measured:
        return Measured(probe, passed=probe.rate_rps != 3, valid=True)

    history, done = search(server, SpecSweep(rates=[2, 3, 4]))
    assert rates(history, "rate") == [2, 2, 3, 4, 4]
    assert (done.rate_rps, done.lo_rps, done.hi_rps) == (2.0, 2.0, 3.0)


def test_a_listed_rate_with_too_few_requests_is_passed_over() -> None:
    def server(probe: Probe) -> Measured:
        few = probe.rate_rps < 1
        return Measured(probe, passed=not few, valid=True, undecided=few)

    history, done = search(server, SpecSweep(rates=[0.01, 4]))
    assert rates(history, "rate") == [0.01, 4, 4]
    assert (done.word, done.rate_rps, done.hi_rps) == ("met", 4.0, None)


def test_listed_rates_that_all_fail_report_none() -> None:
    _, done = search(able(1), SpecSweep(rates=[2, 3]))
    assert (done.word, done.rate_rps) == ("failed", None)


def test_a_search_that_ends_at_max_rps_says_that_the_boundary_lies_above() -> None:
    _, done = search(able(99), SpecSweep(max_rps=4))
    assert (done.rate_rps, done.hi_rps) == (4.0, None)
    assert "the boundary lies above" in done.text


def test_window_lengths_follow_the_phase_and_the_rate() -> None:
    history, _ = search(able(5.3), SpecSweep())
    seen = {(m.probe.phase, m.probe.min_requests) for m in history}
    assert seen == {("search", 100), ("confirm", 300)}
    first, last = history[0].probe, history[-1].probe
    assert (first.window_s, first.warmup_s) == (67.5, 45)
    assert last.window_s == 300
    assert [m.probe.index for m in history] == list(range(len(history)))


def test_an_invalid_window_is_measured_once_more_under_a_new_index() -> None:
    def server(probe: Probe) -> Measured:
        return Measured(probe, passed=probe.rate_rps <= 5.3, valid=probe.index not in {1, 4})

    history, done = search(server, SpecSweep())
    clean, expected = search(able(5.3), SpecSweep())
    assert [m.probe.rate_rps for m in history if m.valid] == [m.probe.rate_rps for m in clean]
    assert history[1].probe.rate_rps == history[2].probe.rate_rps
    assert done == expected


def test_a_window_that_is_invalid_twice_ends_the_search_without_a_rate() -> None:
    def server(probe: Probe) -> Measured:
        return Measured(probe, passed=True, valid=probe.phase == "search")

    history, done = search(server, SpecSweep(max_rps=4))
    assert [m.valid for m in history] == [True, True, False, False]
    assert (done.invalid, done.word, done.rate_rps, done.lo_rps) == (True, "undecided", None, 4.0)


def test_invalid_windows_say_nothing_about_the_rate() -> None:
    def server(probe: Probe) -> Measured:
        return Measured(probe, passed=False, valid=False)

    _, done = search(server, SpecSweep())
    assert (done.lo_rps, done.hi_rps) == (None, None)


def test_too_few_requests_are_no_pass_and_no_fail() -> None:
    def server(probe: Probe) -> Measured:
        return Measured(probe, passed=False, valid=True, undecided=True)

    history, done = search(server, SpecSweep(start_rps=0.01))
    assert len(history) == 1
    assert (done.word, done.rate_rps, done.hi_rps) == ("undecided", None, None)


def test_the_lower_end_lies_below_the_upper() -> None:
    """A lucky search pass above a confirm that failed isn't the highest rate that holds."""
    sweep = SpecSweep(start_rps=2.0, bisect_steps=2, backoff=0.8)
    _, done = search(moody(5.3, 3), sweep)
    assert done.rate_rps == pytest.approx(4.757 * 0.8**3, abs=1e-3)
    assert done.lo_rps == done.rate_rps


def test_a_history_longer_than_the_search_has_the_same_answer() -> None:
    history, done = search(able(5.3), SpecSweep())
    assert next_probe([*history, history[-1]], SpecSweep(), MEASUREMENT) == done


@pytest.mark.parametrize(
    "knobs, says",
    [
        ({"mode": "quick"}, "sweep.mode belongs to the adaptive search"),
        ({"max_minutes": 20}, "sweep.max_minutes belongs to the adaptive search"),
        ({"rates": []}, "sweep.rates is empty"),
        ({"rates": [1, 3000]}, "sweep.rates: 3000 is above max_rps 2000"),
        ({"start_rps": 5.0, "max_rps": 4}, "sweep.start_rps: 5 is above max_rps 4"),
        ({"floor_rps": 5.0, "max_rps": 4}, "sweep.floor_rps: 5 is above max_rps 4"),
    ],
)
def test_a_sweep_that_contradicts_itself_is_a_usage_error(knobs: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_sweep(SpecSweep(**knobs), repeats=3)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "knobs, repeats, says",
    [
        ({"growth": 1.01}, 3, "takes 695 windows from start_rps 2 to max_rps 2000; at most 100"),
        ({"start_rps": 1e-300}, 3, "at most 100 are allowed"),
        ({"max_backoffs": 100}, 100, "may take 10,204 windows; at most 500"),
        ({"confirm": "bisect", "confirm_steps": 100}, 5, "may take 519 windows"),
        ({"rates": list(range(1, 300))}, 2, "may take 598 windows"),
    ],
)
def test_a_search_that_would_take_days_is_a_usage_error(
    knobs: dict[str, Any], repeats: int, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_sweep(SpecSweep(**knobs), repeats)
    assert says in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize("knobs", [{}, {"strategy": "ladder"}, {"rates": [1, 2000]}])
def test_the_ladders_knobs_are_accepted(knobs: dict[str, Any]) -> None:
    check_sweep(SpecSweep(**knobs), repeats=3)


def test_bounds_of_listed_rates_are_exact() -> None:
    found = bounds(SpecSweep(rates=[10, 20]), MEASUREMENT, tail_s=15)
    assert (found.windows_min, found.windows_max) == (4, 4)
    assert found.minutes_best == pytest.approx(4 * 345 / 60)
    assert found.minutes_worst == pytest.approx(4 * 360 / 60)


@pytest.mark.parametrize(
    "knobs", [{}, {"confirm": "bisect", "confirm_steps": 7}, {"max_rps": 2}, {"max_backoffs": 0}]
)
@pytest.mark.parametrize("limits", [(0.1, 0.1), (1.7, 1.4), (5.3, 5.3), (5.3, 4.1), (9000, 1.9)])
def test_bounds_hold_every_search(knobs: dict[str, Any], limits: tuple[float, float]) -> None:
    sweep = SpecSweep(**knobs)
    found = bounds(sweep, MEASUREMENT)
    history, done = search(moody(*limits), sweep)
    minutes = sum(m.probe.warmup_s + m.probe.window_s for m in history) / 60
    assert len(history) <= found.windows_max
    assert minutes <= found.minutes_worst + 1e-9
    if done.word == "met":
        assert found.windows_min <= len(history)
        assert found.minutes_best <= minutes + 1e-9
