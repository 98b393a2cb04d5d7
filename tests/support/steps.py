"""Shapes and requests for tests of the step model."""

from collections.abc import Callable
from typing import Any

from tokenwatt_site.method.scheduler import Request
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_model import Step, StepModel


def plain(**changes: Any) -> Shape:
    """Return a quiet server of round numbers: 1 TB/s, 10 GB of weights, 100 kB a context token."""
    values: dict[str, Any] = {
        "name": "plain",
        "about": "round numbers",
        "accelerator": "Test accelerator",
        "rated_bw_tbs_per_gpu": 2.0,
        "bandwidth_share": 0.5,
        "fixed_s": 1e-3,
        "sequence_s": 1e-4,
        "dense_bytes": 10e9,
        "kv_bytes": 100e3,
        "prefill_token_s": 1e-5,
        "prefill_attention_s": 1e-9,
        "decode_token_s": 2e-4,
        "budget_tokens": 1000,
        "max_sequences": 64,
        "kv_capacity_tokens": 100_000,
        "idle_w": 100.0,
        "limit_w": 1000.0,
        "memory_w": 300.0,
        "compute_w": 500.0,
    }
    return Shape(**values | changes)


def submit(model: StepModel, *requests: tuple[float, int, int]) -> list[Request]:
    """Submit requests given as (arrival, prompt tokens, output tokens), with keys from 0."""
    return [model.submit(key, *request) for key, request in enumerate(requests)]


def play_out(model: StepModel, advance: Callable[[], Step | None] | None = None) -> list[Step]:
    """Step a model until it has nothing to do; return its steps."""
    steps: list[Step] = []
    while (step := (advance or model.step)()) is not None:
        steps.append(step)
    return steps


def tpot_s(request: Request) -> float:
    """Return the mean time of a token after the first."""
    assert request.first_s is not None
    assert request.last_s is not None
    return (request.last_s - request.first_s) / (request.output_tokens - 1)


def ttft_s(request: Request) -> float:
    """Return the time from arrival to the first token."""
    assert request.first_s is not None
    return request.first_s - request.arrival_s
