"""Loads of recorded arrivals: kept or stretched, and what their prompts share."""

import itertools
from array import array
from typing import Any

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.spec_workload import SpecWorkload
from tokenwatt_site.documents.tracefile import TraceFile, read_file
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.recorded import draw_schedule, with_recorded_rate
from tokenwatt_site.method.replay import Trace, trace_of
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import Schedule, poisson_schedule
from tokenwatt_site.method.workloads import workload_of

TEXT = "".join(
    f'{{"t_s": {t}, "input_tokens": {n}, "output_tokens": {n + 1}}}\n'
    for t, n in ((0, 10), (1, 20), (3, 30), (6, 40))
)


def small() -> Trace:
    trace = trace_of(TraceFile("t.jsonl", TEXT.encode()))
    assert trace is not None
    return trace


def drawn(
    timestamps: str, rate_rps: float, horizon_s: float, seed: int = 1, trace: Trace | None = None
) -> Schedule:
    spec = SpecWorkload.model_validate({"trace": "t.jsonl", "timestamps": timestamps})
    return draw_schedule(workload_of(spec, trace or small()), rate_rps, horizon_s, seed)


def test_kept_times_begin_with_the_first_request_and_go_round() -> None:
    """Round the end the gap is the mean one, so that the rate stays 3 gaps in 6 s."""
    schedule = drawn("kept", 0.5, 17.0)
    assert list(schedule.arrival_s) == [0, 1, 3, 6, 8, 9, 11, 14, 16]
    assert list(schedule.input_tokens) == [10, 20, 30, 40, 10, 20, 30, 40, 10]
    assert list(schedule.output_tokens[:2]) == [11, 21]


def test_kept_times_are_the_same_for_every_seed() -> None:
    assert drawn("kept", 0.5, 9.0, seed=1).arrival_s == drawn("kept", 0.5, 9.0, seed=2).arrival_s


