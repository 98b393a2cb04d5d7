from collections import Counter
from typing import Any

import pytest

from tokenwatt_site.documents.spec_workload import (
    EmpiricalLength,
    FixedLength,
    LognormalLength,
    SpecWorkload,
)
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.empirical import Empirical
from tokenwatt_site.method.replay import Trace, trace_of
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.workloads import WORKLOADS, Fixed, Lognormal, workload_of


def draws(dist: Fixed | Lognormal, n: int = 40_000) -> list[int]:
    source = rng(7, "lengths")
    return sorted(dist.draw(source) for _ in range(n))


def test_chat_mix_has_the_published_means() -> None:
    chat = workload_of(SpecWorkload())
    assert round(chat.mean_input()) == 1694
    assert round(chat.mean_output()) == 423


@pytest.mark.parametrize("which, median, p90", [("input", 1024, 4096), ("output", 256, 1024)])
def test_chat_mix_draws_its_median_and_p90_and_is_cut_at_eight_medians(
    which: str, median: int, p90: int
) -> None:
    dist: Lognormal = getattr(WORKLOADS["chat-mix-v1"], which)
    assert dist.sigma == pytest.approx(1.0817, abs=1e-4)
    values = draws(dist)
    assert values[len(values) // 2] == pytest.approx(median, rel=0.03)
    assert values[len(values) * 9 // 10] == pytest.approx(p90, rel=0.03)
    assert values[-1] == dist.most() == 8 * median
    assert sum(values) / len(values) == pytest.approx(dist.mean(), rel=0.02)


def test_no_request_is_empty() -> None:
    assert min(draws(Lognormal(1, 40, 100))) == 1


def test_fixed_lengths_draw_nothing() -> None:
    source = rng(1, "lengths")
    before = source.getstate()
    assert (Fixed(512).draw(source), Fixed(512).mean(), Fixed(512).most()) == (512, 512.0, 512)
    assert source.getstate() == before


def test_a_users_lengths_may_be_mixed() -> None:
    spec = SpecWorkload(
        trace=None,
        input_tokens=FixedLength(fixed=1200),
        output_tokens=LognormalLength(median=100.0, p90=250.0),
    )
    workload = workload_of(spec)
    assert workload.input == Fixed(1200)
    assert workload.output == Lognormal(100.0, 250.0, 800)
    assert workload.describe() == "custom: fixed 1,200 in, median 100 · p90 250 out"


def test_a_users_cut_is_kept() -> None:
    length = LognormalLength(median=100, p90=250, max=300)
    spec = SpecWorkload(trace=None, input_tokens=length, output_tokens=length)
    assert draws(workload_of(spec).input)[-1] == 300  # type: ignore[arg-type]


def test_chat_mix_reads_as_in_the_published_run() -> None:
    assert WORKLOADS["chat-mix-v1"].input.describe() == "median 1,024 · p90 4,096"


FIXED = {"input_tokens": FixedLength(fixed=1), "output_tokens": FixedLength(fixed=1)}


@pytest.mark.parametrize(
    "fields, says",
    [
        ({"trace": "chat-mix-v2"}, "did you mean chat-mix-v1?"),
        ({"trace": "what"}, "known workloads: chat-mix-v1"),
        ({"trace": "chat-mix-v1", **FIXED}, "set workload.trace to null"),
        (
            {
                **FIXED,
                "trace": None,
                "input_tokens": EmpiricalLength(values=[1, 2], weights=[1.0]),
            },
            "workload.input_tokens: 1 weights for 2 values",
        ),
        ({"timestamps": "kept"}, "no recorded trace is named"),
        ({"trace": "mine.csv", **FIXED}, "set workload.trace to null"),
        ({"trace": None}, "give workload.input_tokens and workload.output_tokens"),
        ({"trace": None, "input_tokens": FixedLength(fixed=1)}, "give workload.input_tokens"),
        (
            {**FIXED, "trace": None, "output_tokens": LognormalLength(median=10, p90=10)},
            "workload.output_tokens: p90 10 is not above the median 10",
        ),
    ],
)
def test_a_workload_that_means_nothing_is_a_usage_error(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        workload_of(SpecWorkload(**fields))
    assert says in str(caught.value)


OWN = b"""{"t_s": 0, "input_tokens": 10, "output_tokens": 1}
{"t_s": 1, "input_tokens": 20, "output_tokens": 2}
{"t_s": 4, "input_tokens": 30, "output_tokens": 3}
"""


def recorded(name: str = "mine.jsonl", data: bytes = OWN) -> Trace:
    trace = trace_of(TraceFile(name, data))
    assert trace is not None
    return trace


def test_the_lengths_of_a_recorded_trace_are_drawn_in_pairs() -> None:
    workload = workload_of(SpecWorkload(trace="mine.jsonl"), recorded())
    source = rng(7, "lengths")
    pairs = Counter(workload.draw(source) for _ in range(30_000))
    assert set(pairs) == {(10, 1), (20, 2), (30, 3)}
    assert min(pairs.values()) > 9_700
    assert (workload.mean_input(), workload.mean_output()) == (20, 2)
    assert workload.describe() == (
        "mine.jsonl: median 20 · p90 30, of 3 recorded requests in,"
        " median 2 · p90 3, of 3 recorded requests out"
    )


def test_a_trace_that_nobody_read_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="isn't read here"):
        workload_of(SpecWorkload(trace="azure.csv"))


def test_given_lengths_come_with_their_weights() -> None:
    length = EmpiricalLength(values=[300, 100, 200], weights=[1, 2, 1.0])
    spec = SpecWorkload(trace=None, input_tokens=length, output_tokens=FixedLength(fixed=1))
    dist = workload_of(spec).input
    counts = Counter(draws(dist))  # type: ignore[arg-type]
    assert [counts[n] / 40_000 for n in (100, 200, 300)] == pytest.approx(
        [0.5, 0.25, 0.25], abs=0.01
    )
    assert (dist.mean(), dist.most()) == (175, 300)
    assert dist.describe() == "median 200 · p90 300, of 3 given lengths"


def test_given_lengths_without_weights_are_drawn_alike() -> None:
    dist = Empirical.of([1, 2, 2, 5])
    assert [dist.quantile(q) for q in (0, 0.2, 0.3, 0.6, 0.8, 1)] == [1, 1, 2, 2, 5, 5]
    assert dist.mean() == 2.5
