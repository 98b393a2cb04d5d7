"""The load of a window follows from spec and probe alone."""

from dataclasses import replace
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.method.draw import draw, schedule_row, tail_s
from tokenwatt_site.method.probe import Probe
from tokenwatt_site.method.replay import trace_of

PROBE = Probe(5.0, "search", 20.0, 4.0, 0, 3)


def spec_of(**workload: Any) -> Spec:
    return Spec.model_validate(
        {
            "name": "s",
            "engine": {"endpoint": "http://127.0.0.1:1/v1"},
            "model": {"name": "m"},
            "workload": {
                "trace": None,
                "input_tokens": {"median": 60, "p90": 120},
                "output_tokens": {"median": 8, "p90": 16},
                "seed": 7,
            }
            | workload,
        }
    )


def test_arrivals_go_on_for_the_probe_s_tail_or_until_every_verdict() -> None:
    spec = spec_of()
    short = draw(spec, replace(PROBE, tail_s=3.0))
    assert 20 < short.arrival_s[-1] < 27
    whole = draw(spec, PROBE)
    assert 27 < whole.arrival_s[-1] < 24 + tail_s(spec)
    assert whole.arrival_s[: len(short)] == short.arrival_s
    assert schedule_row(spec, replace(PROBE, tail_s=3.0), short)["horizon_s"] == 27


def test_a_purpose_draws_another_schedule_of_the_same_window() -> None:
    spec = spec_of()
    seeds = {draw(spec, replace(PROBE, draw=f"balance/{n}")).digest() for n in range(3)}
    assert len(seeds | {draw(spec, PROBE).digest()}) == 4


def test_the_stationary_start_goes_before_the_same_arrivals() -> None:
    spec = spec_of()
    plain, started = draw(spec, PROBE), draw(spec, replace(PROBE, inject=9))
    assert started.injected == 9
    assert list(started.arrival_s[:9]) == [0.0] * 9
    assert started.arrival_s[9:] == plain.arrival_s
    assert started.output_tokens[9:] == plain.output_tokens
    assert draw(spec, replace(PROBE, inject=9)).digest() == started.digest()
    other = draw(spec, replace(PROBE, inject=9, index=4))
    assert other.output_tokens[:9] != started.output_tokens[:9]


def test_what_prompts_share_they_share_from_the_start() -> None:
    started = draw(spec_of(shared_prefix={"tokens": 20}), replace(PROBE, inject=9))
    assert started.shared is not None
    assert len(started.shared.tokens) == len(started)
    assert list(started.shared.tokens[:9]) == [min(20, n - 1) for n in started.input_tokens[:9]]


def test_recorded_blocks_stay_with_their_prompts() -> None:
    lengths = '"input_length": 600, "output_length": 5'
    rows = "".join(
        f'{{"timestamp": {1000 * t}, {lengths}, "hash_ids": [{t}, 9]}}\n' for t in range(8)
    )
    trace = trace_of(TraceFile("t.jsonl", rows.encode()))
    spec = spec_of(trace="t.jsonl", timestamps="rescaled", input_tokens=None, output_tokens=None)
    plain = draw(spec, PROBE, trace)
    started = draw(spec, replace(PROBE, inject=4), trace)
    assert plain.shared is not None
    assert started.shared is not None
    assert started.shared.blocks == ((),) * 4 + plain.shared.blocks
    assert list(started.shared.known[:4]) == [0] * 4
    assert started.shared.known[4:] == plain.shared.known
