"""Specs and measured windows for tests of documents."""

from typing import Any

from tests.support.traces import steady
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.energy import EnergyWindow
from tokenwatt_site.method.measured_window import MeasuredWindow, MeterWindow
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.window import Phase, Window, judge

CLIENT: dict[str, float | None] = {
    "lag_p99_ms": 0.4,
    "lag_max_ms": 1.0,
    "gap_cv": 1.0,
    "cpu_share": 0.1,
    "loop_stall_max_ms": None,
    "clock_drift_pct": 0.0,
}


def spec_of(**changes: Any) -> Spec:
    values: dict[str, Any] = {
        "name": "mine",
        "engine": {"endpoint": "http://127.0.0.1:8000/v1", "name": "vLLM", "version": "0.32.0"},
        "model": {"name": "Tiny", "weight_dtype": "fp8", "kv_dtype": "fp8", "tensor_parallel": 2},
        "workload": {"trace": None, "input_tokens": {"fixed": 100}, "output_tokens": {"fixed": 11}},
        "power": {"source": "board", "sampling_hz": 10},
    }
    return Spec.model_validate(values | changes)


def window_of(
    index: int,
    phase: Phase,
    traces: list[RequestTrace],
    *,
    rate: float = 20.0,
    energy: EnergyWindow | None = None,
    spec: Spec | None = None,
) -> MeasuredWindow:
    window = Window(index, phase, rate, 0.0, 10.0, 2.0)
    stats = judge(traces, window, (spec or spec_of()).slo, 30.0)
    meters = () if energy is None else (MeterWindow(MeterFacts("board", ("a", "b"), 10), energy),)
    return MeasuredWindow(
        window, stats, meters, CLIENT, "2026-11-30T12:01:00Z", stats.valid, tuple(stats.reasons)
    )


def stream(n: int = 200, **changes: float) -> list[RequestTrace]:
    return [steady(i * 10 / n, **changes) for i in range(n)]
