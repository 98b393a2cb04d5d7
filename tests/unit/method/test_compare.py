from typing import Any

import pytest

from tests.support.demo_run import config, demo_document, joined_document
from tokenwatt_site.documents.run import Run
from tokenwatt_site.method.compare import Delta, Side, compare, differing
from tokenwatt_site.method.compare import _half_pct as half_pct
from tokenwatt_site.method.rng import rng


def side(document: dict[str, Any] | None = None, index: int = 0) -> Side:
    run = Run.model_validate(document or demo_document())
    return Side(run, run.configs[index])


def with_config(**changes: Any) -> dict[str, Any]:
    return demo_document(configs=[config() | changes])


def delta(one: Side, two: Side, metric: str) -> Delta:
    return next(each for each in compare(one, two).deltas if each.metric == metric)


def joined(metric: str) -> Delta:
    document = joined_document()
    return delta(side(document, 0), side(document, 1), metric)


@pytest.mark.parametrize(
    "metric,difference,word",
    [
        ("goodput_tok_s", -5.7, "worse"),
        ("j_per_token", 100 * (0.83 / 0.943 - 1), "better"),
        ("tok_s_kw", 100 * (0.943 / 0.83 - 1), "better"),
        ("power_w", -17.0, "less"),
        ("ttft_p99_ms", 0.0, "within noise"),
        ("tpot_p99_ms", 0.0, "within noise"),
    ],
)
def test_differences_are_percent_of_the_baseline(metric: str, difference: float, word: str) -> None:
    found = joined(metric)
    assert found.difference == pytest.approx(difference, abs=1e-6)
    assert found.word == word
    assert found.n == (5, 5)
    assert found.half is not None
    assert (abs(found.difference or 0) <= found.half) == (word == "within noise")


def test_the_interval_of_a_ratio_by_hand() -> None:
    # parts (1/3)/100² and (1/3)/110²; 3.96 degrees of freedom, rounded down; t(3) = 3.1824
    assert half_pct(1.1, [99.0, 100.0, 101.0], [109.0, 110.0, 111.0]) == pytest.approx(
        2.7315, abs=2e-4
    )


def test_equal_repeats_leave_no_noise() -> None:
    assert half_pct(2.0, [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]) == 0.0


def test_the_interval_holds_the_truth_in_at_least_95_percent_of_trials() -> None:
    random_ = rng(7, "trials")
    held = 0
    for _ in range(2000):
        one = [random_.gauss(100, 2) for _ in range(4)]
        two = [random_.gauss(105, 5) for _ in range(3)]
        ratio = (sum(two) / 3) / (sum(one) / 4)
        half = half_pct(ratio, one, two)
        assert half is not None
        held += abs(100 * (ratio - 1.05)) <= half
    assert 0.945 <= held / 2000 <= 0.995


def test_two_repeats_are_not_enough() -> None:
    few = with_config(windows=config()["windows"][:2])
    found = delta(side(), side(few), "goodput_tok_s")
    assert (found.word, found.half, found.n) == ("not enough repeats", None, (5, 2))
    assert found.reason == "an interval needs 3 repeats a side, here are 5 and 2"
    assert found.difference == 0.0


def test_an_invalid_window_is_no_repeat() -> None:
    windows = config()["windows"]
    windows[0]["valid"] = False
    assert delta(side(), side(with_config(windows=windows)), "goodput_tok_s").n == (5, 4)


def test_a_window_without_the_figure_leaves_no_repeats() -> None:
    windows = config()["windows"]
    windows[0]["energy"] = None
    assert delta(side(), side(with_config(windows=windows)), "j_per_token").n == (5, 0)


def test_a_missing_figure_is_not_recorded() -> None:
    found = delta(side(), side(with_config(node_power_kw=None)), "power_w")
    assert (found.word, found.difference) == ("not recorded", None)
    assert found.reason == "the candidate’s document lacks it"


def test_nothing_is_a_percentage_of_nothing() -> None:
    found = delta(side(with_config(goodput_tok_s=0)), side(), "goodput_tok_s")
    assert (found.word, found.difference) == ("not comparable", None)
    assert found.reason == "the baseline's figure is 0"


def test_accuracy_is_in_points_without_an_interval_yet() -> None:
    one = side(with_config(accuracy={"score": 90.0}))
    two = side(with_config(accuracy={"score": 89.25}))
    found = delta(one, two, "accuracy_pct")
    assert (found.difference, found.half, found.word) == (-0.75, None, "no interval")


def deep(path: str, value: Any) -> dict[str, Any]:
    document = demo_document()
    keys = path.split(".")
    here = document
    for key in keys[:-1]:
        here = here[key]
    here[keys[-1]] = value
    return document


@pytest.mark.parametrize(
    "document,reason",
    [
        (deep("slo.tpot_p99_ms", 60.0), "the latency limits differ"),
        (deep("spec.workload.trace", "other"), "the workloads differ"),
        (deep("spec.workload.shared_prefix", {"tokens": 9}), "the workloads differ"),
        (deep("workload.sha256", "ab" * 32), "the workloads differ"),
        (deep("simulated", value=False), "one is simulated"),
        (deep("method_version", "2"), "the method versions differ"),
        (deep("status", "retracted"), "the candidate is retracted"),
    ],
)
def test_nothing_is_compared_over_different_promises(document: dict[str, Any], reason: str) -> None:
    found = compare(side(), side(document))
    assert found.reason == reason
    assert {(each.word, each.difference) for each in found.deltas} == {
        ("not comparable", None),
        ("not recorded", None),  # accuracy
    }


def test_another_seed_is_the_same_workload() -> None:
    assert compare(side(), side(deep("spec.workload.seed", 9))).reason == ""


def energy(**changes: Any) -> dict[str, Any]:
    return with_config(energy=config()["energy"] | changes)


@pytest.mark.parametrize(
    "document,reason",
    [
        (energy(scope="node_ac"), "power scopes differ: board and node_ac"),
        (energy(valid=False), "the candidate’s meter reading is invalid"),
        (with_config(output_tok_s=None), "one divides by all tokens, the other by goodput"),
    ],
)
def test_energy_alone_is_not_compared_over_different_meters(
    document: dict[str, Any], reason: str
) -> None:
    one, two = side(), side(document)
    words = {each.metric: (each.word, each.reason) for each in compare(one, two).deltas}
    assert words["j_per_token"] == ("not comparable", reason)
    assert words["tok_s_kw"] == ("not comparable", reason)
    assert words["goodput_tok_s"] == ("within noise", "")


def test_only_keys_that_differ() -> None:
    other = deep("spec.engine.simulator", {"profile": "d70", "overrides": {"bw": 2.5}})
    other["hardware"]["driver"] = "600"
    other["spec"]["name"] = "another name"
    rows, same = differing([side(), side(other)])
    assert {row.key: row.values for row in rows} == {
        "hardware.driver": ("", "600"),
        "spec.engine.simulator.overrides.bw": (None, "2.5"),
    }
    assert same > 40


def test_a_default_is_the_same_written_or_not() -> None:
    written = deep("spec.engine.api", "completions")
    assert differing([side(), side(written)])[0] == ()


def test_the_configurations_of_a_joined_document() -> None:
    document = joined_document()
    rows, _ = differing([side(document, 0), side(document, 1)])
    assert {row.key: row.values for row in rows} == {
        "hardware.power_limit_w": ("700", "500"),
        "spec.hardware.host": ("embedded engine", "embedded engine at 500 W"),
    }
