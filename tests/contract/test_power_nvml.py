"""The NVML meter on a stub library: every answer that a driver gives, and what becomes of it."""

import os
from pathlib import Path

import pytest

from tests.support.nvml_stub import Answer, NvmlStub, ask, start, uuid
from tokenwatt_site.method.energy import EnergyWindow, energy_window

BOARD = {"source": "board"}
USAGE = "power usage, a 1 s average"


def sampled(stub: NvmlStub, state: str = "", **request: object) -> Answer:
    asked = {"do": "sample", "power": BOARD, "count": 1, "seconds": 30.0} | request
    return stub.ask(state, **asked)


def window(answer: Answer, w0: float = 105.0, w1: float = 125.0, hz: float = 10.0) -> EnergyWindow:
    return energy_window(answer.samples, answer.result["devices"], w0, w1, hz)


def test_a_reading_has_all_that_the_driver_tells(nvml_stub: NvmlStub) -> None:
    answer = sampled(nvml_stub, "high_w=594 reasons=4 cap_share=0.3", seconds=0.05)
    first = answer.samples[0]
    assert first.t_s == pytest.approx(100)
    assert first.device == uuid(0)
    assert (first.power_w, first.limit_w, first.clock_mhz, first.temperature_c) == (
        594,
        700,
        1500,
        55,
    )
    assert first.energy_j == pytest.approx(1000, abs=594)
    assert first.throttle == ("sw_power_cap",)
    assert set(first.throttle_ns) == {"sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake"}
    assert first.error is None
    assert answer.result["name"] == "nvml"
    assert answer.result["scope"] == "board"
    assert answer.result["source"] == (
        "GPU board power sum (NVIDIA: energy counter and instant power)"
    )


def test_four_gpus_are_summed(nvml_stub: NvmlStub) -> None:
    """594, 595, 596 and 597 W are 2,382 W: not one for all, not their mean."""
    result = window(sampled(nvml_stub, "step_w=1", count=4))
    assert result.mean_w == pytest.approx(2382, rel=1e-6)
    assert (result.method, result.valid, result.reasons) == ("counter", True, ())
    assert result.check_verdict == "agree"
    assert list(result.per_device_j) == [uuid(k) for k in range(4)]


def test_a_1_hz_poll_of_a_1_hz_square_wave_is_wrong_the_counter_right(nvml_stub: NvmlStub) -> None:
    """Measured on a stub before: 794 W by the poll, 594 W by the counter and in truth."""
    wave = "high_w=794 low_w=394 period_s=1 limit_w=1000"
    slow = window(sampled(nvml_stub, wave, hz=1.0), hz=1.0)
    assert slow.mean_w == pytest.approx(594, rel=0.002)
    assert slow.check_joules == pytest.approx(794 * 20, rel=0.002)
    assert (slow.check_verdict, slow.valid, slow.reasons) == (
        "disagree",
        False,
        ("meters_disagree",),
    )
    fast = window(sampled(nvml_stub, wave, hz=20.0), hz=20.0)
    assert fast.mean_w == pytest.approx(594, rel=0.002)
    assert (fast.check_verdict, fast.valid) == ("agree", True)


@pytest.mark.parametrize(
    "state, words, scope",
    [
        ("instant=0", "energy counter and 1 s average power", "board"),
        ("counter=0", "instant power", "board"),
        ("fields=0", f"energy counter and {USAGE}", "board"),
        ("fields=0 ns=0", f"energy counter and {USAGE}", "board"),
        ("module=1", "energy counter and instant power of the module", "module"),
        ("module=1 instant=0", "energy counter and 1 s average power of the module", "module"),
    ],
)
def test_a_field_that_a_board_lacks_is_replaced_and_named(
    nvml_stub: NvmlStub, state: str, words: str, scope: str
) -> None:
    answer = sampled(nvml_stub, state)
    assert answer.result["source"] == f"GPU {scope} power sum (NVIDIA: {words})"
    assert answer.result["scope"] == scope
    result = window(answer)
    assert result.valid
    assert result.mean_w == pytest.approx(594, rel=1e-3)


