"""The pages beside the API: the model, the counters and the meter."""

import json
from typing import Any

from tokenwatt_site.method.overrides import Meter
from tokenwatt_site.simulator.engine import Engine
from tokenwatt_site.simulator.job import MODEL


def models_page(engine: Engine) -> bytes:
    """Return the list of the one model."""
    shape = engine.model.shape
    entry = {
        "id": MODEL,
        "object": "model",
        "created": 0,
        "owned_by": "tokenwatt-site",
        "max_model_len": shape.longest_tokens,
        "vocab_size": shape.vocab_size,
    }
    return json.dumps({"object": "list", "data": [entry]}).encode()


def power_page(engine: Engine, meter: Meter) -> bytes:
    """Return what each accelerator's meter shows; all show the same.

    ``power_w`` is the mean of the last 0.1 s, ``energy_j`` and ``throttle_ns`` are running counters
    and ``t_s`` is the engine's own clock.
    """
    t_s, reading, mean_w = engine.reading()
    shape = engine.model.shape
    devices: list[dict[str, Any]] = [
        {
            "uuid": f"SIM-{index}",
            "name": shape.accelerator,
            "power_w": mean_w * meter.meter_gain,
            "energy_j": reading.energy_j * meter.meter_gain if meter.meter_counter else None,
            "limit_w": shape.limit_w,
            "rated_bw_tbs": shape.rated_bw_tbs_per_gpu,
            "throttle_ns": {"sw_power_cap": round(1e9 * reading.throttled_s)},
            "throttled": ["sw_power_cap"] if reading.throttling else [],
        }
        for index in range(shape.gpus)
    ]
    return json.dumps({"t_s": t_s, "behind_s": engine.behind_s, "devices": devices}).encode()


def metrics_page(engine: Engine) -> bytes:
    """Return the counters as Prometheus text, under the names that vLLM gives them."""
    model, totals = engine.model, engine.model.totals
    running, energy_j = model.running, engine.reading()[1].energy_j
    rows = (
        ("vllm:num_requests_running", "gauge", "Requests in the batch.", running),
        ("vllm:num_requests_waiting", "gauge", "Requests in the queue.", model.waiting),
        ("vllm:kv_cache_usage_perc", "gauge", "Share of the KV cache in use.", model.kv_share),
        ("vllm:prompt_tokens_total", "counter", "Prompt tokens.", totals.prompt_tokens),
        ("vllm:generation_tokens_total", "counter", "Output tokens.", totals.output_tokens),
        ("vllm:num_preemptions_total", "counter", "Preempted sequences.", model.preemptions),
        ("vllm:request_success_total", "counter", "Finished requests.", totals.finished),
        ("simulator:bytes_read_total", "counter", "Bytes of weights and cache.", model.bytes_read),
        ("simulator:energy_j_total", "counter", "Energy of one accelerator, in truth.", energy_j),
        ("simulator:behind_s", "gauge", "Longest delay of a step's tokens.", engine.behind_s),
    )
    lines: list[str] = []
    for name, kind, text, value in rows:
        label = '{finished_reason="length"}' if name == "vllm:request_success_total" else ""
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name}{label} {value!r}"]
    return ("\n".join(lines) + "\n").encode()
