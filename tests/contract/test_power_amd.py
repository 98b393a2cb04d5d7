"""The AMD meter: AMD's own Python package on a stub library, every generation and failure."""

import subprocess
from pathlib import Path

import pytest

from tests.support.amd_stub import AmdStub, environment, uuid
from tests.support.nvml_stub import Answer, ask, start
from tests.support.shared import require
from tokenwatt_site.method.energy import EnergyWindow, energy_window

AMD = {"source": "amd"}


def sampled(stub: AmdStub, state: str = "", **request: object) -> Answer:
    asked = {"do": "sample", "power": AMD, "count": 1, "seconds": 12.0} | request
    return stub.ask(state, **asked)


def window(answer: Answer, w0: float = 101.5, w1: float = 111.5, hz: float = 10.0) -> EnergyWindow:
    return energy_window(answer.samples, answer.result["devices"], w0, w1, hz)


def test_a_reading_has_all_that_the_driver_tells(amd_stub: AmdStub) -> None:
    first = sampled(amd_stub, seconds=0.05).samples[0]
    assert first.device == uuid(0)
    assert (first.power_w, first.limit_w, first.temperature_c) == (600, 750, 61)
    assert first.clock_mhz == 2035
    """The mean of its eight dies."""
    assert first.energy_j == pytest.approx(600 * 100, rel=1e-6)
    """The count times 15.3 µJ."""
    assert first.throttle == ()
    assert set(first.throttle_ns.values()) == {0}


def test_four_gpus_are_summed(amd_stub: AmdStub) -> None:
    result = window(sampled(amd_stub, "step_w=1", count=4))
    assert result.mean_w == pytest.approx(2406, rel=1e-4)
    assert (result.method, result.valid, result.check_verdict) == ("counter", True, "agree")


@pytest.mark.parametrize("fill", [0xFFFF, 0xFFFFFFFF, 0])
@pytest.mark.parametrize(
    "model, words", [(300, "energy counter and power"), (250, "energy counter and average power")]
)
def test_each_generation_has_its_power_in_a_field_of_its_own(
    amd_stub: AmdStub, model: int, words: str, fill: int
) -> None:
    """What fills the other is 65,535 on some versions, 2³² − 1 or 0 on others: never a power."""
    answer = sampled(amd_stub, f"model={model} fill={fill}", count=2, seconds=0.05)
    assert answer.result["source"] == f"GPU board power sum (AMD: {words})"
    assert {sample.power_w for sample in answer.samples} == {600}


def test_two_dies_of_a_board_are_one_power(amd_stub: AmdStub) -> None:
    """Four dies are two boards of 600 W: 1,200 W, and not 2,400."""
    answer = sampled(amd_stub, "model=250", count=4)
    assert answer.result["devices"] == [uuid(0), uuid(2)]
    assert window(answer).mean_w == pytest.approx(1200, rel=1e-4)


def test_partitions_of_a_gpu_are_one_power(amd_stub: AmdStub) -> None:
    answer = sampled(amd_stub, "gpus=8 partitions=4", count=8, seconds=0.05)
    assert answer.result["devices"] == [uuid(0), uuid(4)]


@pytest.mark.parametrize("gpus", [[0], [1], [2, 3, 1]])
def test_half_a_board_has_no_power_of_its_own(amd_stub: AmdStub, gpus: list[int]) -> None:
    refused = sampled(amd_stub, "model=250", gpus=gpus, count=len(gpus))
    assert refused.kind == "RefusedError"
    assert "1 of the board's 2 dies" in refused.error
    shared = AMD | {"scope": "shared_board"}
    answer = sampled(amd_stub, "model=250", gpus=gpus, count=len(gpus), power=shared, seconds=0.05)
    assert answer.result["scope"] == "shared_board"
    assert set(answer.result["devices"]) == {uuid(gpu - gpu % 2) for gpu in gpus}


def test_a_frozen_counter_is_left_for_the_samples(amd_stub: AmdStub) -> None:
    answer = sampled(amd_stub, "frozen=1")
    assert "an energy counter that stands still is left out" in answer.result["source"]
    result = window(answer)
    assert (result.method, result.valid, result.reasons) == ("sampled", True, ("samples_only",))
    assert result.joules == pytest.approx(600 * 10)


def test_a_counter_that_isnt_supported_is_never_0(amd_stub: AmdStub) -> None:
    answer = sampled(amd_stub, "counter=0")
    assert answer.result["source"] == "GPU board power sum (AMD: power)"
    assert window(answer).joules == pytest.approx(600 * 10)


