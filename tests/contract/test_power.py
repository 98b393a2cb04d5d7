"""What every meter that is built keeps to: parametrized over the dict, one line a meter."""

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.amd_stub import AmdStub
from tests.support.amd_stub import build as build_amd
from tests.support.bmc import PASSWORD, bmc
from tests.support.nvml_stub import NvmlStub
from tests.support.power_server import power_server
from tests.support.prometheus import dcgm_page, exporter, until
from tests.support.prometheus import prometheus as prometheus_server
from tests.support.redfish import controller
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.evidence import power_row
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.power_log import header_row
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power import METERS, open_meter
from tokenwatt_site.power.meter import Meter
from tokenwatt_site.power.sampler import Sampler

SECONDS, HZ = 12.0, 10.0


@dataclass(frozen=True)
class Sampled:
    """A meter that was read for some time through the real sampler."""

    name: str
    source: str
    scope: str
    devices: tuple[str, ...]
    samples: list[PowerSample]
    begin_s: float
    count: int = 2
    scopes: str = "board"
    power: bool = True
    """It reads power."""
    counter: bool = True
    """It reads a running energy."""
    limits: bool = True
    """It reads the power limit, and whether and how long it throttled."""
    hz: float = HZ
    window_s: tuple[float, float] = (101.5, 111.5)
    own_stamps: bool = False
    """Its readings have times of their own, and one may be read twice."""


def board(stack: ExitStack, stub: NvmlStub) -> Sampled:
    del stack
    answer = stub.ask(
        do="sample", power={"source": "board"}, count=2, hz=HZ, seconds=SECONDS, call_s=0.004
    )
    said = answer.result
    return Sampled(
        said["name"], said["source"], said["scope"], tuple(said["devices"]), answer.samples, 100.0
    )


def amd(stack: ExitStack, stub: NvmlStub) -> Sampled:
    del stub
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    stub_of_amd = AmdStub(build_amd(folder))
    stack.callback(stub_of_amd.close)
    asked = {"do": "sample", "power": {"source": "amd"}, "count": 2, "hz": HZ, "seconds": SECONDS}
    answer = stub_of_amd.ask("limit_w=700", call_s=0.004, **asked)
    said = answer.result
    return Sampled(
        said["name"], said["source"], said["scope"], tuple(said["devices"]), answer.samples, 100.0
    )


