"""A server's Prometheus page becomes what a window says of it."""

import json
import math
from dataclasses import asdict

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.documents.window import ServerSaid
from tokenwatt_site.method.server_metrics import (
    Page,
    page_of,
    page_of_row,
    page_row,
    server_window,
)

TWO_ENGINES = """\
# HELP vllm:num_requests_running Requests in the batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a}b"} 3.0
vllm:num_requests_running{engine="1",model_name="a}b"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:num_preemptions_total{engine="0"} 2.0 1796058745000
vllm:num_requests_waiting NaN
vllm:prompt_tokens_total oops
vllm:time_to_first_token_seconds_bucket{le="0.1",engine="0"} 1
vllm:time_to_first_token_seconds_bucket{le="0.1",engine="1"} 2
vllm:time_to_first_token_seconds_bucket{le="+Inf",engine="0"} 5
some_other_metric 7
"""


def test_engines_behind_one_page_are_summed_and_the_fullest_memory_counts() -> None:
    page = page_of(TWO_ENGINES, 1.0)
    assert page.values == {"running": 7.0, "kv_share": 0.75, "preemptions": 2.0}
    assert page.buckets == {"ttft": {0.1: 3.0, math.inf: 5.0}}


def test_a_reading_comes_back_from_its_row() -> None:
    page = page_of(TWO_ENGINES, 101.5)
    row = page_row(page, 3, 100.0)
    assert (row["w"], row["t_us"]) == (3, 1_500_000)
    assert page_of_row(row, 100.0) == page


def test_of_two_names_for_one_thing_the_first_counts() -> None:
    page = page_of(
        """\
vllm:gpu_cache_usage_perc 0.9
vllm:kv_cache_usage_perc 0.5
vllm:time_per_output_token_seconds_bucket{le="0.1"} 500
vllm:request_time_per_output_token_seconds_bucket{le="0.1"} 5
vllm:request_time_per_output_token_seconds_bucket{le="+Inf"} 6
sglang:num_running_reqs 3
""",
        0.0,
    )
    assert page.values == {"kv_share": 0.5, "running": 3.0}
    assert page.buckets == {"tpot": {0.1: 5.0, math.inf: 6.0}}


TTFT = "vllm:time_to_first_token_seconds_bucket"


@pytest.mark.parametrize(
    "lines",
    [
        ["vllm:num_requests_running -3"],
        ["vllm:num_requests_running 1e308", "vllm:num_requests_running 1e308"],
        ["vllm:prompt_tokens_total 9007199254740992"] * 2,
        ["vllm:num_preemptions_total +Inf"],
        ["vllm:kv_cache_usage_perc 1.5", "vllm:kv_cache_usage_perc -0.5"],
        [f'{TTFT}{{le="nan"}} 1'],
        [f'{TTFT}{{le="-1"}} 1', f'{TTFT}{{le="1e308"}} 2'],
        [f'{TTFT}{{le="0.1"}} -1', f'{TTFT}{{le="0.1"}} NaN', f'{TTFT}{{le="0.1"}} 1e400'],
        [f"{TTFT} 1", f'{TTFT}{{le="x"}} 1'],
    ],
)
def test_what_can_t_be_is_passed_over(lines: list[str]) -> None:
    page = page_of("\n".join(lines), 0.0)
    assert (page.values, page.buckets) == ({}, {})


def test_nothing_on_a_page_makes_a_window_that_can_t_be_written() -> None:
    numbers = ["-1", "0", "3", "nan", "1e308", "9007199254740992", "-inf", "0x1", "1e-320"]
    names = ["vllm:num_requests_waiting", "vllm:prompt_tokens_total", "vllm:kv_cache_usage_perc"]
    names += [f'{TTFT}{{le="{le}"}}' for le in (*numbers, "+Inf")]
    pages = []
    for turn in range(len(numbers)):
        values = numbers[turn:] + numbers[:turn]
        lines = (f"{name} {value}" for name, value in zip(names, values * 2, strict=False))
        pages.append(page_of("\n".join(lines), turn))
    for page in pages:
        json.dumps(page_row(page, 0, 0.0), allow_nan=False)
    for w0_s in range(8):
        found = server_window(pages, w0_s, w0_s + 1.5)
        assert found is not None
        ServerSaid.model_validate(asdict(found))


