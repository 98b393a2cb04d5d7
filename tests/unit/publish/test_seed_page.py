"""Every field of the seed that a reader must find on its page, and where."""

import json
from functools import cache
from typing import Any

import pytest

from tests.support.dom import Node
from tests.support.shared import shared_path
from tests.support.site import SEED, changed, entry_of, page_of, seed_entry


def seed() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shared_path(f"seed/{SEED}.json").read_bytes())
    return document


@cache
def seed_page() -> Node:
    return page_of(seed_entry())


# pointer, another value, selector, what the page says now
SEED_FIELDS = [
    ("/title", "Other on 4× H200", "h1", "DeepSeek-V4.1-Flash on 4× H200 with vLLM 0.32.0"),
    ("/title", "Other (TP8)", ".meta b", "TP4, FP8 KV cache"),
    ("/published", "2026-10-28", ".meta time", "2026-10-27"),
    ("/configs/0/node_power_kw", 2.5, '[data-figure="j_per_token"] .big', "1.161 J/token"),
    ("/configs/0/goodput_tok_s", 2100.0, '[data-figure="goodput_tok_s"] .big', "2,047 tok/s"),
    ("/variance_band_pct", 3.0, '[data-figure="goodput_tok_s"] .n', "± 35, n = 2"),
    ("/configs/0/node_power_kw", 2.5, '[data-figure="tok_s_kw"] .big', "861 tok/s/kW"),
    ("/configs/0/node_power_kw", 2.5, '[data-figure="w_per_gpu"] .big', "594 W"),
    ("/configs/0/node_power_kw", 2.5, '[data-figure="w_per_gpu"] .n', "2,377 W for four boards"),
    ("/configs/0/slo_pass_count", 1, '[data-figure="slo_pass_count"] .big', "2 /2"),
    (
        "/configs/0/throttle_counts",
        {"sw_power_cap": 96},
        '[data-figure="throttle_share_pct"] .big',
        "21.25 %",
    ),
    (
        "/configs/0/throttle_counts",
        {"sw_power_cap": 96},
        '[data-figure="throttle_share_pct"] .n',
        "software power cap, 204 of 960 device-samples",
    ),
    ("/configs/0/mbu_pct", 50.0, '[data-figure="mbu_pct"] .big', "60.9 %"),
    (
        "/power/kind",
        "node",
        '[data-figure="j_per_token"] .n',
        (
            "GPU boards · band ± 1.7 % as stated, "
            "n = 2 over the tokens within the SLO, the only ones in the document"
        ),
    ),
    ("/configs/0/tpot_p99_ms", 40.0, "#slo h2", "TPOT leaves 9 % of headroom, TTFT 81 %"),
    (
        "/power/source",
        "a meter",
        "#power .kv",
        (
            "Scope GPU boards (the document names it node_power_kw)"
            " Source GPU board power sum (NVIDIA) Sampling 1 Hz, 120 s steady state Mean power "
            "2,377 W Power limit not recorded Idle power not recorded"
        ),
    ),
    (
        "/configs/0/throttle_counts",
        {"sw_power_cap": 96},
        "#power h2",
        "Throttled for 21.25 % of the time: software power cap",
    ),
    (
        "/software/kernels",
        "image",
        "#args",
        (
            "vllm/vllm-openai:v0.32.0 --kv-cache-dtype fp8 "
            '--tokenizer-mode deepseek_v41 --engram-config {"cpu_offload":true} '
            "--gpu-memory-utilization 0.95"
        ),
    ),
    ("/fleet/cards", 128, "#fleet h2", "On 64 cards: 32,758 tok/s at 38.0 kW"),
    ("/not_covered/0", "Nothing", "#notcov li", "Whole-node power (no BMC access on this host)"),
    ("/reproduce", "run it", "#repro", None),
    ("/spec/name", "other", "#reproduce a", "lambda-deepseek-v4.1-flash-tp4-dp1.spec.yaml"),
    (
        "/summary",
        "Within p99.",
        ".lede",
        (
            "Within p99 TTFT ≤ 2 s and p99 TPOT ≤ 50 ms the node served "
            "5.09 requests/s: 2,047 output and about 8,180 input tokens per second, 90% on the "
            "GSM8K check."
        ),
    ),
]


