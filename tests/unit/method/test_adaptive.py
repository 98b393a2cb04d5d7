"""The adaptive search, on a server that is a twin: its branches, and that it is a pure function."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.twin_server import SERVER, SLO, TwinServer
from tokenwatt_site.documents.spec import SpecMeasurement, SpecSweep
from tokenwatt_site.method import balance
from tokenwatt_site.method.adaptive import Adaptive
from tokenwatt_site.method.adaptive_facts import SearchFacts
from tokenwatt_site.method.adaptive_model import Model
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.probe import Cut, Done, Measured, Probe

SHORT = {"window_s": 60, "warmup_s": 5}
Change = Callable[[Measured], Measured]


@pytest.fixture(autouse=True)
def _few_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three schedules do where sixteen take time."""
    monkeypatch.setattr(balance, "DRAWN", 3)


def setting(server: TwinServer, measurement: dict[str, Any] = SHORT, **sweep: Any) -> Setting:
    return Setting(
        workload=server.workload,
        slo=SLO,
        seed=server.seed,
        sweep=SpecSweep(strategy="adaptive", **{"start_rps": 1.5} | sweep),
        measurement=SpecMeasurement(**measurement),
        stream_requests=1500,
    )


def search(
    server: TwinServer,
    given: Setting | None = None,
    change: Change = lambda measured: measured,
) -> tuple[Done, list[Measured], SearchFacts]:
    """Run a search; ``change`` alters what it is told of each window."""
    adaptive = Adaptive(given or setting(server))
    history: list[Measured] = []
    while isinstance(step := adaptive.next(history), Probe):
        assert step.index == len(history)
        history.append(change(server.measure(step)))
        assert len(history) < 60
    return step, history, adaptive.facts


def rates(history: list[Measured], phase: str = "confirm") -> list[float]:
    return [m.probe.rate_rps for m in history if m.probe.phase == phase]


def test_it_confirms_a_rate_below_the_estimate() -> None:
    done, history, facts = search(TwinServer())
    assert done.word in {"met", "proven"}
    assert done.rate_rps == rates(history)[-1]
    assert rates(history)[-3:] == [done.rate_rps] * 3
    assert facts.est_rps is not None
    assert 0.85 * facts.est_rps < done.rate_rps <= 0.972 * facts.est_rps
    assert facts.twin == "used"
    assert facts.bound_by == "tpot"
    assert facts.kappa == pytest.approx(1, abs=0.05)
    assert facts.model is not None
    assert facts.candidates >= 1
    assert not facts.drift
    pooled = history[-3:]
    assert 100 * max(sum(m.miss_tpot for m in pooled), sum(m.miss_ttft for m in pooled)) <= sum(
        m.n for m in pooled
    )


def test_it_says_the_same_from_scratch_as_step_by_step() -> None:
    server = TwinServer(seed=3)
    given = setting(server)
    stepwise = Adaptive(given)
    history: list[Measured] = []
    while isinstance(step := stepwise.next(history), Probe):
        if len(history) in {2, 5, 7}:
            assert Adaptive(given).next(history) == step
        history.append(server.measure(step))
    scratch = Adaptive(given)
    assert scratch.next(history) == step
    assert scratch.facts == stepwise.facts
    assert stepwise.next(history) == step
    assert stepwise.next(history[:1]) == Adaptive(given).next(history[:1])  # another history


def test_windows_are_of_the_mode_or_as_the_spec_says() -> None:
    server = TwinServer()
    first = Adaptive(setting(server, {})).next([])
    assert isinstance(first, Probe)
    assert (first.phase, first.rate_rps, first.window_s, first.warmup_s) == ("search", 1.5, 30, 12)
    assert (first.tail_s, first.inject) == (5, 4)
    assert first.cut is not None
    assert (first.cut.hit(9, 60), first.cut.hit(8, 60), first.cut.hit(9, 91)) == (
        True,
        False,
        False,
    )
    quick = Adaptive(setting(server, {}, mode="quick")).next([])
    assert isinstance(quick, Probe)
    assert quick.window_s == 20
    knobs = setting(server, {"window_s": 70, "repeats": 4, "warmup_s": 9}, mode="strict").knobs
    assert (knobs.confirm_s, knobs.confirms, knobs.confirms_max, knobs.warm_s) == (70, 4, 6, 9)
    assert setting(server, {}).knobs.confirm_s == 200


def test_confirm_windows_have_balanced_schedules_and_a_cut() -> None:
    _, history, facts = search(TwinServer())
    confirms = [m.probe for m in history if m.probe.phase == "confirm"]
    assert [f"balance/{b.taken}" for b in facts.balanced] == [p.draw for p in confirms]
    assert [b.index for b in facts.balanced] == [p.index for p in confirms]
    for probe in confirms:
        assert probe.tail_s is None
        assert probe.cut is not None
        assert probe.inject > 5


def test_quick_is_met_after_one_window_and_never_proven() -> None:
    server = TwinServer()
    done, history, _ = search(server, setting(server, {"warmup_s": 5}, mode="quick"))
    assert done.word == "met"
    assert rates(history).count(done.rate_rps or 0.0) in {1, 2}


