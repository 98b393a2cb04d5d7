"""Trials of policies on cases, one line of JSON each, appended as they end."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from benchmarks.search_policy import fast
from benchmarks.search_policy.cases import CASES, plain, shortest_first
from benchmarks.search_policy.peers import PEERS
from benchmarks.search_policy.policies import POLICIES

RESULTS = Path(__file__).parent / "results"
NICE = 10

Job = tuple[str, str, int]
"""Policy, case, seed."""


def lines(folder: Path = RESULTS) -> Iterator[dict[str, Any]]:
    """Return every trial so far: policy, case, seed and what came of it."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield {"policy": path.stem, **json.loads(line)}


def trial(job: Job) -> tuple[Job, dict[str, Any]]:
    """Run one search."""
    policy, case, seed = job
    began_s = time.process_time()
    answer = POLICIES[policy](CASES[case], seed)
    rate = None if answer.rate_rps is None else round(answer.rate_rps, 5)
    found = {"rps": rate, "min": round(answer.minutes, 2), **answer.more}
    return job, found | {"cpu_s": round(time.process_time() - began_s, 2)}


def run(jobs: Iterable[Job], processes: int, folder: Path = RESULTS) -> Iterator[Job]:
    """Run the trials that are not in the results yet; may be stopped at any time.

    Yields:
        each job when its line is written.
    """
    done = {(line["policy"], line["case"], line["seed"]) for line in lines(folder)}
    todo = [job for job in jobs if job not in done]
    folder.mkdir(exist_ok=True)
    with Pool(processes, _begin) as pool:
        for job, found in pool.imap_unordered(trial, todo):
            policy, case, seed = job
            with (folder / f"{policy}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"case": case, "seed": seed, **found}) + "\n")
            yield job


def _begin() -> None:
    os.nice(max(0, NICE - os.nice(0)))
    fast.install()


def jobs_of(policies: Sequence[str], cases: Sequence[str], seeds: Sequence[int]) -> list[Job]:
    """Return all combinations, seed by seed, so that a run that is stopped has some of each."""
    return [
        (policy, case, seed)
        for seed in seeds
        for case in cases
        for policy in policies
        if policy not in PEERS or CASES[case].serve in (plain, shortest_first)
    ]