@pytest.mark.parametrize(
    "state, averaged_s",
    [
        ("", 0),
        ("instant=0", 1),
        ("module=1 instant=0", 1),
        ("fields=0", 1),
        ("fields=0 arch=0", 1),
        ("fields=0 arch=7", 1),
        ("fields=0 arch=7 kinds=3", 0),
        ("fields=0 arch=5", 0),
    ],
)
def test_averaged_power_is_told(nvml_stub: NvmlStub, state: str, averaged_s: float) -> None:
    """Power usage is of the moment up to Turing and on GA100, else a mean of 1 s."""
    told = sampled(nvml_stub, state, seconds=0.05).result
    assert told["averaged_s"] == averaged_s
    assert (" 1 s average" in told["source"]) == bool(averaged_s)


def test_a_counter_that_isnt_supported_is_never_0(nvml_stub: NvmlStub) -> None:
    result = window(sampled(nvml_stub, "counter=0"))
    assert (result.method, result.valid, result.reasons) == ("sampled", True, ("samples_only",))
    assert result.joules == pytest.approx(594 * 20)


def test_a_counter_that_is_reset_is_left_for_the_samples(nvml_stub: NvmlStub) -> None:
    result = window(sampled(nvml_stub, events=[[115.0, "reset=1"]]))
    assert (result.method, result.valid, result.reasons) == ("sampled", True, ("counter_reset",))
    assert result.joules == pytest.approx(594 * 20)


def test_equal_counters_over_20_ms_are_no_energy(nvml_stub: NvmlStub) -> None:
    answer = sampled(nvml_stub, "counter_step_s=0.1", hz=100.0, seconds=1.0)
    result = window(answer, 100.52, 100.54, 100.0)
    assert (result.joules, result.valid) == (None, False)
    assert result.reasons == ("window_shorter_than_counter_step",)


@pytest.mark.parametrize(
    "event, reasons",
    [
        ("lost=1", ("counter_incomplete", "not_bracketed", "gpu_is_lost")),
        ("denied=1", ("counter_incomplete", "not_bracketed", "no_permission")),
    ],
)
def test_a_gpu_that_stops_answering_spoils_the_window_with_its_code(
    nvml_stub: NvmlStub, event: str, reasons: tuple[str, ...]
) -> None:
    answer = sampled(nvml_stub, count=2, events=[[115.0, event]])
    result = window(answer)
    assert (result.joules, result.valid, result.reasons) == (None, False, reasons)
    assert window(answer, 105, 114).valid
    assert answer.result["errors"] >= 150


def test_a_stall_is_bridged_by_the_counter_and_its_deadlines_are_counted(
    nvml_stub: NvmlStub,
) -> None:
    """A reading that takes more than two periods: two of three deadlines pass unread."""
    answer = sampled(nvml_stub, call_s=0.25)
    assert answer.result["skipped"] == pytest.approx(2 * len(answer.samples), rel=0.1)
    result = window(answer)
    assert (result.valid, result.method) == (True, "counter")
    assert result.reasons == ("coverage",)
    assert result.gaps == 200 - result.samples
    assert not window(sampled(nvml_stub, "counter=0", call_s=0.25)).valid


@pytest.mark.parametrize("state", ["gain=0", "gain=1000"])
def test_zeros_and_a_wrong_unit_are_refused(nvml_stub: NvmlStub, state: str) -> None:
    for counter in ("counter=1", "counter=0"):
        result = window(sampled(nvml_stub, f"{state} {counter}", count=4))
        assert (result.joules, result.valid) == (None, False)
        assert {"zero_power", "over_limit"} & set(result.reasons)