def test_an_invalid_window_is_measured_once_more() -> None:
    """Under its new index; what it showed is not used."""
    server = TwinServer()

    def spoil(measured: Measured) -> Measured:
        return replace(measured, valid=measured.probe.index != 1)

    done, history, _ = search(server, change=spoil)
    assert history[1].probe.rate_rps == history[2].probe.rate_rps
    assert history[2].probe.index == 2
    assert done.word in {"met", "proven"}
    assert not done.invalid


def test_the_same_window_invalid_twice_ends_it() -> None:
    def spoil(measured: Measured) -> Measured:
        return replace(measured, valid=measured.probe.index < 2)

    done, history, _ = search(TwinServer(), change=spoil)
    assert (done.word, done.rate_rps, done.invalid) == ("undecided", None, True)
    assert len(history) == 4
    assert "invalid twice" in done.text


def test_the_time_it_may_take_is_kept() -> None:
    server = TwinServer()
    done, history, facts = search(server, setting(server, max_minutes=3))
    assert done.word == "undecided"
    assert "max_minutes 3" in done.text
    assert sum(m.look_s + 2 for m in history) <= 180
    assert facts.est_rps is not None


def test_a_boundary_above_the_highest_rate() -> None:
    server = TwinServer()
    done, history, _ = search(server, setting(server, max_rps=2.0))
    assert (done.word, done.rate_rps) == ("undecided", None)
    assert "the boundary lies above" in done.text
    assert max(m.probe.rate_rps for m in history) == 2.0


def test_a_server_that_keeps_no_rate() -> None:
    server = TwinServer(slowness=lambda _: 20.0)
    done, history, _ = search(server)
    assert (done.word, done.rate_rps) == ("no_rate", None)
    assert done.hi_rps is not None
    assert all(m.probe.phase == "search" for m in history)


def test_it_comes_down_from_a_start_far_above() -> None:
    server = TwinServer()
    done, history, _ = search(server, setting(server, start_rps=15.0))
    assert history[0].aborted
    assert done.rate_rps is not None
    assert 2 < done.rate_rps < 3.2


def test_drift_restarts_with_what_is_new() -> None:
    server = TwinServer(slowness=lambda index: 1.0 if index < 5 else 1.15)
    done, history, facts = search(server, setting(server, {"window_s": 120, "warmup_s": 5}))
    assert facts.drift
    assert facts.restarts >= 1
    assert done.word == "met"
    assert done.rate_rps is not None
    assert done.rate_rps < 0.93 * rates(history)[0]


def test_a_window_at_the_knee_that_is_given_up_keeps_the_estimate_below_it() -> None:
    """As a real server's: its few answers were quick, and the next estimate was twice the rate."""
    server, quick = TwinServer(), TwinServer(params=SERVER.scaled(0.5))
    knees: list[float] = []

    def stop(measured: Measured) -> Measured:
        probe = measured.probe
        if probe.phase != "search" or probe.window_s < 60 or knees:
            return measured
        knees.append(probe.rate_rps)
        return replace(quick.measure(replace(probe, cut=Cut(over=-1, share=-1))), probe=probe)

    _, history, _ = search(server, None, stop)
    knee = next(i for i, m in enumerate(history) if m.probe.rate_rps == knees[0])
    assert history[knee].aborted
    assert all(m.probe.rate_rps < 0.97 * knees[0] for m in history[knee + 1 :])


def test_counts_decide_where_requests_say_nothing() -> None:
    """Without records there is no twin: three long windows must pass, else a lower rate."""
    server = TwinServer()

    def strip(measured: Measured) -> Measured:
        few = measured.records[:5] if measured.probe.phase == "search" else measured.records
        return replace(measured, records=few)

    done, history, facts = search(server, setting(server, {}), strip)
    assert facts.twin == "unused"
    assert facts.stopped == "too few requests to fit it"
    assert done.word in {"met", "proven"}
    assert rates(history)[-3:] == [done.rate_rps] * 3
    assert history[-1].probe.window_s == 300
    assert all(100 * max(m.miss_ttft, m.miss_tpot) <= m.n for m in history[-3:])
    steps = sorted({*rates(history)}, reverse=True)
    assert steps == pytest.approx([steps[0] * 0.95**i for i in range(len(steps))])


def test_misses_that_the_twin_can_t_explain_fail_a_candidate() -> None:
    """A pass needs counted misses; an estimate doesn't help."""
    server = TwinServer()

    def spoil(measured: Measured) -> Measured:
        confirm = measured.probe.phase == "confirm"
        return replace(measured, miss_tpot=measured.n // 50) if confirm else measured

    done, history, facts = search(server, setting(server, mode="quick"), spoil)
    assert (done.word, done.rate_rps) == ("no_rate", None)
    assert facts.candidates == 4
    assert min(rates(history)) < 0.96 * max(rates(history))


def test_a_twin_that_serves_nearly_nothing_asks_for_no_endless_start() -> None:
    """Its boundary may be near 0 after windows of an overloaded server."""
    server = TwinServer()
    model = Model(setting(server), SearchFacts())
    model.add(server.measure(Probe(2.5, "search", 60.0, 5.0, 0, 0, tail_s=5.0, inject=15)))
    model.refit(2.5)
    assert model.est_rps is not None
    assert 10 < model.in_flight(model.est_rps) < 100
    assert model.in_flight(1e9 * model.est_rps) < 500