def test_rescaled_time_has_the_asked_rate_and_the_recorded_order() -> None:
    schedule = drawn("rescaled", 10.0, 400.0)
    assert len(schedule) / 400 == pytest.approx(10, rel=0.01)
    order = [n // 10 for n in schedule.input_tokens]
    assert all(b == a % 4 + 1 for a, b in itertools.pairwise(order))
    gaps = {round(b - a, 6) for a, b in itertools.pairwise(schedule.arrival_s)}
    assert gaps == {0.05, 0.1, 0.15}  # 1, 2 and 3 s, a twentieth of them


def test_rescaled_windows_begin_anywhere() -> None:
    starts = {drawn("rescaled", 1.0, 9.0, seed).input_tokens[0] for seed in range(40)}
    assert starts == {10, 20, 30, 40}


def test_the_azure_hour_keeps_its_bursts_at_any_rate() -> None:
    trace = trace_of(read_file(shared_path("data/traces/AzureLLMInferenceTrace_code.csv")))
    assert trace is not None
    schedule = drawn("rescaled", 20.0, 600.0, trace=trace)
    plain = drawn("poisson", 20.0, 600.0, trace=trace)
    assert _dispersion(schedule) > 5
    assert _dispersion(plain) == pytest.approx(1, abs=0.2)
    assert drawn("kept", trace.rate_rps, 60.0, trace=trace).arrival_s == array(
        "d", (t for t in trace.at_s if t < 60)
    )


def _dispersion(schedule: Schedule) -> float:
    counts = [0] * 600
    for at_s in schedule.arrival_s:
        counts[int(at_s)] += 1
    mean = len(schedule) / 600
    return sum((c - mean) ** 2 for c in counts) / 599 / mean


def test_poisson_pairs_are_drawn_at_random() -> None:
    schedule = drawn("poisson", 10.0, 100.0)
    assert len(set(schedule.arrival_s)) == len(schedule)
    pairs = set(zip(schedule.input_tokens, schedule.output_tokens, strict=True))
    assert pairs == {(10, 11), (20, 21), (30, 31), (40, 41)}


def test_a_named_workload_draws_what_it_always_drew() -> None:
    seed = derive_seed(0, "schedule", 0)
    chat = workload_of(SpecWorkload())
    schedule = draw_schedule(chat, 5.0, 100.0, seed)
    assert schedule.digest() == poisson_schedule(chat, 5.0, 100.0, seed).digest()
    assert schedule.digest() == "f74af4ed037c748c62b43cb8702aa0c278aca92402a0f7f4e5077c4a61c054e1"


def test_a_shared_beginning_changes_the_digest_and_not_the_lengths() -> None:
    spec = SpecWorkload.model_validate({"shared_prefix": {"tokens": 100}})
    plain = draw_schedule(workload_of(SpecWorkload()), 5.0, 20.0, 3)
    schedule = draw_schedule(workload_of(spec), 5.0, 20.0, 3)
    assert schedule.input_tokens == plain.input_tokens
    assert schedule.digest() != plain.digest()
    assert schedule.shared is not None
    assert max(schedule.shared.tokens) == 100


def test_mooncakes_blocks_are_kept_where_its_order_is() -> None:
    trace = trace_of(read_file(shared_path("data/traces/mooncake_conversation_first6000.jsonl")))
    assert trace is not None
    schedule = drawn("kept", trace.rate_rps, 300.0, trace=trace)
    assert schedule.shared is not None
    assert schedule.shared.blocks == trace.blocks[: len(schedule)]
    share = sum(schedule.shared.known) / sum(schedule.input_tokens)
    assert share == pytest.approx(_known_share(trace, len(schedule)))
    assert 0.1 < share < 0.5
    assert drawn("poisson", 3.0, 100.0, trace=trace).shared is None


def test_another_round_shares_nothing_with_the_one_before() -> None:
    text = "".join(
        f'{{"timestamp": {t}, "input_length": 512, "output_length": 5, "hash_ids": [{b}]}}\n'
        for t, b in ((0, 0), (1000, 7), (2000, 0))
    )
    trace = trace_of(TraceFile("m.jsonl", text.encode()))
    schedule = drawn("kept", 1.0, 6.0, trace=trace)
    assert schedule.shared is not None
    assert schedule.shared.blocks == ((0,), (7,), (0,), (8,), (15,), (8,))
    assert list(schedule.shared.known) == [0, 0, 512, 0, 0, 512]


def _known_share(trace: Trace, n: int) -> float:
    """Count tokens of leading blocks that were seen, in sets of ids."""
    seen: set[int] = set()
    known = 0
    for ids, tokens in itertools.islice(zip(trace.blocks, trace.input_tokens, strict=True), n):
        leading = len(list(itertools.takewhile(seen.__contains__, ids)))
        known += min(tokens, 512 * leading)
        seen.update(ids)
    return known / sum(trace.input_tokens[:n])


def spec_of(**sweep: Any) -> Spec:
    return Spec.model_validate(
        {
            "name": "s",
            "engine": {"endpoint": "http://127.0.0.1/v1"},
            "model": {"name": "m"},
            "workload": {"trace": "t.jsonl", "timestamps": "kept"},
            "sweep": sweep,
        }
    )


def test_a_kept_trace_is_measured_at_its_own_rate() -> None:
    assert with_recorded_rate(spec_of(), small()).sweep.rates == [0.5]
    assert with_recorded_rate(spec_of(rates=[0.5]), small()).sweep.rates == [0.5]
    with pytest.raises(UsageError, match=r"has one rate, 0\.5 requests/s"):
        with_recorded_rate(spec_of(rates=[0.5, 1]), small())


def test_mooncakes_own_sharing_excludes_a_given_one() -> None:
    trace = trace_of(
        TraceFile(
            "m.jsonl",
            b'{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}\n'
            b'{"timestamp": 9, "input_length": 600, "output_length": 5, "hash_ids": [0, 2]}\n',
        )
    )
    fields = {"trace": "m.jsonl", "timestamps": "rescaled", "shared_prefix": {"share": 0.5}}
    with pytest.raises(UsageError, match="says itself what its prompts share"):
        workload_of(SpecWorkload.model_validate(fields), trace)
    assert workload_of(SpecWorkload.model_validate(fields | {"timestamps": "poisson"}), trace)
