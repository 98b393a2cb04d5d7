"""What holds of every integral, whatever the readings and the window."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.track import Track

HZ = 10.0
watts = st.floats(1, 2000)
steps = st.lists(st.floats(0.02, 0.3), min_size=24, max_size=40)


@st.composite
def traces(draw: st.DrawFn, *, constant: bool = False) -> list[PowerSample]:
    """Draw one device's readings at uneven times, with a counter of another, freer shape."""
    t, energy, samples = draw(st.floats(-1e4, 1e5)), draw(st.floats(0, 1e6)), []
    fixed = draw(watts)
    for step in draw(steps):
        t += step
        power = fixed if constant else draw(watts)
        energy += step * (fixed if constant else draw(watts))
        samples.append(PowerSample(t, "a", power_w=power, energy_j=energy))
    return samples


def within(samples: list[PowerSample], left: float, right: float) -> tuple[float, float]:
    first, last = samples[0].t_s, samples[-1].t_s
    return first + left * (last - first), last - right * (last - first)


cuts = st.floats(0.0, 0.45)


@given(traces(constant=True), cuts, cuts)
def test_constant_power_gives_power_times_time_however_it_is_sampled(
    samples: list[PowerSample], left: float, right: float
) -> None:
    w0, w1 = within(samples, left, right)
    window = energy_window(samples, ["a"], w0, w1, HZ)
    expected = (samples[0].power_w or 0) * (w1 - w0)
    assert window.joules == pytest.approx(expected, rel=1e-6)
    assert window.check_joules is None or window.check_joules == pytest.approx(expected, rel=1e-6)
    assert window.check_verdict in {"agree", None}


@given(traces(), cuts, cuts, st.floats(0.1, 0.9), st.booleans())
def test_adjacent_windows_add_up(
    samples: list[PowerSample],
    left: float,
    right: float,
    cut: float,
    counter: bool,  # noqa: FBT001 - Hypothesis gives arguments by position
) -> None:
    if not counter:
        samples = [replace(sample, energy_j=None) for sample in samples]
    w0, w1 = within(samples, left, right)
    middle = w0 + cut * (w1 - w0)
    whole, first, second = (
        energy_window(samples, ["a"], *edges, HZ)
        for edges in ((w0, w1), (w0, middle), (middle, w1))
    )
    assert whole.joules is not None
    assert first.joules is not None
    assert second.joules is not None
    assert first.joules + second.joules == pytest.approx(whole.joules, rel=1e-6)


@given(traces(), traces(), cuts, cuts)
def test_the_sum_over_devices_is_the_sum_of_the_devices(
    samples: list[PowerSample], others: list[PowerSample], left: float, right: float
) -> None:
    shift = samples[0].t_s - others[0].t_s
    stretch = (samples[-1].t_s - samples[0].t_s) / (others[-1].t_s - others[0].t_s)
    first = samples[0].t_s
    moved = [
        replace(other, device="b", t_s=first + (other.t_s + shift - first) * stretch)
        for other in others
    ]
    moved[-1] = replace(moved[-1], t_s=samples[-1].t_s)
    w0, w1 = within(samples, left, right)
    both = energy_window([*samples, *moved], ["a", "b"], w0, w1, HZ)
    a = energy_window(samples, ["a"], w0, w1, HZ)
    b = energy_window(moved, ["b"], w0, w1, HZ)
    if a.joules is not None and b.joules is not None and {a.method, b.method} == {both.method}:
        assert both.joules == pytest.approx(a.joules + b.joules, rel=1e-9)
        assert both.per_device_j == pytest.approx({"a": a.joules, "b": b.joules})


@given(traces(), cuts, cuts, st.floats(0.01, 100))
def test_the_figure_scales_with_the_power(
    samples: list[PowerSample], left: float, right: float, gain: float
) -> None:
    w0, w1 = within(samples, left, right)
    scaled = [
        replace(s, power_w=(s.power_w or 0) * gain, energy_j=(s.energy_j or 0) * gain)
        for s in samples
    ]
    once = energy_window(samples, ["a"], w0, w1, HZ)
    again = energy_window(scaled, ["a"], w0, w1, HZ)
    assert once.joules is not None
    assert again.joules == pytest.approx(once.joules * gain, rel=1e-6)
    assert once.valid or not again.valid or math.isclose(abs(again.difference_pct or 0), 5)


@given(traces(), st.randoms())
def test_the_order_of_the_readings_is_no_matter(samples: list[PowerSample], random: object) -> None:
    w0, w1 = within(samples, 0.1, 0.1)
    shuffled = sorted(samples, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert energy_window(shuffled, ["a"], w0, w1, HZ) == energy_window(samples, ["a"], w0, w1, HZ)


@given(traces(), st.floats(0.0, 1.0))
def test_a_track_passes_through_its_readings_and_stays_between_them(
    samples: list[PowerSample], place: float
) -> None:
    track = Track.of((sample.t_s, sample.power_w or 0) for sample in samples)
    for t, value in zip(track.times_s, track.values, strict=True):
        assert track.at(t) == value
    w0, w1 = within(samples, place * 0.99, 0.0)
    assert min(track.values) <= track.at(w0) <= max(track.values) * (1 + 1e-12)
    assert 0 <= track.area(w0, w1) <= max(track.values) * (w1 - w0) * (1 + 1e-6) + 1e-6


@given(traces(), cuts, cuts, st.floats(0.01, 100), st.booleans())
def test_the_doubt_scales_with_the_power_and_knows_no_order(
    samples: list[PowerSample],
    left: float,
    right: float,
    gain: float,
    counter: bool,  # noqa: FBT001 - Hypothesis gives arguments by position
) -> None:
    w0, w1 = within(samples, left, right)
    samples = [replace(s, energy_j=s.energy_j if counter else None) for s in samples]
    scaled = [
        replace(
            s,
            power_w=(s.power_w or 0) * gain,
            energy_j=None if s.energy_j is None else s.energy_j * gain,
        )
        for s in reversed(samples)
    ]
    once, again = (energy_window(each, ["a"], w0, w1, HZ) for each in (samples, scaled))
    for one, other in ((once.sampling_j, again.sampling_j), (once.edges_j, again.edges_j)):
        assert (one is None) is (other is None)
        if one is not None and other is not None:
            assert other == pytest.approx(one * gain, rel=1e-3, abs=1e-3 * gain)