def test_throttled_time_comes_from_the_residencies(amd_stub: AmdStub) -> None:
    result = window(sampled(amd_stub, "cap_share=0.3 thermal_share=0.02"))
    assert result.throttle_share_pct == pytest.approx({"sw_power_cap": 30, "thermal": 2}, rel=0.02)
    slow = window(sampled(amd_stub, "cap_share=0.3 step_s=0.5"))
    assert slow.throttle_share_pct == pytest.approx({"sw_power_cap": 30}, rel=0.03)


@pytest.mark.parametrize("metrics", [0, 1])
def test_throttling_that_isnt_told_is_unknown(amd_stub: AmdStub, metrics: int) -> None:
    result = window(sampled(amd_stub, f"model=250 metrics={metrics}", count=2))
    assert (result.throttle_samples, result.throttled_pct) == (0, None)
    assert result.valid


@pytest.mark.parametrize("event, code", [("lost=1", "gpu_is_lost"), ("denied=1", "no_permission")])
def test_a_gpu_that_stops_answering_spoils_the_window_with_its_code(
    amd_stub: AmdStub, event: str, code: str
) -> None:
    answer = sampled(amd_stub, count=2, events=[[108.0, event]])
    result = window(answer)
    assert (result.joules, result.valid) == (None, False)
    assert result.reasons == ("counter_incomplete", "not_bracketed", code)
    assert window(answer, 101.5, 107).valid


def test_zeros_under_load_are_refused(amd_stub: AmdStub) -> None:
    result = window(sampled(amd_stub, "counter=0", events=[[101.0, "gain=0"]]))
    assert (result.joules, result.valid) == (None, False)
    assert "zero_power" in result.reasons


@pytest.mark.parametrize(
    "state, request_, kind, text",
    [
        ("denied=1", {}, "RefusedError", "doesn't tell its power (no_permission)"),
        ("gain=0", {}, "RefusedError", "doesn't tell its power (zero_power)"),
        ("init=10", {}, "RefusedError", "refuses this user"),
        ("init=34", {}, "RefusedError", "isn't loaded"),
        ("init=18", {}, "RefusedError", "the AMD driver fails"),
        ("gpus=0", {}, "UsageError", "this machine shows 0"),
        ("", {"count": 9}, "UsageError", "needs 9 accelerators"),
        ("lost=0", {}, "UsageError", "accelerator 0 isn't there or doesn't answer"),
    ],
)
def test_what_cant_be_measured_is_refused_with_the_next_step(
    amd_stub: AmdStub, state: str, request_: dict[str, object], kind: str, text: str
) -> None:
    answer = sampled(amd_stub, state, **request_)
    assert (answer.kind, text in answer.error) == (kind, True)
    assert answer.hint


@pytest.mark.parametrize("holds, text", [("", "no ROCm on this machine"), ("x", "two versions")])
def test_without_rocm_the_next_step_is_told(tmp_path: Path, holds: str, text: str) -> None:
    """No library, and one that lacks what the package looks up."""
    (tmp_path / "libamd_smi.so").write_text("no library")
    if holds:
        (tmp_path / "empty.c").write_text("int amdsmi_init(void) { return 0; }")
        library = [str(tmp_path / "libamd_smi.so"), str(tmp_path / "empty.c")]
        subprocess.run([require("gcc", "cc"), "-shared", "-fPIC", "-o", *library], check=True)
    with start(environment(tmp_path)) as child:
        answer = ask(child, do="identify", hardware={"adapter": "amd"})
    assert (answer.kind, text in answer.error) == ("RefusedError", True)
    assert answer.hint


def test_accelerators_are_named_by_the_driver(amd_stub: AmdStub) -> None:
    answer = amd_stub.ask(do="identify", hardware={"adapter": "amd"}, model={"tensor_parallel": 4})
    assert answer.result == {
        "vendor": "AMD",
        "name": "AMD Instinct MI300X OAM",
        "count": 4,
        "driver": "6.16.6",
        "uuids": [uuid(k) for k in range(4)],
        "power_limit_w": 750,
        "rated_bw_tbs_per_gpu": None,
        "notes": [],
    }


def test_accelerators_of_two_kinds_are_refused(amd_stub: AmdStub) -> None:
    answer = amd_stub.ask(
        "kinds=2", do="identify", hardware={"adapter": "amd"}, model={"replicas": 2}
    )
    assert "MI300X OAM, AMD Instinct MI325X" in answer.error
