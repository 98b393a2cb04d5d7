"""Hwmon sensors by trees made by hand."""

from pathlib import Path

import pytest

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import Meter


def chip(root: Path, folder: str, name: str, **files: object) -> Path:
    """Write one chip's folder."""
    place = root / folder
    place.mkdir(parents=True)
    (place / "name").write_text(f"{name}\n", encoding="ascii")
    for file, content in files.items():
        (place / file).write_text(f"{content}\n", encoding="ascii")
    return place


def opened(path: Path, **more: object) -> Meter:
    asked = SpecPower.model_validate({"source": "hwmon", "path": str(path), **more})
    return open_meter(asked, gpus=None, count=0, simulator_url=None)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    chip(tmp_path, "hwmon0", "nvme", temp1_input=40_000)
    chip(tmp_path, "hwmon1", "power_meter", power1_average=412_000_000)
    chip(
        tmp_path,
        "hwmon2",
        "ina3221",
        power1_input=5_250_000,
        power1_label="VDD_CPU",
        power2_input=11_000_000,
        power2_label="VDD_GPU",
    )
    return tmp_path


def test_the_only_sensor_needs_no_choice_but_a_scope(tmp_path: Path) -> None:
    chip(tmp_path, "hwmon0", "nvme", temp1_input=40_000)
    chip(tmp_path, "hwmon1", "power_meter", power1_average=412_000_000)
    with pytest.raises(RefusedError, match="what power_meter/power1 includes isn't known"):
        opened(tmp_path)
    meter = opened(tmp_path, scope="node_ac")
    (sample,) = meter.read()
    assert (sample.device, sample.power_w, sample.energy_j) == ("power_meter/power1", 412.0, None)
    assert (meter.scope, meter.devices) == ("node_ac", ("power_meter/power1",))
    assert meter.source == "Hwmon power of power_meter/power1 (driver's average)"


@pytest.mark.parametrize("field", ["VDD_GPU", "ina3221/VDD_GPU", "ina3221/power2", "power2"])
def test_one_of_several_is_chosen_by_name(tree: Path, field: str) -> None:
    (sample,) = opened(tree, scope="module", field=field).read()
    assert (sample.device, sample.power_w) == ("ina3221/VDD_GPU", 11.0)


def test_one_of_several_is_chosen_by_its_file_or_chip(tree: Path) -> None:
    by_file = opened(tree / "hwmon2" / "power1_input", scope="module")
    assert by_file.read()[0].power_w == 5.25
    by_chip = opened(tree / "hwmon1", scope="node_dc")
    assert by_chip.read()[0].power_w == 412


@pytest.mark.parametrize("field", [None, "power1", "absent"])
def test_without_a_clear_choice_the_candidates_are_listed(tree: Path, field: str | None) -> None:
    with pytest.raises(UsageError) as refused:
        opened(tree, scope="module", field=field)
    for name in ("power_meter/power1", "ina3221/VDD_CPU", "ina3221/VDD_GPU"):
        assert name in refused.value.hint


def test_power_and_energy_of_one_number_are_one_device(tmp_path: Path) -> None:
    labels = {"power1_label": "card", "energy1_label": "card"}
    chip(tmp_path, "hwmon0", "xe", power1_input=90_000_000, energy1_input=2_500_000, **labels)
    (sample,) = opened(tmp_path, scope="board").read()
    assert (sample.device, sample.power_w, sample.energy_j) == ("xe/card", 90.0, 2.5)


def test_an_instantaneous_reading_goes_before_an_average(tmp_path: Path) -> None:
    chip(tmp_path, "hwmon0", "amdgpu", power1_average=80_000_000, power1_input=90_000_000)
    assert opened(tmp_path, scope="board").read()[0].power_w == 90


def test_a_sensor_whose_driver_says_what_it_is_has_a_scope(tmp_path: Path) -> None:
    labels = {"energy1_label": "Ecore000", "energy2_label": "Esocket0"}
    chip(tmp_path, "hwmon0", "amd_energy", energy1_input=1, energy2_input=7_000_000, **labels)
    meter = opened(tmp_path, field="Esocket0")
    assert (meter.scope, meter.read()[0].energy_j) == ("package", 7.0)
    with pytest.raises(RefusedError, match="amd_energy/Ecore000 includes isn't known"):
        opened(tmp_path, field="Ecore000")


@pytest.mark.parametrize(
    "content, code",
    [("0", "zero_power"), ("-1", "bad_answer"), ("N/A", "bad_answer"), ("", "bad_answer")],
)
def test_what_is_no_power_is_an_error(tree: Path, content: str, code: str) -> None:
    meter = opened(tree, scope="node_ac", field="power_meter/power1")
    (tree / "hwmon1" / "power1_average").write_text(content, encoding="ascii")
    (sample,) = meter.read()
    assert (sample.power_w, sample.energy_j, sample.error) == (None, None, code)


def test_a_sensor_that_goes_is_a_gap_and_one_that_never_reads_is_refused(tree: Path) -> None:
    meter = opened(tree, scope="node_ac", field="power_meter/power1")
    (tree / "hwmon1" / "power1_average").unlink()
    assert meter.read()[0].error == "device_missing"
    (tree / "hwmon2" / "power1_input").write_text("0", encoding="ascii")
    with pytest.raises(RefusedError, match="zero_power"):
        opened(tree, scope="module", field="VDD_CPU")


def test_a_machine_without_sensors_says_so(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent", tmp_path / "absent" / "temp1_input"):
        with pytest.raises(RefusedError, match="no power or energy sensor"):
            opened(place, scope="board")