@pytest.mark.parametrize("pointer, other, selector, expected", SEED_FIELDS)
def test_a_field_of_the_seed_stands_in_its_place_and_follows_the_document(
    pointer: str, other: Any, selector: str, expected: str | None
) -> None:
    before = seed_page().all(selector)[0].text()
    after = page_of(entry_of(changed(seed(), pointer, other))).all(selector)[0].text()
    assert before == (expected or " ".join(seed()["reproduce"].split()))
    assert after != before


KV_FIELDS = [
    ("/hardware/accelerator", "NVIDIA B200", "Accelerator", "4 × NVIDIA H200, 4.8 TB/s each"),
    ("/hardware/rated_bw_tbs_per_gpu", 8.0, "Accelerator", "4 × NVIDIA H200, 4.8 TB/s each"),
    ("/hardware/driver", "1", "Driver", "595.91.07"),
    ("/hardware/host", "else", "Host", "RunPod secure cloud pod"),
    ("/software/engine_version", "1", "Engine", "vLLM 0.32.0"),
    ("/model/shape", "dense", "Model", "DeepSeek-V4.1-Flash, MoE"),
    ("/model/quantization", "INT4", "Precision", "FP8 weights, FP8 KV cache"),
    ("/model/parallelism", "TP8", "Parallelism", "1 replica × TP4"),
    ("/workload/trace", "other", "Trace", "chat-mix-v1, seed 0"),
    ("/spec/workload/seed", 7, "Trace", "chat-mix-v1, seed 0"),
    ("/workload/input_tokens", "1", "Input tokens", "median 1,024 · p90 4,096"),
    ("/workload/output_tokens", "1", "Output tokens", "median 256 · p90 1,024"),
    ("/workload/arrival", "fixed", "Arrival", "Poisson, rate swept to SLO boundary"),
    ("/spec/sweep/bisect_steps", 5, "Sweep", "from 2.00 requests/s, × 2, 3 bisections of 60 s"),
    ("/spec/measurement/repeats", 3, "Confirm", "2 × 120 s after 45 s of warm-up"),
    ("/spec/accuracy/limit", 100, "Accuracy", "gsm8k-5shot, 50 questions, numeric"),
]


@pytest.mark.parametrize("pointer, other, name, expected", KV_FIELDS)
def test_a_setting_of_the_seed_stands_in_the_configuration(
    pointer: str, other: Any, name: str, expected: str
) -> None:
    def value(page: Node) -> str:
        rows = {r.one("th").text(): r.one("td").text() for r in page.all("#config .kv tr")}
        return rows[name]

    assert value(seed_page()) == expected
    assert value(page_of(entry_of(changed(seed(), pointer, other)))) != expected


def test_the_seed_shows_its_findings_and_their_waivers() -> None:
    listed = json.loads(shared_path("seed/findings.json").read_text(encoding="utf-8"))
    shown = [
        (li.one(".tag").text(), li.attributes["data-code"], li.one("code").text().split()[1])
        for li in seed_page().all("#checks li")
    ]
    assert shown == [(each["severity"], each["code"], each["pointer"]) for each in listed]
    waived = [li for li in seed_page().all("#checks li") if "Waived" in li.text()]
    assert len(waived) == 4


def test_the_seed_says_that_it_has_no_curves_and_is_quick() -> None:
    assert "summary figures only" in seed_page().one(".note").text()
    assert seed_page().one(".ban").text().startswith("Quick mode.")
    assert [tag.text() for tag in seed_page().all(".heads .tag")] == ["quick"]
    assert not seed_page().all("figure")


def test_the_seed_names_its_bytes_by_hash() -> None:
    rows = {r.one("th").text(): r.one("td").text() for r in seed_page().all("#prov tr")}
    assert rows["Document"] == f"sha256 {seed_entry().sha256}"
    assert rows["Specification"] == f"sha256 {seed_entry().spec_sha256}"
