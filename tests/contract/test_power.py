"""What every meter that is built keeps to: parametrized over the dict, one line a meter."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.support.nvml_stub import NvmlStub
from tests.support.power_server import power_server
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power import METERS, open_meter
from tokenwatt_site.power.sampler import Sampler

SECONDS, HZ = 12.0, 10.0


@dataclass(frozen=True)
class Sampled:
    """A meter that was read for some time, two devices, through the real sampler."""

    name: str
    source: str
    scope: str
    devices: tuple[str, ...]
    samples: list[PowerSample]
    begin_s: float


def board(stack: ExitStack, stub: NvmlStub) -> Sampled:
    del stack
    answer = stub.ask(
        do="sample", power={"source": "board"}, count=2, hz=HZ, seconds=SECONDS, call_s=0.004
    )
    said = answer.result
    return Sampled(
        said["name"], said["source"], said["scope"], tuple(said["devices"]), answer.samples, 100.0
    )


def simulated(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """The page is served over HTTP; the clock and the waiting are the test's."""
    del stub
    page = stack.enter_context(power_server())
    time_s = 100.0

    def now() -> float:
        nonlocal time_s
        time_s += 0.001
        return time_s

    def wait(seconds: float) -> bool:
        nonlocal time_s
        time_s += seconds
        for entry in page.body["devices"]:
            entry["energy_j"] = entry["power_w"] * time_s
        return time_s >= 100 + SECONDS

    asked = SpecPower(source="simulated")
    meter = open_meter(asked, gpus=None, count=2, simulator_url=page.url)
    meter._clock = now  # type: ignore[attr-defined]
    wait(0.0)
    sampler = Sampler(meter, HZ, clock=now, wait=wait)
    sampler.run()
    meter.close()
    return Sampled(meter.name, meter.source, meter.scope, meter.devices, sampler.stop(), 100.0)


READ: dict[str, Callable[[ExitStack, NvmlStub], Sampled]] = {
    "board": board,
    "simulated": simulated,
}


@pytest.fixture(scope="module", params=METERS)
def read(request: pytest.FixtureRequest, nvml_stub: NvmlStub) -> Iterator[Sampled]:
    with ExitStack() as stack:
        yield READ[request.param](stack, nvml_stub)


def test_it_says_what_it_is(read: Sampled) -> None:
    assert read.name
    assert read.source[0].isupper()
    assert read.scope == "board"
    assert len(set(read.devices)) == 2


def test_every_reading_has_every_device_once_at_its_deadline(read: Sampled) -> None:
    for device in read.devices:
        stamps = [sample.t_s for sample in read.samples if sample.device == device]
        assert len(stamps) == SECONDS * HZ + 1
        late = [stamp - read.begin_s - k / HZ for k, stamp in enumerate(stamps)]
        assert min(late) >= 0
        assert max(late[:-1]) < 0.05
    assert {sample.device for sample in read.samples} == set(read.devices)


def test_units_are_watts_joules_and_nanoseconds(read: Sampled) -> None:
    for sample in read.samples:
        assert sample.error is None
        assert sample.power_w is not None
        assert 100 < sample.power_w < 1000
        assert sample.energy_j is not None
        assert sample.limit_w == 700
        assert sample.throttle == ()
        assert sample.throttle_ns["sw_power_cap"] == 0


def test_counter_and_samples_tell_one_energy(read: Sampled) -> None:
    window = energy_window(read.samples, read.devices, 101.5, 111.5, HZ)
    assert (window.method, window.valid, window.reasons) == ("counter", True, ())
    assert window.check_verdict == "agree"
    assert window.joules == pytest.approx(sum(window.per_device_j.values()))
    first = {sample.device: sample.power_w or 0 for sample in read.samples[:2]}
    assert window.joules == pytest.approx(10 * sum(first.values()), rel=0.005)
