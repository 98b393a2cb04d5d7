import hashlib
import json
from typing import Any

import pytest

from tests.support.demo_run import config, demo_document
from tests.support.shared import shared_path
from tokenwatt_site.documents import doors
from tokenwatt_site.documents.run import Run
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.join import Source, Wishes, join


def source(name: str = "runs/base.json", **changes: Any) -> Source:
    run = Run.model_validate(demo_document(**changes))
    return Source(run, name, hashlib.sha256(name.encode()).hexdigest())


def candidate(name: str = "runs/fast.json", **changes: Any) -> Source:
    own = config("candidate", power_scale=0.9, speed=1.1)
    return source(name, **({"configs": [own], "run_id": "20261121T091407Z-abcdef"} | changes))


def deep(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the top-level key of ``document`` that holds ``path``, with one value changed."""
    keys = path.split(".")
    here = document
    for key in keys[:-1]:
        here = here[key]
    here[keys[-1]] = value
    return {keys[0]: document[keys[0]]}


def test_the_seed_alone_keeps_every_key_it_has() -> None:
    raw = shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json").read_bytes()
    seed = doors.parse_run(json.loads(raw), "seed")
    name = "runs/dsv41flash-h200x4-tp4dp1-tpot50.json"
    joined = doors.dump(join([Source(seed, name, "a" * 64)], Wishes()))
    expected = json.loads(raw)
    expected["configs"][0]["source_sha256"] = "a" * 64
    assert joined == expected


def test_a_title_is_repeated_in_the_commands() -> None:
    joined = join([source()], Wishes(title="It's mine"))
    assert joined.title == "It's mine"
    assert joined.reproduce.split("\n\n") == [
        "tokenwatt run --spec specs/sim-llama-70b-h200x4.yaml --out runs/demo.json",
        """tokenwatt report runs/base.json --title 'It'"'"'s mine'""",
    ]


def test_the_baseline_leads_whatever_the_order_and_candidates_are_numbered() -> None:
    joined = join([candidate("c1"), source("b"), candidate("c2")], Wishes())
    assert [each.key for each in joined.configs] == ["baseline", "candidate", "candidate-2"]
    hashes = [hashlib.sha256(name).hexdigest() for name in (b"b", b"c1", b"c2")]
    assert [each.source_sha256 for each in joined.configs] == hashes


def test_labels_are_left_as_they_are() -> None:
    own = config("candidate") | {"label": "mine"}
    joined = join([source(), candidate(configs=[own])], Wishes())
    assert [each.label for each in joined.configs] == [
        "Llama-3.1-70B · 4× H200 · TP4 · embedded 1.0",
        "mine",
    ]


def test_a_configuration_carries_only_what_differs() -> None:
    other = demo_document()
    changes = deep(other, "spec.engine.simulator", {"profile": "d70", "overrides": {"bw": 2}})
    joined = join([source(), candidate(**changes)], Wishes())
    base, fast = joined.configs
    assert fast.spec is not None
    assert fast.spec.engine.simulator is not None
    assert fast.spec.engine.simulator.overrides == {"bw": 2}
    assert fast.run_id == "20261121T091407Z-abcdef"
    assert (fast.hardware, fast.software, fast.model, fast.power, fast.evidence) == (None,) * 5
    assert (base.spec, base.run_id) == (None, None)


def test_differing_hardware_and_evidence_are_carried() -> None:
    hardware = demo_document()["hardware"] | {"driver": "600.1"}
    evidence = [{"path": "fast/requests.jsonl.gz", "sha256": "1" * 64, "bytes": 3}]
    fast = join([source(), candidate(hardware=hardware, evidence=evidence)], Wishes()).configs[1]
    assert fast.hardware is not None
    assert fast.hardware.driver == "600.1"
    assert fast.evidence is not None
    assert fast.evidence[0].path == "fast/requests.jsonl.gz"


def accurate(key: str, score: float) -> list[dict[str, Any]]:
    return [config(key) | {"accuracy": {"score": score, "delta_pts": None}}]


def test_accuracy_is_a_difference_to_the_baseline() -> None:
    gate = {"suite": "gsm8k", "threshold_pts": 1.0}
    joined = join(
        [
            source(accuracy=gate, configs=accurate("baseline", 90.1)),
            candidate(accuracy=gate, configs=accurate("candidate", 88.9)),
        ],
        Wishes(),
    )
    deltas = [each.accuracy and each.accuracy.delta_pts for each in joined.configs]
    assert deltas == [0.0, -1.2]


def test_accuracy_on_another_suite_is_no_difference() -> None:
    joined = join(
        [
            source(
                accuracy={"suite": "gsm8k", "threshold_pts": 1.0},
                configs=accurate("baseline", 90.1),
            ),
            candidate(
                accuracy={"suite": "mmlu", "threshold_pts": 1.0},
                configs=accurate("candidate", 88.9),
            ),
        ],
        Wishes(),
    )
    assert joined.configs[1].accuracy is not None
    assert joined.configs[1].accuracy.delta_pts is None


@pytest.mark.parametrize(
    "path,value,field",
    [
        ("slo.tpot_p99_ms", 60.0, "slo.tpot_p99_ms"),
        ("slo.ttft_p99_ms", 1000.0, "slo.ttft_p99_ms"),
        ("spec.workload.trace", "other", "spec.workload.trace"),
        ("spec.workload.shared_prefix", {"share": 0.5}, "spec.workload.shared_prefix"),
        ("workload.sha256", "ab" * 32, "workload.sha256"),
        ("spec.workload.output_tokens", {"fixed": 9}, "spec.workload.output_tokens"),
        ("simulated", False, "simulated"),
    ],
)
def test_runs_that_differ_are_refused_by_the_field(path: str, value: Any, field: str) -> None:
    with pytest.raises(UsageError, match=rf"^{field}: .*runs/base.json.*runs/fast.json"):
        join([source(), candidate(**deep(demo_document(), path, value))], Wishes())


def test_another_scope_is_refused() -> None:
    own = config("candidate")
    own["energy"]["scope"] = "node_ac"
    with pytest.raises(UsageError, match=r"^energy.scope: 'board' in .*'node_ac' in"):
        join([source(), candidate(configs=[own])], Wishes())


def test_another_seed_of_the_same_workload_is_comparable() -> None:
    changes = deep(demo_document(), "spec.workload.seed", 7)
    assert len(join([source(), candidate(**changes)], Wishes()).configs) == 2


@pytest.mark.parametrize("runs", [[candidate()], [source("a"), source("b")]])
def test_exactly_one_baseline(runs: list[Source]) -> None:
    with pytest.raises(UsageError, match="exactly one run must be the baseline"):
        join(runs, Wishes())


def test_a_joined_document_is_not_joined_again() -> None:
    two = source(configs=[config(), config("candidate")])
    with pytest.raises(UsageError, match="holds 2 configurations"):
        join([two], Wishes())


@pytest.mark.parametrize(
    "statuses,lowest",
    [
        (("published", "published"), "published"),
        (("published", "draft"), "draft"),
        (("demo", "published"), "demo"),
        (("published", "retracted"), "retracted"),
    ],
)
def test_the_status_is_the_lowest(statuses: tuple[str, str], lowest: str) -> None:
    dates = ["2026-10-01" if status == "published" else None for status in statuses]
    joined = join(
        [
            source(status=statuses[0], published=dates[0]),
            candidate(status=statuses[1], published=dates[1]),
        ],
        Wishes(),
    )
    assert joined.status == lowest
    assert joined.published == ("2026-10-01" if lowest == "published" else None)


def test_reasons_of_missing_figures_move_with_their_configuration() -> None:
    joined = join([source(), candidate()], Wishes())
    assert joined.missing is not None
    assert set(joined.missing) == {
        "/configs/0/mbu_pct",
        "/configs/0/accuracy",
        "/configs/1/mbu_pct",
        "/configs/1/accuracy",
    }


def test_a_reason_moves_only_with_a_section_that_is_the_configurations_own() -> None:
    hardware = demo_document()["hardware"] | {"driver": "600.1", "power_limit_w": None}
    why = {"code": "NO_DRIVER", "text": "the driver doesn't tell"}
    missing = {"/hardware/power_limit_w": why, "/fleet": why}
    joined = join([source(), candidate(hardware=hardware, missing=missing)], Wishes())
    assert joined.missing is not None
    assert set(joined.missing) == {
        "/configs/0/mbu_pct",
        "/configs/0/accuracy",
        "/configs/1/hardware/power_limit_w",
    }


def test_no_reasons_at_all() -> None:
    joined = join([source(missing={}), candidate(missing={})], Wishes())
    assert joined.missing is None


def test_the_band_is_the_largest_and_each_other_one_is_kept() -> None:
    joined = join([source(variance_band_pct=1.0), candidate(variance_band_pct=2.5)], Wishes())
    assert joined.variance_band_pct == 2.5
    assert [each.variance_band_pct for each in joined.configs] == [1.0, None]


def test_no_band_where_one_configuration_has_none_and_the_reason_stays() -> None:
    why = {"/variance_band_pct": {"code": "FEW_REPEATS", "text": "two repeats"}}
    joined = join(
        [source(variance_band_pct=1.0), candidate(variance_band_pct=None, missing=why)], Wishes()
    )
    assert joined.variance_band_pct is None
    assert joined.missing is not None
    assert joined.missing["/variance_band_pct"].code == "FEW_REPEATS"


def test_quick_spreads_and_what_is_not_covered_is_united() -> None:
    joined = join(
        [source(not_covered=["a", "b"]), candidate(quick=True, not_covered=["b", "c"])], Wishes()
    )
    assert joined.quick is True
    assert joined.not_covered == ["a", "b", "c"]


def test_wishes_go_first() -> None:
    wishes = Wishes(title="T", id="my-id", summary="S", fleet_cards=8)
    joined = join([source(), candidate()], wishes)
    assert (joined.title, joined.id, joined.summary) == ("T", "my-id", "S")
    assert joined.fleet is not None
    assert joined.fleet.cards == 8
