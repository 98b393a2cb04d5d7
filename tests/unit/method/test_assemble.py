"""From windows to a document: every figure by hand, every null with its reason."""

import math
from typing import Any

import pytest

from tests.support.traces import request
from tests.support.windows import spec_of, stream, window_of
from tokenwatt_site.documents import doors
from tokenwatt_site.documents.run import Hardware, Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.assemble import Closing, Resolved, assemble
from tokenwatt_site.method.energy import EnergyWindow, energy_window
from tokenwatt_site.method.figures import distribution, percentile, pooled, window_record
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.meters import primary_meter
from tokenwatt_site.method.probe import Done
from tokenwatt_site.method.prose import Origin
from tokenwatt_site.method.samples import PowerSample


def resolved_of(**changes: Any) -> Resolved:
    values: dict[str, Any] = {
        "hardware": Hardware(vendor="NVIDIA", accelerator="NVIDIA H200", count=2),
        "engine_version": "0.32.0",
        "meter_source": "GPU board power sum (NVIDIA)",
        "origin": Origin("my.spec.yaml", "my label", "baseline", "runs/a b.json"),
        "run_id": "20261130T120000Z-abcdef",
        "started": "2026-11-30T12:00:00Z",
    }
    return Resolved(**(values | changes))


def energy_of(watts: float, seconds: float, *, throttled: bool = False) -> EnergyWindow:
    samples = [
        PowerSample(
            t / 10,
            device,
            power_w=watts / 2,
            throttle=("sw_power_cap",) if throttled and t % 2 else (),
        )
        for t in range(-20, int(seconds * 10) + 21)
        for device in ("a", "b")
    ]
    return energy_window(samples, ["a", "b"], 0.0, seconds, 10)


def document(
    windows: list[MeasuredWindow],
    done: Done | None,
    spec: Spec | None = None,
    series: dict[int, dict[str, Any]] | None = None,
    **changes: Any,
) -> Run:
    closing = Closing("2026-11-30T12:10:00Z", [], series or {})
    return assemble(spec or spec_of(), resolved_of(**changes), windows, done, closing)


MET = Done("met", 20.0, 20.0, 25.0, "every confirm window kept both limits")


def test_a_run_is_told_by_its_confirm_windows() -> None:
    energy = energy_of(1000, 10)
    windows = [
        window_of(0, "search", stream(), rate=10.0, energy=energy),
        *(window_of(i, "confirm", stream(), energy=energy) for i in (1, 2, 3)),
    ]
    run = document(windows, MET)
    config = run.configs[0]
    assert (run.runs, config.repeats, config.slo_pass_count) == (3, 3, 3)
    assert config.rate_rps == 20.0
    assert config.counts is not None
    assert (config.counts.sent, config.counts.ok) == (600, 600)
    assert config.windows is not None
    assert config.sweep is not None
    assert [w.index for w in config.windows] == [1, 2, 3]
    assert [w.index for w in config.sweep] == [0]
    assert config.ttft_p99_ms == pytest.approx(200)
    assert config.tpot_p99_ms == pytest.approx(20)
    assert config.node_power_kw == pytest.approx(1.0)
    assert config.energy is not None
    assert config.output_tok_s is not None
    # three windows of 10 s at 1000 W
    assert config.energy.joules == pytest.approx(30_000)
    assert config.energy.j_per_output_token == pytest.approx(1000 / config.output_tok_s)
    assert run.variance_band_pct == pytest.approx(0, abs=1e-9)
    assert run.status == "draft"
    assert run.quick is True
    assert run.missing is not None
    assert set(run.missing) == {"/configs/0/mbu_pct", "/configs/0/accuracy"}


def test_every_null_of_a_draft_has_its_reason() -> None:
    run = document([], None)
    config = run.configs[0]
    nulls = [
        k
        for k in (
            "mbu_pct",
            "node_power_kw",
            "goodput_tok_s",
            "ttft_p99_ms",
            "tpot_p99_ms",
            "accuracy",
        )
        if getattr(config, k) is None
    ]
    assert len(nulls) == 6
    assert run.missing is not None
    assert {f"/configs/0/{key}" for key in nulls} < set(run.missing)
    assert "/variance_band_pct" in run.missing
    assert run.verdict is not None
    assert run.verdict.word == "undecided"
    assert doors.parse_run(doors.dump(run), "draft") == run


