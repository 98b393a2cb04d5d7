"""Which search a spec asks for, what it may not ask, and what its document says of it."""

from typing import Any

import pytest

from tests.support.windows import spec_of
from tokenwatt_site.documents.run import Search
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.adaptive import Adaptive
from tokenwatt_site.method.adaptive_facts import ModelFacts, SearchFacts
from tokenwatt_site.method.balance import Balanced
from tokenwatt_site.method.probe import Done, Probe
from tokenwatt_site.method.replay import trace_of
from tokenwatt_site.method.search import (
    Ladder,
    bounds_of,
    check_search,
    confirm_s,
    search_of,
    setting_of,
)
from tokenwatt_site.method.search_block import search_block


def asked(sweep: dict[str, Any], **changes: Any) -> Spec:
    data = spec_of().model_dump(mode="json", exclude_unset=True)
    data.pop("measurement", None)
    return Spec.model_validate(data | changes | {"sweep": sweep})


ADAPTIVE = {"strategy": "adaptive", "start_rps": 4, "max_rps": 100}
LINES = b"".join(b'{"t_s": %d, "input_tokens": 9, "output_tokens": 5}\n' % n for n in range(3))


@pytest.mark.parametrize("sweep", [{}, {"strategy": "ladder"}])
def test_a_spec_that_names_nothing_climbs_the_ladder(sweep: dict[str, Any]) -> None:
    search = search_of(asked(sweep))
    assert isinstance(search, Ladder)
    assert search.facts is None
    step = search.next([])
    assert isinstance(step, Probe)
    assert (step.rate_rps, step.inject) == (2.0, 0)


def test_an_adaptive_search_starts_with_a_short_stationary_rung() -> None:
    search = search_of(asked(ADAPTIVE))
    assert isinstance(search, Adaptive)
    step = search.next([])
    assert isinstance(step, Probe)
    assert (step.rate_rps, step.phase, step.window_s) == (4.0, "search", 30)
    assert step.inject > 0
    assert step.tail_s is not None
    assert search.facts.est_rps is None


def test_the_engine_of_the_spec_reaches_the_twin() -> None:
    engine = {"endpoint": "http://127.0.0.1:1/v1", "max_batched_tokens": 2048}
    setting = setting_of(asked(ADAPTIVE, engine=engine, model={"name": "m", "replicas": 2}))
    assert (setting.budget_tokens, setting.replicas) == (2048, 2)
    assert setting_of(asked(ADAPTIVE)).budget_tokens == 8192


def test_a_confirm_window_of_a_recorded_trace_has_a_length_too() -> None:
    file = TraceFile("t.jsonl", LINES)
    spec = asked(ADAPTIVE, workload={"trace": "t.jsonl"})
    assert confirm_s(spec, trace_of(file)) == 200


def test_a_confirm_window_is_the_mode_s_unless_the_spec_names_its_length() -> None:
    assert confirm_s(asked({})) == 300
    assert confirm_s(asked(ADAPTIVE)) == 200
    assert confirm_s(asked(ADAPTIVE | {"mode": "strict"})) == 300
    assert confirm_s(asked(ADAPTIVE, measurement={"window_s": 240})) == 240


@pytest.mark.parametrize(
    "sweep, changes, says",
    [
        (ADAPTIVE | {"growth": 2}, {}, "sweep.growth belongs to the ladder"),
        (ADAPTIVE | {"rates": [1]}, {}, "sweep.rates belongs to the ladder"),
        (ADAPTIVE | {"bisect_steps": 3, "backoff": 0.9}, {}, "sweep.backoff belongs"),
        (ADAPTIVE, {"measurement": {"search_window_s": 60}}, "measurement.search_window_s belongs"),
        (ADAPTIVE | {"start_rps": 200}, {}, "sweep.start_rps: 200 is above max_rps 100"),
        ({"mode": "strict"}, {}, "sweep.mode belongs to the adaptive search"),
        ({"max_minutes": 20}, {}, "sweep.max_minutes belongs to the adaptive search"),
        (
            ADAPTIVE,
            {"workload": {"trace": "log.csv", "timestamps": "kept"}},
            "a trace with its own times has one rate",
        ),
    ],
)
def test_keys_of_the_other_search_are_refused_by_name(
    sweep: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_search(asked(sweep, **changes))
    assert says in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize("sweep", [{}, {"growth": 2}, ADAPTIVE, ADAPTIVE | {"mode": "quick"}])
def test_what_belongs_together_is_accepted(sweep: dict[str, Any]) -> None:
    check_search(asked(sweep))
    assert bounds_of(asked(sweep)).windows_min > 0


FACTS = SearchFacts(
    est_rps=5.6,
    error=0.011,
    interval_rps=(5.48, 5.72),
    bound_by="tpot",
    candidates=2,
    climbs=1,
    drift=False,
    kappa=1.02,
    corr=0.91,
    resid_se=0.018,
    twin="used",
    model=ModelFacts(1e-3, 1e-4, 1e-4, 0.0, 1e-5, 1e-9, 8192, None),
    balanced=[Balanced(4, 16, 7, (0.1, 0.05, 0.02, 0.01), (0.1, 0.05, 0.02, 0.01))],
)


def test_the_document_says_how_the_boundary_was_found() -> None:
    spec = asked(ADAPTIVE, measurement={"window_s": 240, "request_timeout_s": 60})
    done = Done("proven", 5.4, 5.4, 5.9, "")
    block = Search.model_validate(search_block(spec, [], done, FACTS))
    assert (block.strategy, block.mode, block.overrides) == ("adaptive", "standard", ["window_s"])
    assert (block.lo_rps, block.hi_rps, block.est_rps) == (5.4, 5.9, 5.6)
    assert block.interval_rps == [5.48, 5.72]
    assert block.error_pct == pytest.approx(1.1)
    assert block.resid_se_pct == pytest.approx(1.8)
    assert (block.twin, block.twin_reason) == ("used", None)
    assert block.model is not None
    assert block.model.max_sequences is None
    assert block.balanced is not None
    assert (block.balanced[0].drawn, block.balanced[0].taken) == (16, 7)


def test_what_isn_t_known_is_left_out() -> None:
    block = search_block(asked(ADAPTIVE), [], None, SearchFacts(stopped="its error is unknown"))
    assert block["twin_reason"] == "its error is unknown"
    assert not {"est_rps", "interval_rps", "model", "balanced", "overrides"} & block.keys()
    assert search_block(asked({}), [], None, None) == {"strategy": "ladder", "probes": 0}
