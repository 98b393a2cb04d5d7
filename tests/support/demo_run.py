"""A rich run document made by hand: sweep, windows, distributions, series, energy, client.

The figures are a table, so that a test knows what a page must show. No engine is involved.
"""

import copy
import json
import math
from typing import Any

from tokenwatt_site.documents.run import Run

BOUNDARY_RPS = 6.5
# requests/s -> p99 TPOT ms, p99 TTFT ms, W of the boards; in the order they were measured
CURVE = {
    1.0: (16.2, 421.0, 1033.0),
    2.0: (18.5, 455.0, 1222.0),
    4.0: (25.5, 561.0, 1646.0),
    8.0: (88.4, 6910.0, 2331.0),
    6.0: (39.4, 790.0, 2083.0),
    7.0: (54.5, 1183.0, 2250.0),
    6.5: (46.2, 905.0, 2175.0),
    6.75: (51.2, 1004.0, 2215.0),
}
REPEAT_GOODPUT = (2751.7, 2769.4, 2735.5, 2707.2, 2737.8)
_MEAN_OUTPUT = 421.0
_GPUS = 4


def tpot_ms(rate_rps: float) -> float:
    """p99 time per output token at a rate."""
    return CURVE[rate_rps][0]


def ttft_ms(rate_rps: float) -> float:
    """p99 time to first token at a rate."""
    return CURVE[rate_rps][1]


def power_w(rate_rps: float) -> float:
    """Power of the boards at a rate."""
    return CURVE[rate_rps][2]


def _energy(
    rate_rps: float, seconds: float, output_tok_s: float, scale: float = 1.0
) -> dict[str, Any]:
    joules = power_w(rate_rps) * seconds * scale
    return {
        "scope": "board",
        "method": "counter",
        "joules": joules,
        "seconds": seconds,
        "valid": True,
        "reasons": [],
        "j_per_output_token": joules / (output_tok_s * seconds),
        "samples": round(seconds * 10 * _GPUS),
        "gaps": 0,
        "check": {
            "method": "sampled",
            "joules": joules * 1.004,
            "difference_pct": 0.4,
            "verdict": "agree",
        },
    }


def _client() -> dict[str, float]:
    return {
        "lag_p99_ms": 0.21,
        "lag_max_ms": 1.4,
        "gap_cv": 1.01,
        "cpu_share": 0.06,
        "loop_stall_max_ms": 2.2,
    }


def window(
    index: int, phase: str, rate_rps: float, seconds: float, goodput: float | None = None
) -> dict[str, Any]:
    """One window record at a rate."""
    sent = round(rate_rps * seconds)
    within = tpot_ms(rate_rps) <= 50 and ttft_ms(rate_rps) <= 2000
    missed = 2 if within else round(sent * (0.03 if rate_rps < 7.5 else 0.7))
    output = rate_rps * _MEAN_OUTPUT if goodput is None else goodput * 1.003
    good = output * (1 - missed / sent) if goodput is None else goodput
    return {
        "index": index,
        "phase": phase,
        "rate_rps": rate_rps,
        "passed": within,
        "valid": True,
        "reasons": [],
        "started": f"2026-11-20T09:{14 + index:02d}:07Z",
        "window_s": seconds,
        "warmup_s": 45,
        "counts": {
            "sent": sent,
            "ok": sent,
            "failed": 0,
            "unfinished": 0,
            "reasons": {},
            "miss_ttft": 0,
            "miss_tpot": missed,
        },
        "ttft_p99_ms": ttft_ms(rate_rps) + index % 3,
        "tpot_p99_ms": tpot_ms(rate_rps) + 0.1 * (index % 3),
        "ttft_p50_ms": ttft_ms(rate_rps) / 3,
        "tpot_p50_ms": tpot_ms(rate_rps) * 0.87,
        "output_tok_s": output,
        "input_tok_s": rate_rps * 1607,
        "goodput_tok_s": good,
        "goodput_rps": rate_rps * (1 - missed / sent),
        "slo_attainment_pct": 100 * (1 - missed / sent),
        "mean_concurrency": 17 * rate_rps,
        "energy": _energy(rate_rps, seconds, output, 1 + 0.002 * (index % 3)),
        "client": _client(),
        "throttle_counts": {},
    }


