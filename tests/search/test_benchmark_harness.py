"""The benchmark judges windows as the product does, and its tables are those of its results."""

import math
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

from benchmarks.search_policy import peers, policies, table
from benchmarks.search_policy.cases import CASES, Case
from benchmarks.search_policy.harness import CANCEL_S, Bench
from benchmarks.search_policy.monotone import Curve, rising
from benchmarks.search_policy.peers import Outcome
from tests.support.shared import ROOT
from tokenwatt_site.method.draw import draw
from tokenwatt_site.method.probe import Cut, Probe
from tokenwatt_site.method.records import Misses, records_of
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.virtual import trace
from tokenwatt_site.method.window import Window, judge, still_open
from tokenwatt_site.watch import PATIENCE_S, open_share

pytestmark = [
    pytest.mark.no_cover,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the C model needs gcc"),
]
CASE = Case(
    "small",
    replace(CASES["d8"].shape, max_sequences=40),
    workload={
        "trace": None,
        "input_tokens": {"median": 300, "p90": 900},
        "output_tokens": {"median": 60, "p90": 200},
    },
    slo={"ttft_p99_ms": 300, "tpot_p99_ms": 14},
)
SEED = 3


@dataclass(frozen=True)
class Asked:
    rate_rps: float
    tail_s: float | None
    inject: int = 0
    cut: Cut | None = None

    def probe(self) -> Probe:
        return Probe(
            self.rate_rps, "confirm", 30.0, 5.0, 100, 1, self.tail_s, self.inject, cut=self.cut
        )


def until(traces: list[RequestTrace], now_s: float) -> list[RequestTrace]:
    """Return what a client would know of these requests at an earlier time."""
    early: list[RequestTrace] = []
    for each in traces:
        if each.t_sched_s >= now_s:
            continue
        events = each.events_s[: sum(at_s <= now_s for at_s in each.events_s)]
        done = len(events) == each.output_tokens
        early.append(
            replace(
                each,
                events_s=events,
                n_output=len(events) if done else None,
                outcome="ok" if done else "running",
                done=done,
            )
        )
    return early


def by_the_product(asked: Asked) -> tuple[float, bool, list[RequestTrace], Window]:
    """Play a window on the step model in Python; return its end, whether given up, its load."""
    spec, probe = CASE.spec(SEED), asked.probe()
    schedule = draw(spec, probe)
    model = StepModel(CASE.shape, derive_seed(SEED, "server"))
    whole = [
        replace(each, injected=each.index < schedule.injected) for each in trace(model, schedule)
    ]
    window = Window(1, "confirm", probe.rate_rps, 5.0, 35.0, 5.0, tail_s=asked.tail_s)
    misses = Misses(window, spec.slo, ignore_eos=True)
    for now_s in (15.0, 25.0, 35.0):
        if asked.cut is not None and asked.cut.hit(*misses.look(until(whole, now_s), now_s)):
            return now_s, True, until(whole, now_s), replace(window, aborted=True)
    if asked.tail_s is not None:
        return 35 + asked.tail_s, False, until(whole, 35 + asked.tail_s), window
    for late_s in range(60):
        known = until(whole, 35.0 + late_s)
        still = still_open(known, window, spec.slo, 35.0 + late_s)
        held = sum(map(window.holds, known))
        if len(still) <= (open_share(spec) * held if late_s >= PATIENCE_S else 0):
            return 35.0 + late_s, False, known, window
    raise AssertionError


@pytest.mark.parametrize(
    "asked",
    [
        Asked(12.0, None),
        Asked(19.0, None),
        Asked(15.0, 5.0, inject=20),
        Asked(19.0, 2.0),
        Asked(30.0, 5.0, cut=Cut(over=8, share=0.1)),
    ],
)
def test_a_window_of_the_benchmark_is_one_of_the_product(asked: Asked) -> None:
    look_s, aborted, traces, window = by_the_product(asked)
    stats = judge(traces, window, CASE.spec(SEED).slo, look_s)
    bench = Bench(CASE.spec(SEED), CASE.server(SEED))
    measured = bench.measure(asked.probe())
    assert (measured.look_s, measured.aborted) == (look_s, aborted)
    assert (measured.n, measured.passed) == (stats.counts.sent, stats.passed)
    assert measured.miss_ttft == stats.counts.miss_ttft
    assert measured.miss_tpot == stats.counts.miss_tpot
    assert tuple(measured.records) == records_of(traces)
    assert bench.now_s == look_s + CANCEL_S
    assert aborted is (asked.cut is not None)


