"""Energy of a window: what counts, what is refused, and under which code."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tokenwatt_site.method.energy import REASONS, EnergyWindow, after_average, energy_window
from tokenwatt_site.method.samples import PowerSample

W0, W1, HZ = 100.0, 160.0, 10.0
Wave = Callable[[float], float]


def readings(
    watts: float | Wave = 500.0,
    *,
    device: str = "gpu-0",
    counter: bool | float = True,
    hz: float = HZ,
    start: float = 95.0,
    end: float = 165.0,
) -> list[PowerSample]:
    """Read one device on a grid; ``counter`` is a gain on the true energy (False hides it)."""
    samples, energy, last = [], 1000.0, start
    for k in range(round((end - start) * hz) + 1):
        t = start + k / hz
        now = watts(t) if callable(watts) else watts
        mean = watts((t + last) / 2) if callable(watts) else watts
        energy += (t - last) * mean * float(counter)
        last = t
        samples.append(
            PowerSample(t, device, power_w=now, energy_j=energy if counter else None, limit_w=700.0)
        )
    return samples


def measured(samples: Iterable[PowerSample], *devices: str, hz: float = HZ) -> EnergyWindow:
    return energy_window(samples, devices or ("gpu-0",), W0, W1, hz)


def without(samples: list[PowerSample], start: float, end: float) -> list[PowerSample]:
    return [sample for sample in samples if not start < sample.t_s < end]


def test_counter_goes_first_and_samples_check_it() -> None:
    window = measured(readings())
    assert window.joules == pytest.approx(30_000)
    assert (window.method, window.valid, window.reasons) == ("counter", True, ())
    assert (window.check_method, window.check_verdict) == ("sampled", "agree")
    assert window.check_joules == pytest.approx(30_000)
    assert window.mean_w == pytest.approx(500)
    assert (window.samples, window.gaps, window.power_limit_w) == (601, 0, 700)


def test_without_a_counter_the_samples_are_integrated_and_it_says_so() -> None:
    window = measured(readings(counter=False))
    assert window.joules == pytest.approx(30_000)
    assert (window.method, window.valid, window.reasons) == ("sampled", True, ("samples_only",))
    assert (window.check_joules, window.check_verdict, window.difference_pct) == (None, None, None)


def test_without_samples_the_counter_stands_alone() -> None:
    window = measured(replace(sample, power_w=None) for sample in readings())
    assert window.joules == pytest.approx(30_000)
    assert (window.method, window.valid, window.reasons) == ("counter", True, ("counter_only",))
    assert (window.samples, window.gaps) == (601, 0)


def test_both_edges_are_interpolated() -> None:
    ramp = readings(lambda t: 10 * (t - 90), counter=False)
    window = energy_window(ramp, ["gpu-0"], 100.033, 159.987, HZ)
    assert window.joules == pytest.approx((100.33 + 699.87) / 2 * 59.954)


def test_only_the_window_counts() -> None:
    """60 s at 120 W, 120 s at 720 W, 60 s at 300 W: 720 W, not the mean of the trace."""

    def phases(t: float) -> float:
        return 120.0 if t < 60 else 720.0 if t <= 180 else 300.0

    samples = readings(phases, counter=False, start=0, end=240)
    assert energy_window(samples, ["gpu-0"], 60, 180, HZ).mean_w == pytest.approx(720)


def test_devices_are_summed_never_averaged() -> None:
    watts = {"a": 594.0, "b": 595.0, "c": 596.0, "d": 597.0}
    samples = [sample for name, w in watts.items() for sample in readings(w, device=name)]
    window = measured(samples, *watts)
    assert window.mean_w == pytest.approx(2382)
    assert window.per_device_j == pytest.approx({name: 60 * w for name, w in watts.items()})


def test_readings_of_other_devices_are_left_out() -> None:
    samples = readings() + readings(400, device="gpu-1")
    assert measured(samples).joules == pytest.approx(30_000)


@pytest.mark.parametrize(
    "gain, verdict, reasons, valid",
    [
        (0.981, "agree", (), True),
        (0.975, "warn", ("meters_differ",), True),
        (0.953, "warn", ("meters_differ",), True),
        (0.95, "disagree", ("meters_disagree",), False),
        (1.1, "disagree", ("meters_disagree",), False),
        (187 / 327, "disagree", ("meters_disagree",), False),
    ],
)
def test_counter_and_samples_are_compared(
    gain: float, verdict: str, reasons: tuple[str, ...], *, valid: bool
) -> None:
    window = measured(readings(counter=gain))
    assert (window.check_verdict, window.reasons, window.valid) == (verdict, reasons, valid)
    assert window.difference_pct == pytest.approx(100 * (1 / gain - 1))
    assert window.joules == pytest.approx(30_000 * gain)


def drop(index: int) -> Callable[[list[PowerSample]], list[PowerSample]]:
    return lambda samples: samples[:index] + samples[index + 1 :]


def every(nth: int) -> Callable[[list[PowerSample]], list[PowerSample]]:
    return lambda samples: [sample for k, sample in enumerate(samples) if k % nth]


@pytest.mark.parametrize(
    "spoil, reasons, joules",
    [
        (drop(200), (), 30_000),
        (lambda s: without(s, 120, 121.0), (), 30_000),
        (lambda s: without(s, 120, 121.1), ("gap",), 30_000),
        (lambda s: without(s, 120, 130), ("gap", "coverage"), 30_000),
        (every(21), (), 30_000),
        (every(19), ("coverage",), 30_000),
        (lambda s: without(s, 0, 100.05), ("not_bracketed",), None),
        (lambda s: without(s, 159.95, 200), ("not_bracketed",), None),
        (lambda s: without(s, 98, 101), ("not_bracketed",), None),
        (lambda s: without(s, 99.95, 200), ("not_bracketed",), None),
        (lambda _: [], ("device_missing",), None),
        (lambda s: without(s, 90, 170), ("device_missing",), None),
    ],
)
def test_samples_that_miss_time_are_no_measurement(
    spoil: Callable[[list[PowerSample]], list[PowerSample]],
    reasons: tuple[str, ...],
    joules: float | None,
) -> None:
    window = measured(spoil(readings(counter=False)))
    expected = ("samples_only", *reasons) if reasons != ("device_missing",) else reasons
    assert window.reasons == expected
    assert window.valid is (not reasons)
    assert window.joules == (None if joules is None else pytest.approx(joules))


def test_a_counter_bridges_what_the_samples_miss() -> None:
    window = measured(without(readings(), 120, 130))
    assert (window.joules, window.valid) == (pytest.approx(30_000), True)
    assert window.reasons == ("gap", "coverage")
    assert window.check_verdict is None
    assert window.gaps == 98  # 99 are missing of 601, and 600 are expected


def test_a_counter_read_far_from_an_edge_is_not_used() -> None:
    window = measured(without(readings(), 99.5, 101.5))
    assert "counter_incomplete" in window.reasons
    assert not window.valid


def test_a_burst_after_a_stall_hides_no_missed_deadline() -> None:
    samples = without(readings(counter=False), 120, 129)
    late = [replace(samples[0], t_s=129 - k / 1000) for k in range(90)]
    window = measured(samples + late)
    assert window.reasons == ("samples_only", "gap", "coverage")
    assert window.gaps == 87


def test_one_missing_device_spoils_the_sum() -> None:
    samples = readings() + readings(device="gpu-1")
    window = measured(samples, "gpu-0", "gpu-1", "gpu-2")
    assert (window.joules, window.valid, window.per_device_j) == (None, False, {})
    assert window.reasons == ("counter_incomplete", "device_missing")


def test_a_device_that_dies_names_its_error() -> None:
    dead = [
        replace(sample, power_w=None, energy_j=None, error="gpu_is_lost")
        if sample.t_s > 130
        else sample
        for sample in readings(device="gpu-1")
    ]
    window = measured(readings() + dead, "gpu-0", "gpu-1")
    assert window.reasons == ("counter_incomplete", "not_bracketed", "gpu_is_lost")
    assert (window.joules, window.valid, window.gaps) == (None, False, 299)


def test_one_failed_reading_is_a_gap_and_no_reason() -> None:
    samples = readings(counter=False)
    samples[300] = replace(samples[300], power_w=None, error="timeout")
    window = measured(samples)
    assert (window.valid, window.gaps, window.reasons) == (True, 0, ("samples_only",))
    samples[301] = replace(samples[301], power_w=None, error="timeout")
    assert measured(samples).gaps == 1


@pytest.mark.parametrize("lie", [math.nan, math.inf, -math.inf, -5.0, 0.0])
def test_a_value_that_is_no_reading_is_a_gap(lie: float) -> None:
    samples = readings(counter=False)
    samples[300] = replace(samples[300], power_w=lie)
    window = measured(samples)
    assert (window.valid, window.joules) == (True, pytest.approx(30_000))
    spoiled = measured([replace(s, power_w=lie) if 110 < s.t_s < 120 else s for s in samples])
    assert not spoiled.valid
    assert {"gap", "coverage"} <= set(spoiled.reasons)


@pytest.mark.parametrize("counter", [True, False])
def test_zeros_are_refused_whatever_the_counter_says(*, counter: bool) -> None:
    names = [f"gpu-{k}" for k in range(4)]
    samples = [s for name in names for s in readings(device=name, counter=counter)]
    window = measured([replace(sample, power_w=0.0) for sample in samples], *names)
    assert (window.joules, window.valid) == (None, False)
    assert "zero_power" in window.reasons


@pytest.mark.parametrize("watts", [594_000.0, 1400.1])
def test_power_over_twice_the_limit_is_refused(watts: float) -> None:
    window = measured(readings(watts, counter=False))
    assert (window.joules, window.valid) == (None, False)
    assert "over_limit" in window.reasons


def test_one_reading_over_twice_the_limit_is_refused_too() -> None:
    samples = readings()
    samples[300] = replace(samples[300], power_w=65_535.0)
    window = measured(samples)
    assert (window.joules, window.valid, window.reasons) == (None, False, ("over_limit",))


def test_a_counter_in_another_unit_is_refused() -> None:
    window = measured(readings(counter=1000.0))
    assert (window.joules, window.valid, window.reasons) == (None, False, ("over_limit",))


def test_without_a_limit_nothing_is_over_it() -> None:
    samples = [replace(sample, limit_w=None) for sample in readings(5000.0)]
    window = measured(samples)
    assert (window.valid, window.power_limit_w) == (True, None)


def test_a_counter_that_is_reset_is_left_for_the_samples() -> None:
    samples = [
        replace(sample, energy_j=(sample.energy_j or 0) - (25_000 if sample.t_s > 130 else 0))
        for sample in readings()
    ]
    window = measured(samples)
    assert window.joules == pytest.approx(30_000)
    assert (window.method, window.valid, window.reasons) == ("sampled", True, ("counter_reset",))


def test_a_reset_outside_the_window_does_no_harm() -> None:
    samples = [
        replace(sample, energy_j=(sample.energy_j or 0) - (900 if sample.t_s > 163 else 0))
        for sample in readings()
    ]
    assert measured(samples).reasons == ()


def test_a_frozen_counter_is_left_for_the_samples() -> None:
    window = measured([replace(sample, energy_j=5.0) for sample in readings()])
    assert (window.method, window.valid, window.reasons) == ("sampled", True, ("counter_frozen",))


def test_equal_counters_over_20_ms_are_no_energy() -> None:
    samples = [replace(s, t_s=100 + k / 100, energy_j=7.0) for k, s in enumerate(readings()[:4])]
    window = energy_window(samples, ["gpu-0"], 100.005, 100.025, 100)
    assert (window.joules, window.mean_w, window.valid) == (None, None, False)
    assert "window_shorter_than_counter_step" in window.reasons


def test_a_slow_poll_of_a_square_wave_is_found_out_by_the_counter() -> None:
    """1 Hz against a 1 Hz square wave: 794 W read, 594 W used."""
    samples = readings(lambda t: 794.0 if t % 1 < 0.5 else 394.0, counter=False, hz=1)
    true = [replace(s, energy_j=594.0 * s.t_s, limit_w=None) for s in samples]
    window = measured(true, hz=1)
    assert window.mean_w == pytest.approx(594)
    assert window.check_joules == pytest.approx(60 * 794)
    assert (window.check_verdict, window.valid) == ("disagree", False)
    assert measured(samples, hz=1).mean_w == pytest.approx(794)


def test_a_meter_that_repeats_a_few_values_is_too_slow() -> None:
    samples = readings(lambda t: 500.0 + t // 8, counter=False)
    window = measured(samples)
    assert (window.valid, window.reasons) == (False, ("samples_only", "few_values"))
    assert measured(readings(lambda t: 500.0 + t // 5, counter=False)).valid
    assert measured(readings(lambda t: 500.0 + t // 8)).valid  # its counter stands


def test_a_scraped_counter_needs_a_long_window() -> None:
    samples = [
        PowerSample(float(k), "gpu-0", energy_j=500.0 * 15 * ((k + 7) // 15)) for k in range(700)
    ]
    short = energy_window(samples, ["gpu-0"], 100, 160, 1)
    assert (short.valid, short.reasons) == (False, ("counter_only", "edges_wide"))
    long = energy_window(samples, ["gpu-0"], 100, 460, 1)
    assert (long.valid, long.reasons) == (True, ("counter_only",))
    assert long.edges_j == pytest.approx(1.13 * 15 * 500, rel=0.1)
    assert long.joules == pytest.approx(360 * 500, abs=long.edges_j or 0)


def test_a_window_that_begins_inside_an_average_is_no_measurement() -> None:
    window = measured(readings(counter=False))
    early = after_average(window, 1.0, 0.5)
    assert (early.valid, early.reasons) == (False, ("samples_only", "averaged_too_early"))
    assert after_average(window, 1.0, 1.0) == window
    counted = measured(readings())
    assert after_average(counted, 1.0, 0.5) == counted


def test_a_counter_has_edges_and_no_sampling() -> None:
    window = measured(readings())
    assert window.sampling_j is None
    assert window.edges_j == pytest.approx(0, abs=1e-6)


def throttled(share: float, *, clocked: float | None) -> list[PowerSample]:
    """Set the cap in ``share`` of the readings, and its counter to ``clocked`` of the time."""
    return [
        replace(
            sample,
            throttle=("sw_power_cap",) if k % 10 < 10 * share else (),
            throttle_ns={"sw_power_cap": int(sample.t_s * clocked * 1e9)} if clocked else {},
        )
        for k, sample in enumerate(readings())
    ]


def test_throttling_is_counted_by_device_sample() -> None:
    window = measured(throttled(0.2, clocked=None))
    assert (window.throttle_counts, window.throttle_samples) == ({"sw_power_cap": 121}, 601)
    assert window.throttle_share_pct == pytest.approx({"sw_power_cap": 100 * 121 / 601})
    assert window.throttled_pct == pytest.approx(100 * 121 / 601)


def test_nanosecond_counters_go_before_counts() -> None:
    window = measured(throttled(0.2, clocked=0.35))
    assert window.throttle_counts == {"sw_power_cap": 121}
    assert window.throttle_share_pct == pytest.approx({"sw_power_cap": 35})
    assert window.throttled_pct == pytest.approx(35)


def test_a_throttle_counter_in_another_unit_is_not_used() -> None:
    window = measured(throttled(0.2, clocked=1000))
    assert window.throttle_share_pct == pytest.approx({"sw_power_cap": 100 * 121 / 601})


def test_a_throttle_counter_that_is_reset_is_not_used() -> None:
    samples = throttled(0.2, clocked=0.35)
    samples[300] = replace(samples[300], throttle_ns={"sw_power_cap": 0})
    assert measured(samples).throttle_share_pct["sw_power_cap"] == pytest.approx(100 * 121 / 601)


def test_no_throttling_is_not_the_same_as_not_known() -> None:
    none = measured([replace(sample, throttle=()) for sample in readings()])
    assert (none.throttle_counts, none.throttle_samples, none.throttled_pct) == ({}, 601, 0)
    unknown = measured(readings())
    assert (unknown.throttle_counts, unknown.throttle_samples) == ({}, 0)
    assert unknown.throttled_pct is None


def test_throttle_counters_alone_give_a_share() -> None:
    samples = [replace(s, throttle=None) for s in throttled(0.2, clocked=0.35)]
    window = measured(samples)
    assert (window.throttle_counts, window.throttle_samples) == ({}, 0)
    assert window.throttled_pct == pytest.approx(35)


def test_two_reasons_at_once_count_once_in_the_share_of_any() -> None:
    samples = [replace(s, throttle=("sw_power_cap", "sw_thermal")) for s in readings()]
    window = measured(samples)
    assert window.throttle_counts == {"sw_power_cap": 601, "sw_thermal": 601}
    assert window.throttled_pct == 100


def test_every_code_has_its_sentence() -> None:
    codes = set()
    for samples in (
        readings(counter=1.03), readings(counter=1.3), without(readings(), 99.5, 101.5), [],
        readings(counter=False), [replace(s, power_w=0.0) for s in readings()],
        readings(1500.0), without(readings(counter=False), 120, 130),
    ):  # fmt: skip
        codes |= set(measured(samples).reasons)
    assert codes <= set(REASONS)


@pytest.mark.parametrize(
    "devices, w0, w1, hz", [((), 0, 1, 10), (("a",), 1, 1, 10), (("a",), 0, 1, 0)]
)
def test_a_window_of_nothing_is_a_mistake(
    devices: tuple[str, ...], w0: float, w1: float, hz: float
) -> None:
    with pytest.raises(ValueError, match="no "):
        energy_window([], devices, w0, w1, hz)


def test_the_figure_is_plain_json() -> None:
    window = measured(readings())
    fields = {name: getattr(window, name) for name in window.__slots__}
    assert json.loads(json.dumps(fields, allow_nan=False))["method"] == "counter"


def test_every_code_is_in_the_docs(root: Path) -> None:
    told = (root / "docs" / "power.md").read_text(encoding="utf-8")
    assert [f"| `{code}` | {text} |" for code, text in REASONS.items()] == [
        line for line in told.split("| code | meaning |")[1].splitlines() if line.startswith("| `")
    ]