def _dist(p50: float, p90: float, p99: float, n: int) -> dict[str, Any]:
    spread = math.log(p99 / p50) / 2.326
    cdf = [
        [
            round(p50 * math.exp(spread * z / 10), 3),
            round(50 * (1 + math.erf(z / 10 / math.sqrt(2))), 3),
        ]
        for z in range(-26, 29)
    ]
    return {
        "p50": p50,
        "p90": p90,
        "p95": (p90 * p99) ** 0.5,
        "p99": p99,
        "mean": p50 * 1.1,
        "n": n,
        "interval": [p99 * 0.96, p99 * 1.04],
        "cdf": cdf,
    }


def _series() -> dict[str, Any]:
    times = [round(-45 + 3 * i, 1) for i in range(120)]
    waves = [math.sin(i / 2.3) * 0.4 + math.sin(i / 7.1) * 0.6 for i in range(120)]
    watts = [
        power_w(BOUNDARY_RPS) * (1 + 0.012 * w) * min(1.0, 0.8 + (t + 45) / 60)
        for t, w in zip(times, waves, strict=True)
    ]
    return {
        "t_s": times,
        "power_w": [None if i == 50 else round(w, 1) for i, w in enumerate(watts)],
        "in_flight": [
            round(110 * min(1.0, 0.5 + (t + 45) / 50) + 6 * w)
            for t, w in zip(times, waves, strict=True)
        ],
        "window_s": 300,
        "index": 10,
    }


def config(
    key: str = "baseline", *, power_scale: float = 1.0, speed: float = 1.0
) -> dict[str, Any]:
    """One rich configuration; a candidate can differ in power and speed."""
    goodput = [g * speed for g in REPEAT_GOODPUT]
    windows = [window(8 + i, "confirm", BOUNDARY_RPS, 300, g) for i, g in enumerate(goodput)]
    sweep = [window(i, "search", rate, 100) for i, rate in enumerate(CURVE)]
    for each in [*windows, *sweep]:
        energy = each["energy"]
        energy["joules"] *= power_scale
        energy["j_per_output_token"] *= power_scale
    mean_good = sum(goodput) / len(goodput)
    energy = windows[0]["energy"] | {
        "joules": sum(w["energy"]["joules"] for w in windows),
        "seconds": 1500,
        "samples": 60_000,
    }
    watts = energy["joules"] / 1500
    energy["j_per_output_token"] = watts / (mean_good * 1.003)
    energy |= {"idle_w": 410.0, "uncertainty": {"repeats_pct": 0.67, "gain_pct": 1.5}}
    return {
        "key": key,
        "label": "Llama-3.1-70B · 4× H200 · TP4 · embedded 1.0",
        "engine": "embedded 1.0 · KV BF16",
        "mbu_pct": None,
        "node_power_kw": watts / 1000,
        "goodput_tok_s": mean_good,
        "ttft_p99_ms": 900.4,
        "tpot_p99_ms": 46.21,
        "slo_pass_count": 5,
        "repeats": 5,
        "throttle_counts": {},
        "accuracy": None,
        "rate_rps": BOUNDARY_RPS,
        "output_tok_s": mean_good * 1.003,
        "input_tok_s": BOUNDARY_RPS * 1607,
        "goodput_rps": 6.473,
        "slo_attainment_pct": 99.59,
        "counts": {
            "sent": 9750,
            "ok": 9750,
            "failed": 0,
            "unfinished": 0,
            "reasons": {},
            "miss_ttft": 0,
            "miss_tpot": 40,
        },
        "ttft_ms": _dist(298, 548, 900.4, 9750),
        "tpot_ms": _dist(40.4, 43.6, 46.21, 9750),
        "itl_ms": _dist(38.1, 52.0, 88.0, 4_100_000),
        "e2e_ms": _dist(11_200, 33_000, 71_000, 9750),
        "mean_concurrency": 110.2,
        "tokens": {"input": 1607.3, "output": 421.2, "source": "usage", "mismatch_pct": 0},
        "energy": energy,
        "client": _client(),
        "throttle_share_pct": 0.0,
        "power_limit_w": 700,
        "windows": windows,
        "sweep": sweep,
        "series": _series(),
    }


def _spec() -> dict[str, Any]:
    return {
        "name": "sim-llama-70b-h200x4",
        "hardware": {
            "adapter": "simulated",
            "rated_bw_tbs_per_gpu": 4.8,
            "host": "embedded engine",
        },
        "engine": {
            "endpoint": "simulator:",
            "name": "embedded",
            "version": "1.0",
            "simulator": {"profile": "d70"},
        },
        "model": {
            "name": "Llama-3.1-70B",
            "weight_dtype": "fp8",
            "kv_dtype": "bf16",
            "tensor_parallel": 4,
        },
        "slo": {"ttft_p99_ms": 2000.0, "tpot_p99_ms": 50.0},
        "workload": {"trace": "chat-mix-v1", "seed": 0},
        "measurement": {"warmup_s": 45, "window_s": 300, "search_window_s": 60, "repeats": 5},
        "sweep": {"start_rps": 1.0, "growth": 2.0, "bisect_steps": 4},
        "power": {"source": "simulated", "sampling_hz": 10},
    }


