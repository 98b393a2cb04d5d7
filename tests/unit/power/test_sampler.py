"""The sampler on a clock that only waiting and reading move: nothing here sleeps."""

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power import sampler as sampler_module
from tokenwatt_site.power.sampler import Sampler, reading


class Time:
    """A clock; ``wait`` moves it and says when it is over."""

    def __init__(self, end_s: float) -> None:
        self.t_s = 50.0
        self.end_s = 50.0 + end_s

    def now(self) -> float:
        return self.t_s

    def wait(self, seconds: float) -> bool:
        self.t_s += seconds
        return self.t_s >= self.end_s - 1e-9


class Meter:
    """Two devices; a reading takes ``takes_s(k)`` of the clock."""

    name = "test"
    source = "a meter"
    scope = "board"
    gain_pct = None
    devices = ("a", "b")

    def __init__(self, time: Time, takes_s: Callable[[int], float] = lambda _: 0.0) -> None:
        self.time = time
        self.takes_s = takes_s
        self.reads = 0

    def read(self) -> list[PowerSample]:
        began_s = self.time.t_s
        self.time.t_s += self.takes_s(self.reads)
        self.reads += 1
        t_s = (began_s + self.time.t_s) / 2
        return [PowerSample(t_s, device, power_w=100.0) for device in self.devices]

    def close(self) -> None:
        pass


def stamps(sampler: Sampler) -> list[float]:
    return [sample.t_s - 50 for sample in sampler.stop() if sample.device == "a"]


def run(end_s: float, takes_s: Callable[[int], float] = lambda _: 0.0, hz: float = 10) -> Sampler:
    time = Time(end_s)
    sampler = Sampler(Meter(time, takes_s), hz, clock=time.now, wait=time.wait)
    sampler.run()
    return sampler


def test_deadlines_are_absolute_whatever_a_reading_takes() -> None:
    sampler = run(1.0, lambda k: 0.01 * (k % 5))
    expected = [0.1 * k + 0.005 * (k % 5) for k in range(11)]
    assert stamps(sampler) == pytest.approx(expected)
    assert sampler.skipped == 0


def test_deadlines_that_pass_are_counted_and_not_made_up_for() -> None:
    sampler = run(1.0, lambda k: 0.35 if k == 2 else 0.0)
    assert stamps(sampler) == pytest.approx([0, 0.1, 0.375, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert sampler.skipped == 3


def test_a_last_reading_brackets_the_end() -> None:
    sampler = run(0.25, hz=10)
    assert stamps(sampler)[-1] >= 0.25


def test_a_meter_that_breaks_is_a_gap() -> None:
    time = Time(0.5)
    meter = Meter(time)
    meter.takes_s = lambda k: 1 / (k - 3)
    meter.reads = 3
    sampler = Sampler(meter, 10, clock=time.now, wait=time.wait)
    sampler.run()
    assert {sample.error for sample in sampler.stop()} == {"meter_failed"}
    assert {sample.device for sample in sampler.stop()} == {"a", "b"}
    assert sampler.errors == len(sampler.stop()) == 12
    assert sampler.recent()[0].power_w is None


def test_samples_of_a_time_are_found() -> None:
    sampler = run(2.0)
    found = sampler.between(50.5, 51.0)
    assert [s.t_s - 50 for s in found if s.device == "b"] == pytest.approx(
        [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    )
    assert sampler.between(0, 1) == []
    assert len(sampler.between(0, 100)) == len(sampler.stop())


def test_the_last_reading_can_be_shown_at_any_time() -> None:
    time = Time(1.0)
    sampler = Sampler(Meter(time), 10, clock=time.now, wait=time.wait)
    assert sampler.recent() == []
    sampler.run()
    assert [sample.device for sample in sampler.recent()] == ["a", "b"]


def test_a_thread_of_its_own_reads_until_stop() -> None:
    """Waits for what the thread does, never for a time."""
    read = threading.Event()

    class Told(Meter):
        def read(self) -> list[PowerSample]:
            samples = super().read()
            if self.reads >= 3:
                read.set()
            return samples

    sampler = Sampler(Told(Time(0)), 1000)
    sampler.start()
    assert read.wait(10)
    taken = sampler.stop()
    assert len(taken) >= 8
    assert taken == sampler.stop()
    assert not any(thread.name == "meter-test" for thread in threading.enumerate())


def test_stop_before_start_has_nothing() -> None:
    assert Sampler(Meter(Time(0)), 10).stop() == []


def test_readings_of_an_earlier_time_are_put_in_their_place() -> None:
    time = Time(0.4)
    meter = Meter(time)
    times = iter([50.0, 50.2, 50.1, 50.1, 50.4])
    meter.read = lambda: [PowerSample(next(times), "a", power_w=100.0)]  # type: ignore[method-assign]
    sampler = Sampler(meter, 10, clock=time.now, wait=time.wait)
    sampler.run()
    assert stamps(sampler) == pytest.approx([0, 0.1, 0.1, 0.2, 0.4])
    assert [sample.t_s for sample in sampler.between(50.05, 50.25)] == [50.1, 50.1, 50.2]


def test_meters_that_hang_are_waited_for_together_and_never_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler_module, "JOIN_S", 0.05)
    release, closed = threading.Event(), threading.Event()

    class Hung(Meter):
        def read(self) -> list[PowerSample]:
            release.wait()
            return []

        def close(self) -> None:
            closed.set()

    with ExitStack() as stack:
        asked = SpecPower(source="command")
        samplers = [reading(Hung(Time(1.0)), asked, stack) for _ in range(3)]
        for each in samplers:
            each.signal()
        assert [each.stop() for each in samplers] == [[], [], []]
        assert all(each.hangs for each in samplers)
    assert not closed.is_set()
    release.set()
