"""RAPL by powercap trees: the recorded ones, and some made by hand for what those lack."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import Meter

RANGE_UJ = 262_143_328_850
NOBODY = 65_534


def zone(root: Path, folder: str, name: str, uj: object, range_uj: int = RANGE_UJ) -> Path:
    """Write one domain, and return the file of its counter."""
    place = root / folder
    place.mkdir(parents=True)
    (place / "name").write_text(f"{name}\n", encoding="ascii")
    (place / "max_energy_range_uj").write_text(f"{range_uj}\n", encoding="ascii")
    counter = place / "energy_uj"
    counter.write_text(f"{uj}\n", encoding="ascii")
    return counter


def opened(root: Path, **more: object) -> Meter:
    asked = SpecPower.model_validate({"source": "rapl", "path": str(root), **more})
    return open_meter(asked, gpus=None, count=0, simulator_url=None)


def joules(meter: Meter) -> list[float | None]:
    return [sample.energy_j for sample in meter.read()]


def test_a_recorded_tree_counts_its_package_and_not_the_cores_in_it() -> None:
    meter = opened(shared_path("data/power/powercap/node_exporter/sys/class/powercap"))
    assert (meter.devices, meter.scope, meter.gain_pct) == (("package-0",), "package", None)
    assert joules(meter) == [240_422.366267]
    assert [sample.power_w for sample in meter.read()] == [None]


def test_the_recorded_tree_whose_packages_show_one_counter_is_counted_once() -> None:
    meter = opened(shared_path("data/power/powercap/procfs/fixtures/sys/class/powercap"))
    assert meter.devices == ("package-0",)
    assert "package-10 shows the same counter" in meter.source


def test_two_packages_are_two_devices(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 9_000_000)
    meter = opened(tmp_path)
    assert joules(meter) == [1, 9]
    first.write_text("4000000", encoding="ascii")
    second.write_text("9500000", encoding="ascii")
    assert meter.devices == ("package-0", "package-1")
    assert joules(meter) == [4.0, 9.5]


def test_dies_that_mirror_their_socket_are_68_w_and_not_137(tmp_path: Path) -> None:
    counters = [
        zone(tmp_path, f"intel-rapl:{die}", f"package-0-die-{die}", 5_000_000) for die in (0, 1)
    ]
    meter = opened(tmp_path)
    assert joules(meter) == [5.0]
    for counter in counters:
        counter.write_text("73000000", encoding="ascii")
    assert meter.devices == ("package-0-die-0",)
    assert joules(meter) == [5.0 + 68.0]


def test_counters_that_havent_moved_yet_are_no_mirrors(tmp_path: Path) -> None:
    for die in (0, 1):
        zone(tmp_path, f"intel-rapl:{die}", f"package-0-die-{die}", 0)
    assert len(opened(tmp_path).devices) == 2


def test_mmio_repeats_msr_and_platform_and_memory_are_left_out(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 77)
    wanted = zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 6)
    zone(tmp_path, "intel-rapl:0:1", "dram", 7)
    zone(tmp_path, "intel-rapl:1", "psys", 8)
    meter = opened(tmp_path)
    meter.read()
    wanted.write_text("6000000", encoding="ascii")
    assert meter.devices == ("package-0",)
    assert joules(meter) == [6.0]


def test_the_platform_is_read_where_the_spec_says_what_it_is(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    zone(tmp_path, "intel-rapl:1", "psys", 8)
    with pytest.raises(RefusedError, match="up to the maker"):
        opened(tmp_path, field="psys")
    meter = opened(tmp_path, field="psys", scope="node_dc")
    assert (meter.devices, meter.scope) == (("psys",), "node_dc")
    with pytest.raises(UsageError, match="'dram' is no domain"):
        opened(tmp_path, field="dram")


def test_a_counter_that_starts_again_goes_on(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 2_000_000)
    meter = opened(tmp_path)
    (first,) = meter.read()
    assert first.energy_j == (RANGE_UJ - 2_000_000) / 1e6
    counter.write_text("3000000", encoding="ascii")
    assert joules(meter) == [(RANGE_UJ + 3_000_000) / 1e6]
    counter.write_text("4000000", encoding="ascii")
    assert joules(meter) == [(RANGE_UJ + 4_000_000) / 1e6]


def test_after_a_pause_with_room_for_a_round_nobody_knows(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    meter = opened(tmp_path)
    times = iter([0.0, 0.0, 100.0, 100.0, 363.0, 363.0])
    meter._clock = lambda: next(times)  # type: ignore[attr-defined]
    meter.read()
    counter.write_text("2000000", encoding="ascii")
    assert joules(meter) == [2.0]
    counter.write_text("3000000", encoding="ascii")  # 262 s at 1,000 W are a round
    assert joules(meter) == [0.0]


def test_a_reset_is_seen_as_one_and_never_as_energy(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 50_000_000)
    meter = opened(tmp_path)
    times = iter([t / 2 for t in range(100)])
    meter._clock = lambda: next(times)  # type: ignore[attr-defined]
    samples = meter.read()
    for uj in (60_000_000, 70_000_000, 1_000_000, 11_000_000, 21_000_000):
        counter.write_text(str(uj), encoding="ascii")
        samples += meter.read()
    window = energy_window(samples, meter.devices, 1.0, 4.0, 1.0)
    assert (window.valid, window.joules) == (False, None)
    assert "counter_reset" in window.reasons


@pytest.mark.parametrize("content", ["", "-1", "nan", "<html>", "1,5", str((1 << 64) - 1)])
def test_what_is_no_count_is_an_error(tmp_path: Path, content: str) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = opened(tmp_path)
    counter.write_text(content, encoding="ascii")
    (sample,) = meter.read()
    assert (sample.energy_j, sample.error) == (None, "bad_answer")


def test_a_count_beyond_its_range_is_an_error(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = opened(tmp_path)
    counter.write_text(str(RANGE_UJ + 1), encoding="ascii")
    assert meter.read()[0].error == "bad_answer"


def test_a_package_that_goes_is_a_gap(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = opened(tmp_path)
    counter.unlink()
    assert meter.read()[0].error == "device_missing"
    counter.mkdir()
    assert meter.read()[0].error == "no_data"


def test_a_rate_that_would_miss_a_start_from_0_is_refused(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5, range_uj=20_000_000_000)
    with pytest.raises(UsageError, match="start again unseen") as refused:
        opened(tmp_path, sampling_hz=0.1)
    assert "sample at 0.15 Hz" in refused.value.hint
    assert opened(tmp_path, sampling_hz=0.2).devices == ("package-0",)


def test_a_machine_without_rapl_says_so(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "absent"):
        with pytest.raises(RefusedError, match="shows no package domain") as refused:
            opened(root)
        assert "container" in refused.value.hint


def test_a_counter_that_only_root_may_read_is_no_permission_and_not_no_rapl() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        counter = zone(root, "intel-rapl:0", "package-0", 5)
        meter = opened(root)
        counter.chmod(0o400 if os.getuid() == 0 else 0)
        with unprivileged():
            assert meter.read()[0].error == "no_permission"
            with pytest.raises(RefusedError, match=r"no_permission.*package-0 is there") as refused:
                opened(root)
        assert "chmod a+r" in refused.value.hint


@contextmanager
def unprivileged() -> Iterator[None]:
    """Let root be nobody for a while; any other user already is what is wanted."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