def test_a_histogram_of_endless_bounds_is_cut() -> None:
    page = page_of("\n".join(f'{TTFT}{{le="{n}"}} 1' for n in range(9999)), 0.0)
    assert len(page.buckets["ttft"]) == 200


def readings(*waiting: float) -> list[Page]:
    return [Page(float(second), {"waiting": n}) for second, n in enumerate(waiting)]


def test_gauges_are_those_read_inside_the_window() -> None:
    found = server_window(readings(9, 1, 3, 9), 1.0, 3.0)
    assert found is not None
    assert (found.readings, found.waiting_mean, found.waiting_max) == (2, 2.0, 3)
    assert found.running_mean is None
    assert found.preemptions is None


def test_counters_are_differences_across_the_window() -> None:
    pages = [
        Page(0.0, {"preemptions": 5.0, "prompt_tokens": 100.0, "cached_tokens": 0.0}),
        Page(1.5, {"preemptions": 6.0, "prompt_tokens": 200.0, "cached_tokens": 10.0}),
        Page(3.0, {"preemptions": 8.0, "prompt_tokens": 300.0, "cached_tokens": 50.0}),
    ]
    found = server_window(pages, 1.0, 2.0)
    assert found is not None
    assert (found.preemptions, found.prompt_tokens, found.cached_pct) == (3, 200, 25.0)


def test_a_counter_that_fell_says_nothing() -> None:
    pages = [Page(float(t), {"preemptions": n}) for t, n in ((0, 5.0), (1, 6.0), (2, 0.0))]
    found = server_window(pages, 0.5, 1.5)
    assert found is not None
    assert found.preemptions is None


@pytest.mark.parametrize(
    "counts,expected",
    [
        ({0.1: 99, 0.2: 100, math.inf: 100}, [0.0, 100.0]),
        ({0.1: 98, 0.2: 100, math.inf: 100}, [100.0, 200.0]),
        ({0.1: 98, 0.2: 98, math.inf: 100}, None),
        ({0.1: 0, 0.2: 0, math.inf: 0}, None),
    ],
)
def test_a_quantile_lies_between_two_bounds_of_the_histogram(
    counts: dict[float, float], expected: list[float] | None
) -> None:
    before = Page(0.0, {}, {"ttft": dict.fromkeys(counts, 10.0)})
    after = Page(2.0, {}, {"ttft": {le: 10.0 + n for le, n in counts.items()}})
    found = server_window([before, Page(1.0), after], 0.5, 1.5)
    assert found is not None
    assert found.ttft_p99_ms == expected
    assert ServerSaid.model_validate(asdict(found)).ttft_p99_ms == expected


def test_no_reading_inside_is_no_answer() -> None:
    assert server_window(readings(1, 2), 5.0, 6.0) is None


def recorded(engine: str) -> Page:
    raw = shared_path(f"captures/{engine}/metrics-after.response.http").read_bytes()
    return page_of(raw.decode(), 0.0)


def test_the_page_of_vllm() -> None:
    page = recorded("vllm-0.32.0")
    assert page.values == {
        "running": 0.0,
        "waiting": 0.0,
        "kv_share": 0.0,
        "cached_tokens": 0.0,
        "preemptions": 0.0,
        "prompt_tokens": 8718.0,
        "output_tokens": 357.0,
    }
    assert page.buckets["ttft"][0.02] == 14.0
    assert page.buckets["tpot"][math.inf] == 22.0


def test_the_page_of_llamacpp() -> None:
    page = recorded("llamacpp-xllamacpp-2026.10.11549")
    assert page.values == {
        "running": 0.0,
        "waiting": 0.0,
        "prompt_tokens": 8826.0,
        "cached_tokens": 0.0,
        "output_tokens": 390.0,
    }


def test_the_page_of_sglang() -> None:
    page = page_of(shared_path("data/prom/sglang_metrics_page.prom").read_text(), 0.0)
    assert {"running", "waiting", "kv_share", "prompt_tokens", "output_tokens"} <= set(page.values)
    assert set(page.buckets) == {"ttft"}  # its time per output token is of gaps
