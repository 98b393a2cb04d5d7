"""The adaptive search on servers whose boundary is known: a short form of its benchmark."""

import json
import shutil
from statistics import fmean, median
from typing import Any

import pytest

from benchmarks.search_policy.trials import jobs_of, lines, run
from tests.support.shared import ROOT

pytestmark = [
    pytest.mark.no_cover,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the benchmark's servers are in C"),
]
TRUTHS = json.loads((ROOT / "benchmarks/search_policy/truths.json").read_text(encoding="utf-8"))
SEEDS = {"cal": range(9001, 9009), "drift": range(9001, 9003), "hard": range(9001, 9003)}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Run the trials: by server, what each search reported."""
    folder = tmp_path_factory.mktemp("trials")
    jobs = [job for case, seeds in SEEDS.items() for job in jobs_of(["standard"], [case], seeds)]
    assert len(list(run(jobs, 2, folder))) == len(jobs)
    told = list(lines(folder))
    return {case: [line for line in told if line["case"] == case] for case in SEEDS}


def shares(found: dict[str, list[dict[str, Any]]], case: str) -> list[float]:
    """Return reported over true rate; every search has an answer."""
    return [line["rps"] / TRUTHS[case]["rps"] for line in found[case]]


def test_the_reported_rate_is_below_the_true_one_and_near_it(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    reported = shares(found, "cal")
    assert sum(share > 1 for share in reported) <= 1
    assert 0.92 <= fmean(reported) <= 0.98
    assert min(reported) > 0.85
    assert median(line["min"] for line in found["cal"]) <= 30
    assert {line["twin"] for line in found["cal"]} == {"used"}


def test_a_server_that_grows_slower_is_noticed(found: dict[str, list[dict[str, Any]]]) -> None:
    assert all(line["drift"] for line in found["drift"])


def test_a_server_that_grows_slower_gets_no_rate_above_the_truth(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    assert all(0.85 < share < 1.02 for share in shares(found, "drift"))


def test_a_limit_of_sequences_is_found(found: dict[str, list[dict[str, Any]]]) -> None:
    assert all(0.85 < share < 1.02 for share in shares(found, "hard"))