def test_a_p99_without_bound_is_null_censored_and_failed() -> None:
    traces = stream()
    traces[:10] = [request(t.t_sched_s, outcome="failed") for t in traces[:10]]
    run = document([window_of(0, "rate", traces)], Done("failed", None, None, 20.0, "no"))
    assert run.configs[0].ttft_p99_ms is None  # nothing is reported where no rate passed
    figures = pooled([window_of(0, "rate", traces)], spec_of().slo)
    assert figures["ttft_p99_ms"] is None
    assert figures["ttft_ms"]["censored_over"] == 2000.0
    assert figures["counts"]["reasons"] == {"http_503": 10}


def test_a_draft_never_reports_a_rate_that_failed() -> None:
    windows = [window_of(0, "confirm", stream()), window_of(1, "confirm", stream(ttft_s=5.0))]
    assert document(windows[:1], None).configs[0].rate_rps == 20.0
    assert "Unfinished: within" in document(windows[:1], None).summary
    draft = document(windows, None)
    assert (draft.configs[0].rate_rps, draft.configs[0].goodput_tok_s) == (None, None)
    assert "No rate is confirmed" in draft.summary


def test_a_tpot_that_no_answer_has_is_not_applicable() -> None:
    traces = [request(i / 20, [i / 20 + 0.1]) for i in range(200)]
    run = document([window_of(0, "confirm", traces)], MET)
    assert run.configs[0].tpot_p99_ms is None
    assert run.missing is not None
    assert run.missing["/configs/0/tpot_p99_ms"].code == "NOT_APPLICABLE"


def test_the_time_series_is_that_of_a_reported_window() -> None:
    windows = [window_of(0, "confirm", stream()), window_of(1, "confirm", stream(), rate=30.0)]
    drawn = {
        i: {"t_s": [0], "in_flight": [i], "window_s": 10, "index": i, "power_w": None}
        for i in (0, 1)
    }
    run = document(windows, MET, series=drawn)
    assert run.configs[0].series is not None
    assert run.configs[0].series.index == 0


def test_the_worst_token_source_is_named_and_chunks_have_no_mismatch() -> None:
    traces = stream()
    assert document([window_of(0, "confirm", traces)], MET).configs[0].tokens is not None
    for trace in traces[:3]:
        trace.n_source = "chunks"
    tokens = document([window_of(0, "confirm", traces)], MET).configs[0].tokens
    assert tokens is not None
    assert (tokens.source, tokens.mismatch_pct) == ("chunks", None)


@pytest.mark.parametrize(
    "changes,found",
    [
        ({"power": {"source": "simulated"}}, False),
        ({"hardware": {"adapter": "simulated"}}, False),
        ({}, True),
    ],
)
def test_nothing_of_the_embedded_engine_passes_as_real(
    changes: dict[str, Any], *, found: bool
) -> None:
    spec = spec_of(**changes)
    run = document([window_of(0, "confirm", stream(), spec=spec)], MET, spec, simulated=found)
    assert (run.status, run.simulated) == ("demo", True)


def test_an_invalid_meter_leaves_no_watt() -> None:
    broken = energy_window([], ["a"], 0.0, 10.0, 10)
    run = document([window_of(0, "confirm", stream(), energy=broken)], MET)
    assert run.configs[0].node_power_kw is None
    assert run.missing is not None
    assert run.missing["/configs/0/node_power_kw"].code == "METER_INVALID"
    assert run.configs[0].energy is not None
    assert run.configs[0].energy.j_per_output_token is None


def test_a_throttled_run_says_so_in_its_summary() -> None:
    energy = energy_of(1000, 10, throttled=True)
    run = document([window_of(0, "confirm", stream(), energy=energy)], MET)
    assert run.configs[0].throttle_counts == {"sw_power_cap": pytest.approx(100, abs=2)}
    assert run.configs[0].throttle_share_pct == pytest.approx(50, abs=1)
    assert "throttled 49.5 % of the time (sw_power_cap)" in run.summary


def test_a_simulated_run_is_a_demo() -> None:
    spec = spec_of(
        engine={"endpoint": "simulator:", "name": "embedded engine"},
        hardware={"adapter": "simulated"},
        power={"source": "simulated"},
    )
    run = document([window_of(0, "confirm", stream(), spec=spec)], MET, spec)
    assert (run.status, run.simulated) == ("demo", True)
    assert any("Real hardware" in line for line in run.not_covered)
    assert run.summary.startswith("Quick simulated measurement of Tiny")