def test_a_meter_10_pct_wrong_shows_10_pct(nvml_stub: NvmlStub) -> None:
    result = window(sampled(nvml_stub, "gain=1.1"))
    assert result.difference_pct == pytest.approx(10, abs=0.1)
    assert (result.check_verdict, result.valid) == ("disagree", False)


@pytest.mark.parametrize("events", ["events=1", "events=0"])
def test_throttle_reasons_are_read_under_the_new_name_and_the_old(
    nvml_stub: NvmlStub, events: str
) -> None:
    bits = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80 | 0x100
    first = sampled(nvml_stub, f"{events} reasons={bits}", seconds=0.05).samples[0]
    assert first.throttle == (
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal",
        "hw_thermal",
        "hw_power_brake",
    )
    idle = sampled(nvml_stub, f"{events} reasons={0x103}", seconds=0.05).samples[0]
    assert idle.throttle == ()


def test_throttle_reasons_that_cant_be_read_are_unknown(nvml_stub: NvmlStub) -> None:
    result = window(sampled(nvml_stub, "events=-1 ns=0"))
    assert (result.throttle_samples, result.throttled_pct) == (0, None)


def test_throttled_time_comes_from_the_nanosecond_counters(nvml_stub: NvmlStub) -> None:
    """The bit is seen at every reading, the time is 30 %: the counters know better."""
    result = window(sampled(nvml_stub, "reasons=4 cap_share=0.3 thermal_share=0.02"))
    assert result.throttle_share_pct == pytest.approx({"sw_power_cap": 30, "sw_thermal": 2})
    assert result.throttle_counts == {"sw_power_cap": 201}
    old = window(sampled(nvml_stub, "ns=2 cap_share=0.3 thermal_share=0.02"))
    assert old.throttle_share_pct == pytest.approx({"sw_power_cap": 30, "thermal": 2})
    none = window(sampled(nvml_stub, "ns=0 reasons=4"))
    assert none.throttle_share_pct == {"sw_power_cap": 100}


def test_a_driver_without_the_new_temperature_call_still_tells_it(nvml_stub: NvmlStub) -> None:
    assert sampled(nvml_stub, "temperature_v=0", seconds=0.05).samples[0].temperature_c == 55
    assert sampled(nvml_stub, "temperature_v=-1", seconds=0.05).samples[0].temperature_c is None


@pytest.mark.parametrize(
    "gpus, devices",
    [
        (None, [0, 1]),
        ([3, 1], [3, 1]),
        ([uuid(2), 0], [2, 0]),
    ],
)
def test_gpus_are_pinned_by_uuid(
    nvml_stub: NvmlStub, gpus: list[int | str] | None, devices: list[int]
) -> None:
    answer = sampled(nvml_stub, gpus=gpus, count=2, seconds=0.05)
    assert answer.result["devices"] == [uuid(k) for k in devices]


@pytest.mark.parametrize(
    "state, request_, kind, text",
    [
        ("mig=1", {}, "RefusedError", "split by MIG"),
        ("usage=0 fields=0", {}, "RefusedError", "doesn't tell its power (not_supported)"),
        ("denied=1", {}, "RefusedError", "doesn't tell its power (no_permission)"),
        ("module=2", {"count": 2}, "RefusedError", "no sum of one scope"),
        ("by_uuid=0", {}, "RefusedError", "doesn't answer (nvml_6)"),
        ("init=9", {}, "RefusedError", "isn't loaded"),
        ("init=4", {}, "RefusedError", "refuses this user"),
        ("init=18", {}, "RefusedError", "of two versions"),
        ("init=999", {}, "RefusedError", "the NVIDIA driver fails"),
        ("gpus=2", {"count": 4}, "UsageError", "needs 4 accelerators"),
        ("gpus=0", {}, "UsageError", "this machine shows 0"),
        ("lost=1", {"count": 2}, "UsageError", "accelerator 1 isn't there or doesn't answer"),
        ("", {"gpus": [9]}, "UsageError", "accelerator 9"),
        ("", {"gpus": ["GPU-x"]}, "UsageError", "no accelerator GPU-x"),
        ("", {"gpus": [0, 0], "count": 2}, "UsageError", "twice"),
        ("", {"gpus": [0, 1]}, "UsageError", "names 2 accelerators, the model needs 1"),
        ("", {"count": 0}, "UsageError", "isn't known"),
    ],
)
def test_what_cant_be_measured_is_refused_with_the_next_step(
    nvml_stub: NvmlStub, state: str, request_: dict[str, object], kind: str, text: str
) -> None:
    answer = sampled(nvml_stub, state, **request_)
    assert answer.kind == kind
    assert text in answer.error
    assert answer.hint


