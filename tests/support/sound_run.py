"""A small run document in which no check finds anything, and how to spoil it."""

import json
from typing import Any

from tokenwatt_site.documents.run import Run

GONE = object()
"""As a value of `spoiled`: the key is taken out."""

_WINDOW: dict[str, Any] = {
    "index": 0, "phase": "confirm", "rate_rps": 5.0, "passed": True, "valid": True,
    "started": "2026-11-20T09:10:00Z", "window_s": 300.0, "warmup_s": 45,
    "counts": {"sent": 1500, "ok": 1498, "failed": 1, "unfinished": 1, "reasons": {"timeout": 1}},
    "ttft_p99_ms": 400.0, "tpot_p99_ms": 45.0, "output_tok_s": 2000.0, "input_tok_s": 8000.0,
    "goodput_tok_s": 1990.0, "goodput_rps": 4.98, "slo_attainment_pct": 99.6,
}  # fmt: skip
_CONFIG: dict[str, Any] = {
    "key": "baseline", "label": "Model · 4× H200", "engine": "vLLM 0.32.0",
    "mbu_pct": None, "node_power_kw": 2.4, "goodput_tok_s": 1995.0,
    "ttft_p99_ms": 400.0, "tpot_p99_ms": 45.0, "slo_pass_count": 3, "repeats": 3,
    "throttle_counts": {}, "accuracy": {"score": 90.0}, "rate_rps": 5.0,
    "output_tok_s": 2000.0, "input_tok_s": 8000.0,
    "counts": {"sent": 4500, "ok": 4494, "failed": 3, "unfinished": 3},
    "tokens": {"input": 1600.0, "output": 400.0},
    "energy": {
        "scope": "board", "method": "counter", "joules": 2160000.0, "seconds": 900.0,
        "valid": True, "j_per_output_token": 1.2, "samples": 36000, "node_minus_boards_w": 900.0,
        "check": {"method": "sampled", "joules": 2165000.0, "difference_pct": 0.2,
                  "verdict": "agree"},
    },
    "client": {"lag_p99_ms": 0.4, "clock_drift_pct": 0.01},
    "tpot_ms": {"p50": 40.0, "p99": 45.0, "n": 900}, "itl_ms": {"p50": 38.0, "n": 9000},
    "windows": [
        _WINDOW,
        _WINDOW | {"index": 1, "goodput_tok_s": 2000.0},
        _WINDOW | {"index": 2, "goodput_tok_s": 1995.0},
    ],
    "sweep": [_WINDOW | {"index": 3, "phase": "search", "passed": False, "tpot_p99_ms": 70.0}],
}  # fmt: skip
SOUND: dict[str, Any] = {
    "id": "h200x4-model", "status": "published", "title": "Model on 4× H200",
    "published": "2026-11-22",
    "summary": (
        "Measured on November 20, 2026. Within p99 TTFT ≤ 2 s and p99 TPOT ≤ 50 ms the node served"
        " 5.0 requests/s: 1,995 output and about 8,000 input tokens per second, 90% on the check."
        " Five-minute runs: 5-minute windows, 3 repeats."
    ),
    "hardware": {
        "vendor": "NVIDIA", "accelerator": "NVIDIA H200", "count": 4, "driver": "595.91.07",
        "host": "RunPod secure cloud pod", "power_limit_w": 700.0,
    },
    "software": {"engine": "vLLM", "engine_version": "0.32.0", "kernels": "image --flag"},
    "model": {"name": "Model", "shape": "MoE", "quantization": "FP8", "parallelism": "TP4"},
    "slo": {"ttft_p99_ms": 2000.0, "tpot_p99_ms": 50.0},
    "workload": {
        "trace": "chat-mix-v1", "input_tokens": "median 1,024", "output_tokens": "median 256",
        "arrival": "Poisson",
    },
    "power": {
        "source": "GPU boards", "kind": "board", "sampling_hz": 10, "window": "300 s steady state",
    },
    "accuracy": {"suite": "gsm8k", "threshold_pts": 1.0},
    "runs": 3, "variance_band_pct": 0.6, "fleet": None, "configs": [_CONFIG],
    "not_covered": ["Other context lengths"], "reproduce": "tokenwatt run my.spec.yaml",
    "spec": {
        "name": "runpod-model", "engine": {"endpoint": "http://127.0.0.1:8000/v1"},
        "model": {"name": "Model", "tensor_parallel": 4},
        "workload": {"seed": 2**60},
        "measurement": {"window_s": 300, "repeats": 3},
        "sweep": {"strategy": "adaptive"},
        "accuracy": {"suite": "gsm8k.jsonl", "limit": 8000},
        "power": [{"source": "board"}, {"source": "redfish", "url": "https://bmc.example"}],
    },
    "started": "2026-11-20T09:00:00Z", "finished": "2026-11-20T10:00:00Z",
    "verdict": {"word": "met"},
    "missing": {"/configs/0/mbu_pct": {"code": "NOT_IN_THIS_VERSION", "text": "not computed"}},
    "evidence": [{"path": "x/requests.jsonl.gz", "sha256": "0" * 64, "bytes": 10}],
}  # fmt: skip


def spoiled(**changes: Any) -> dict[str, Any]:
    """Return the sound document with changes: ``configs__0__repeats=2`` sets /configs/0/repeats."""
    document: dict[str, Any] = json.loads(json.dumps(SOUND))  # no part is shared
    for path, value in changes.items():
        *way, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        place: Any = document
        for part in way:
            place = place[part]
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return document


def run_of(document: dict[str, Any]) -> Run:
    """Return the document as the package reads it."""
    return Run.model_validate(document)