def demo_document(**changes: Any) -> dict[str, Any]:
    """Return the document as JSON data, with top-level keys changed."""
    document = {
        "id": "sim-llama-70b-h200x4-bf16kv",
        "status": "demo",
        "title": "Llama-3.1-70B on 4× H200 with embedded 1.0 (TP4, BF16 KV cache)",
        "published": None,
        "summary": (
            "Simulated measurement of Llama-3.1-70B on 4 × H200. Within p99 TTFT ≤ 2 s and p99 "
            "TPOT ≤ 50 ms the server kept 6.5 requests/s."
        ),
        "hardware": {
            "vendor": "NVIDIA",
            "accelerator": "NVIDIA H200",
            "count": _GPUS,
            "rated_bw_tbs_per_gpu": 4.8,
            "driver": "",
            "host": "embedded engine",
            "power_limit_w": 700,
        },
        "software": {"engine": "embedded", "engine_version": "1.0", "kernels": ""},
        "model": {
            "name": "Llama-3.1-70B",
            "shape": "",
            "quantization": "FP8 weights, BF16 KV cache",
            "parallelism": "1 replica × TP4",
        },
        "slo": {"ttft_p99_ms": 2000.0, "tpot_p99_ms": 50.0},
        "workload": {
            "trace": "chat-mix-v1",
            "input_tokens": "median 1,024 · p90 4,096",
            "output_tokens": "median 256 · p90 1,024",
            "arrival": "Poisson, rate swept to SLO boundary",
        },
        "power": {
            "source": "simulated meter",
            "kind": "board",
            "sampling_hz": 10,
            "window": "300 s steady state",
        },
        "accuracy": None,
        "runs": 5,
        "variance_band_pct": 1.04,
        "fleet": {"cards": 64},
        "configs": [config()],
        "not_covered": [
            "Real hardware: server, power and throttling follow a model",
            "Prompt caching: every prompt is new",
        ],
        "reproduce": "tokenwatt run --spec specs/sim-llama-70b-h200x4.yaml --out runs/demo.json",
        "spec": _spec(),
        "schema_version": "1",
        "method_version": "1",
        "version": 1,
        "tool": {"name": "tokenwatt-site", "version": "0.1.0"},
        "run_id": "20261120T091407Z-5d0c1f",
        "started": "2026-11-20T09:14:07Z",
        "finished": "2026-11-20T10:08:27Z",
        "quick": False,
        "simulated": True,
        "missing": {
            "/configs/0/mbu_pct": {
                "code": "NOT_IN_THIS_VERSION",
                "text": "this version doesn't compute memory bandwidth utilisation",
            },
            "/configs/0/accuracy": {
                "code": "NOT_ASKED",
                "text": "the spec asks for no accuracy check",
            },
        },
        "verdict": {"word": "met", "text": "all five windows at 6.5 requests/s kept the limits"},
        "search": {"strategy": "ladder", "probes": 13, "lo_rps": 6.5, "hi_rps": 6.75},
        "evidence": [
            {"path": "evidence/requests.jsonl.gz", "sha256": "0" * 64, "bytes": 2_100_000}
        ],
    }
    return copy.deepcopy(document | changes)


def demo_run(**changes: Any) -> Run:
    """Return the document, validated."""
    return Run.model_validate(demo_document(**changes))


def joined_document(**changes: Any) -> dict[str, Any]:
    """Return a document of a baseline and a candidate with 500 W boards, 12 % less energy."""
    candidate = config("candidate", power_scale=0.83, speed=0.943)
    candidate |= {
        "label": "500 W power limit",
        "power_limit_w": 500,
        "run_id": "20261120T111500Z-a1b2c3",
    }
    spec = _spec()
    spec["hardware"]["host"] = "embedded engine at 500 W"
    candidate["spec"] = spec
    joined = {
        "id": "sim-llama-70b-power-limit",
        "title": "Llama-3.1-70B on 4× H200: a 500 W power limit",
        "configs": [config(), candidate],
    }
    return demo_document(**(joined | changes))


def as_bytes(document: dict[str, Any]) -> bytes:
    """Return a document as it would stand in a file."""
    return (json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()