def test_a_lost_gpu_that_isnt_asked_for_is_no_matter(nvml_stub: NvmlStub) -> None:
    assert sampled(nvml_stub, "lost=0", gpus=[1], seconds=0.05).result["devices"] == [uuid(1)]


def test_a_board_shared_by_mig_is_published_as_that(nvml_stub: NvmlStub) -> None:
    answer = sampled(nvml_stub, "mig=1", power=BOARD | {"scope": "shared_board"}, seconds=0.05)
    assert answer.result["scope"] == "shared_board"
    assert answer.result["source"].startswith("GPU shared board power sum")


def test_without_a_driver_the_next_step_is_told(tmp_path: Path) -> None:
    """A file that is no library hides a driver that this machine may have."""
    (tmp_path / "libnvidia-ml.so.1").touch()
    hardware = {"adapter": "nvidia"}
    with start(os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}) as child:
        answer = ask(child, do="identify", hardware=hardware)
    assert answer.kind == "RefusedError"
    assert "no NVIDIA driver on this machine" in answer.error
    assert "power.source to none" in answer.hint


def test_accelerators_are_named_by_the_driver(nvml_stub: NvmlStub) -> None:
    model = {"replicas": 1, "tensor_parallel": 2, "pipeline_parallel": 2}
    answer = nvml_stub.ask(
        "limit_w=650", do="identify", hardware={"adapter": "nvidia"}, model=model
    )
    assert answer.result == {
        "vendor": "NVIDIA",
        "name": "NVIDIA H200",
        "count": 4,
        "driver": "595.91.07",
        "uuids": [uuid(k) for k in range(4)],
        "power_limit_w": 650,
        "rated_bw_tbs_per_gpu": None,
        "notes": [],
    }


def test_accelerators_without_a_limit_have_none(nvml_stub: NvmlStub) -> None:
    hardware = {"adapter": "nvidia", "gpus": [uuid(3)], "rated_bw_tbs_per_gpu": 4.8}
    answer = nvml_stub.ask("limit_w=0", do="identify", hardware=hardware)
    assert (answer.result["power_limit_w"], answer.result["rated_bw_tbs_per_gpu"]) == (None, 4.8)
    assert answer.result["uuids"] == [uuid(3)]


def test_accelerators_of_two_kinds_are_refused(nvml_stub: NvmlStub) -> None:
    hardware = {"adapter": "nvidia"}
    answer = nvml_stub.ask("kinds=2", do="identify", hardware=hardware, model={"replicas": 2})
    assert (answer.kind, "NVIDIA H100, NVIDIA H200" in answer.error) == ("UsageError", True)


def test_limits_that_differ_and_cudas_own_order_are_told(
    nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"do": "identify", "hardware": {"adapter": "nvidia"}, "model": {"replicas": 2}}
    answer = nvml_stub.ask("limit_w=600 limit_step_w=100", **asked)
    assert answer.result["power_limit_w"] == 700
    assert answer.result["notes"] == ["power limits differ, 600 to 700 W: the highest is published"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    with start(nvml_stub.environment()) as child:
        assert "first GPUs in PCI order" in ask(child, **asked).result["notes"][0]
        named = {"adapter": "nvidia", "gpus": [2, 3]}
        assert ask(child, **asked | {"hardware": named}).result["notes"] == []