def simulated(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """The page is served over HTTP; the clock and the waiting are the test's."""
    del stub
    page = stack.enter_context(power_server())

    def advance(time_s: float) -> None:
        for entry in page.body["devices"]:
            entry["energy_j"] = entry["power_w"] * time_s

    asked = SpecPower(source="simulated")
    meter = open_meter(asked, gpus=None, count=2, simulator_url=page.url)
    return in_virtual_time(meter, advance)


def rapl(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """Two packages, at 200 and 300 W, the second of which starts again from 0."""
    del stub
    root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for number in range(2):
        files = {"name": f"package-{number}", "max_energy_range_uj": "262143328850"}
        write(root / f"intel-rapl:{number}", files | {"energy_uj": str(number)})

    def advance(time_s: float) -> None:
        for number in range(2):
            uj = 262_140_000_000 * number + round((200 + 100 * number) * (time_s - 100) * 1e6)
            (root / f"intel-rapl:{number}/energy_uj").write_text(f"{uj % 262_143_328_850}")

    advance(100.0)
    asked = SpecPower(source="rapl", path=str(root))
    meter = open_meter(asked, gpus=None, count=2, simulator_url=None)
    read = in_virtual_time(meter, advance)
    return replace(read, scopes="package", power=False, limits=False)


def hwmon(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """One sensor of a chip that has two."""
    del stub
    root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    rails = {f"power{n}_label": f"rail {n}" for n in (1, 2)}
    write(root / "hwmon0", {"name": "ina3221", "power1_input": "1", **rails})
    (root / "hwmon0/power2_input").write_text("612500000")
    asked = SpecPower(source="hwmon", path=str(root), field="rail 2", scope="module")
    meter = open_meter(asked, gpus=None, count=0, simulator_url=None)
    read = in_virtual_time(meter, lambda _: None)
    return replace(read, count=1, scopes="module", counter=False, limits=False)


def prometheus(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """Debian's server, scraping a page of two GPUs ten times a second; in real time."""
    del stub
    page = stack.enter_context(exporter(dcgm_page))
    url = stack.enter_context(prometheus_server(page))
    asked = SpecPower(source="prometheus", url=url, sampling_hz=1)
    meter = open_meter(asked, gpus=None, count=2, simulator_url=None)
    sampler = Sampler(meter, 5)
    sampler.start()
    until(lambda: len(sampler.between(0, math.inf)) > 2 * 5 * 3, "three seconds of readings")
    samples = sampler.stop()
    meter.close()
    edges_s = (samples[0].t_s, samples[-1].t_s)
    read = Sampled(meter.name, meter.source, meter.scope, meter.devices, samples, edges_s[0])
    return replace(read, limits=False, own_stamps=True, hz=1.0, window_s=edges_s)


def ipmi(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """Real ipmitool, a process a reading, against a controller on pyghmi."""
    del stub
    host, _ = stack.enter_context(bmc(612))
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("BMC_PASSWORD", PASSWORD)
    given = {"host": host, "username": "reader", "password_env": "BMC_PASSWORD"}
    asked = SpecPower.model_validate({"source": "ipmi", **given})
    meter = open_meter(asked, gpus=None, count=0, simulator_url=None)
    read = in_virtual_time(meter, lambda _: None)
    return replace(read, count=1, scopes="node_ac", counter=False, limits=False)


def command(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """A program that prints kilowatts in JSON."""
    del stack, stub
    given = {"command": ["echo", '{"w": 0.6125}'], "field": "w", "unit": "kW"}
    asked = SpecPower.model_validate(
        {"source": "command", "scope": "node_dc", "quantity": "power", **given}
    )
    meter = open_meter(asked, gpus=None, count=0, simulator_url=None)
    read = in_virtual_time(meter, lambda _: None)
    return replace(read, count=1, scopes="node_dc", counter=False, limits=False)


def redfish(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """A controller's chassis, over HTTP."""
    del stub
    bmc = stack.enter_context(controller())
    bmc.power("1", {"PowerConsumedWatts": 612.5})
    meter = open_meter(
        SpecPower(source="redfish", url=bmc.url), gpus=None, count=0, simulator_url=None
    )
    read = in_virtual_time(meter, lambda _: None)
    return replace(read, count=1, scopes="node_ac", counter=False, limits=False)


def replay(stack: ExitStack, stub: NvmlStub) -> Sampled:
    """A log of two devices, 10 readings a second for longer than it is read."""
    del stub
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "logs"
    facts = MeterFacts("board", ("a", "b"), HZ, "board", "Two boards")
    samples = [
        PowerSample(k / HZ, name, 300.0, 30.0 * k, (), {"sw_power_cap": 0}, 700.0)
        for k in range(200)
        for name in facts.devices
    ]
    rows = [header_row(facts, ""), *(power_row(sample, 0, 0.0) for sample in samples)]
    write(folder, {"a.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    asked = SpecPower(source="replay", path="a.jsonl")
    meter = open_meter(asked, gpus=None, count=0, simulator_url=None, folder=folder)
    meter._shift_s = 100.0  # type: ignore[attr-defined]
    return replace(in_virtual_time(meter, lambda _: None), own_stamps=True)


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)


def in_virtual_time(meter: Meter, advance: Callable[[float], None]) -> Sampled:
    """Sample a meter whose clock and waiting are the test's; ``advance`` is told the time, s."""
    time_s = 100.0

    def now() -> float:
        nonlocal time_s
        time_s += 0.001
        return time_s

    def wait(seconds: float) -> bool:
        nonlocal time_s
        time_s += seconds
        advance(time_s)
        return time_s >= 100 + SECONDS

    meter._clock = now  # type: ignore[attr-defined]
    wait(0.0)
    sampler = Sampler(meter, HZ, clock=now, wait=wait)
    sampler.run()
    meter.close()
    return Sampled(meter.name, meter.source, meter.scope, meter.devices, sampler.stop(), 100.0)


READ: dict[str, Callable[[ExitStack, NvmlStub], Sampled]] = {
    "amd": amd,
    "board": board,
    "command": command,
    "hwmon": hwmon,
    "ipmi": ipmi,
    "prometheus": prometheus,
    "rapl": rapl,
    "redfish": redfish,
    "replay": replay,
    "simulated": simulated,
}


@pytest.fixture(scope="module", params=METERS)
def read(request: pytest.FixtureRequest, nvml_stub: NvmlStub) -> Iterator[Sampled]:
    with ExitStack() as stack:
        yield READ[request.param](stack, nvml_stub)


def test_it_says_what_it_is(read: Sampled) -> None:
    assert read.name
    assert read.source[0].isupper()
    assert read.scope == read.scopes
    assert len(set(read.devices)) == read.count


def test_every_reading_has_every_device_once_at_its_deadline(read: Sampled) -> None:
    for device in read.devices:
        stamps = [sample.t_s for sample in read.samples if sample.device == device]
        if read.own_stamps:
            assert stamps == sorted(stamps)
            continue
        assert len(stamps) == SECONDS * HZ + 1
        late = [stamp - read.begin_s - k / HZ for k, stamp in enumerate(stamps)]
        assert min(late) >= 0
        assert max(late[:-1]) < 0.05
    assert {sample.device for sample in read.samples} == set(read.devices)


def test_units_are_watts_joules_and_nanoseconds(read: Sampled) -> None:
    for sample in read.samples:
        assert sample.error is None
        assert (sample.power_w is not None) == read.power
        assert sample.power_w is None or 100 < sample.power_w < 1000
        assert (sample.energy_j is not None) == read.counter
        assert sample.limit_w == (700 if read.limits else None)
        assert sample.throttle == (() if read.limits else None)
        assert sample.throttle_ns.get("sw_power_cap") == (0 if read.limits else None)


def test_counter_and_samples_tell_one_energy(read: Sampled) -> None:
    window = energy_window(read.samples, read.devices, *read.window_s, read.hz)
    lone = () if read.power and read.counter else ("counter_only",) if read.counter else None
    assert window.reasons == (("samples_only",) if lone is None else lone)
    assert window.valid
    assert window.method == ("counter" if read.counter else "sampled")
    assert window.check_verdict == ("agree" if lone == () else None)
    assert window.joules == pytest.approx(sum(window.per_device_j.values()))
    first = {sample.device: sample.power_w or 0 for sample in read.samples[: read.count]}
    watts = sum(first.values()) if read.power else 500
    seconds = read.window_s[1] - read.window_s[0]
    assert window.joules == pytest.approx(seconds * watts, rel=0.005)