class Steady:
    """A server that keeps the limits up to a rate, and a number of streams."""

    def __init__(self, limit: float) -> None:
        self.limit, self.now_s, self.case = limit, 0.0, CASES["cal"]

    def open(self, rate_rps: float, requests: int) -> Outcome:
        return self._outcome(rate_rps, requests)

    def timed(self, rate_rps: float, length_s: float) -> Outcome:
        return self._outcome(rate_rps, round(rate_rps * length_s))

    def streams(self, streams: int, *, requests: int = 1000, length_s: float = 60.0) -> Outcome:
        del requests
        return replace(self._outcome(streams, round(min(streams, 20) * length_s)), took_s=length_s)

    def _outcome(self, load: float, n: int) -> Outcome:
        ttft_s = 2.0 * load / self.limit
        return Outcome([ttft_s] * n, [0.01] * n, 60.0, [(ttft_s, 0.01)] * n)


@pytest.mark.parametrize(
    "search, found",
    [
        (lambda tool: peers.evalscope(tool, 60.0), 9.0),
        (peers.aiperf, 9.0),
        (lambda tool: peers.guidellm(tool, 60.0), 1 + 19 * 3 / 8),
        (lambda tool: peers.goodput(tool, 60.0), 9.0),
    ],
    ids=["evalscope", "aiperf", "guidellm", "goodput"],
)
def test_a_restated_search_finds_the_step_below_a_limit(search: peers.Peer, found: float) -> None:
    assert search(Steady(9.3)) == pytest.approx(found)  # type: ignore[arg-type]


def test_a_rising_curve_pools_what_falls_and_crosses_between() -> None:
    assert rising([1.0, 3.0, 2.0, 2.0, 5.0]) == pytest.approx([1, 7 / 3, 7 / 3, 7 / 3, 5])
    curve = Curve.through([1, 2, 4, 8], [-3.0, -1.0, 1.0, 1.5])
    root = curve.root(1, 8)
    assert root is not None
    assert 2 < root < 4
    assert curve.at(root) == pytest.approx(0, abs=1e-9)
    assert curve.root(1, 2) is None
    ups = [curve.at(1 + 7 * k / 50) for k in range(51)]
    assert ups == sorted(ups)


def test_the_tables_are_those_of_the_results() -> None:
    """Else run `python -m benchmarks.search_policy table`."""
    for path, text in table.texts().items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_no_answer_counts_as_none() -> None:
    lines = [
        {"policy": "ladder", "case": "cal", "seed": seed, "rps": rps, "min": 10.0 * seed}
        for seed, rps in enumerate([4.0, None, 6.0], 1)
    ]
    (row,) = table.rows(lines, {"cal": {"rps": 5.0}})
    assert (row.n, row.answered, row.broken) == (3, 2, 1)
    assert row.minutes_text == "20.0 / 30.0"
    assert row.broken_text.startswith("1/2 = 50.0 %")
    assert not math.isnan(sum(row.ratios))


def test_a_search_with_its_slow_parts_in_c_gives_the_same_answer() -> None:
    """In a process of its own: it puts them in the place of the package's."""
    program = (
        "from benchmarks.search_policy import fast, harness, policies, cases\n"
        "fast.install()\n"
        "print(policies.adaptive('quick', stream_requests=5000)(cases.CASES['d8'], 2))"
    )
    call = [sys.executable, "-c", program]
    policy = policies.adaptive("quick", stream_requests=5000)
    quick = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    assert quick.stdout.strip() == str(policy(CASES["d8"], 2))