def test_the_strings_are_those_of_the_published_form() -> None:
    run = document([window_of(0, "confirm", stream())], MET)
    assert run.id == "h200x2-tiny-fp8-vllm"
    assert run.title == "Tiny on 2× H200 with vLLM 0.32.0 (TP2, FP8 KV cache)"
    assert run.model.quantization == "FP8 weights, FP8 KV cache"
    assert run.model.parallelism == "1 replica × TP2"
    assert run.configs[0].engine == "vLLM 0.32.0 · KV FP8"
    assert run.configs[0].label == "my label"
    assert run.workload.arrival == "Poisson, rate swept to SLO boundary"
    assert run.power.window == "10 s steady state"
    assert run.reproduce == (
        "tokenwatt run --spec my.spec.yaml --label 'my label' --role baseline --out 'runs/a b.json'"
        "\n\ntokenwatt report 'runs/a b.json' --title "
        "'Tiny on 2× H200 with vLLM 0.32.0 (TP2, FP8 KV cache)'"
    )


def test_every_string_can_be_overridden() -> None:
    names = [
        "title", "summary", "label", "engine", "input_tokens", "output_tokens", "arrival",
        "quantization", "parallelism", "window", "source", "reproduce",
    ]  # fmt: skip
    spec = spec_of(text={name: f"my {name}" for name in names})
    run = document(
        [window_of(0, "confirm", stream())],
        MET,
        spec,
        origin=Origin("s.yaml", "", "candidate", "a.json"),
    )
    config = run.configs[0]
    assert config.key == "candidate"
    seen = [
        run.title, run.summary, config.label, config.engine, run.workload.input_tokens,
        run.workload.output_tokens, run.workload.arrival, run.model.quantization,
        run.model.parallelism, run.power.window, run.power.source, run.reproduce,
    ]  # fmt: skip
    assert sorted(seen) == sorted(f"my {name}" for name in names)


def test_windows_at_the_reported_rate_only_are_pooled() -> None:
    windows = [
        window_of(0, "confirm", stream(), rate=30.0),
        window_of(1, "confirm", stream(), rate=20.0),
        window_of(2, "confirm", stream(), rate=20.0),
    ]
    run = document(windows, MET)
    assert run.configs[0].repeats == 2
    assert run.configs[0].sweep is not None
    assert [w.rate_rps for w in run.configs[0].sweep] == [30.0]


def test_no_rate_is_never_a_failing_rate() -> None:
    windows = [window_of(0, "search", stream(ttft_s=5.0))]
    run = document(windows, Done("no_rate", None, None, 20.0, "no rate kept both limits"))
    assert run.configs[0].rate_rps is None
    assert run.configs[0].goodput_tok_s is None
    assert run.summary.count("No rate kept") == 1


@pytest.mark.parametrize(
    "power,source",
    [
        (None, None),
        ([], None),
        ({"source": "none"}, None),
        ([{"source": "board"}, {"source": "none"}], "board"),
        ([{"source": "none"}, {"source": "board"}], "board"),
    ],
)
def test_the_primary_meter_is_the_first(power: Any, source: str | None) -> None:
    meter = primary_meter(spec_of(power=power))
    assert (meter.source if meter else None) == source


def test_a_window_record_is_a_valid_one() -> None:
    record = window_record(window_of(0, "search", stream(), energy=energy_of(500, 10)))
    run = document([window_of(0, "search", stream())], None)
    assert run.configs[0].sweep is not None
    assert record["energy"]["joules"] == pytest.approx(5000)
    assert record["counts"]["sent"] == 200


def test_percentiles_without_bound_are_none() -> None:
    assert percentile([], 0.99) is None
    assert percentile([1.0, math.inf], 0.99) is None
    assert percentile([-math.inf, 1.0], 0.5) is None


def test_a_distribution_pools_and_keeps_not_applicable_out_of_the_curve() -> None:
    dist = distribution([[-math.inf, 1.0, 3.0], [2.0, 4.0, math.inf]], 10.0)
    assert (dist["n"], dist["mean"], dist["p50"]) == (6, 2.5, 2.0)
    assert dist["censored_over"] == 10.0
    assert dist["cdf"][0] == [1.0, pytest.approx(100 * 2 / 6)]
    assert dist["cdf"][-1] == [4.0, pytest.approx(100 * 5 / 6)]


def test_the_workload_says_what_was_asked_and_what_was_drawn() -> None:
    asked = {"trace": None, "input_tokens": {"median": 100, "p90": 300}, "seed": 7}
    spec = spec_of(workload=asked | {"output_tokens": {"fixed": 11}})
    run = document([window_of(0, "confirm", stream())], MET, spec)
    block = run.workload
    assert (block.seed, block.timestamps, block.sha256) == (7, None, None)
    assert block.nominal is not None
    assert block.nominal.input_tokens == pytest.approx(142.1, abs=0.1)
    assert block.clamp is not None
    assert (block.clamp.input_tokens, block.clamp.output_tokens) == (800, 11)
    realised = run.configs[0].realised
    assert realised is not None
    assert (realised.input_tokens, realised.output_tokens, realised.n) == (100, 11, 200)
