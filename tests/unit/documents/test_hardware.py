import re
from pathlib import Path

import pytest

from tokenwatt_site.documents.hardware import Hardware, known_hardware, load_hardware
from tokenwatt_site.errors import UsageError

NO_TDP = {"Google TPU v5e", "Google TPU v6e"}
"""Google publishes no power of a chip."""
TBS, GB, W = (0.2, 10.0), (10, 400), (100, 1500)
"""What any of them could have; a slip of a unit lies outside."""


def own(root: Path) -> list[Hardware]:
    folder = root / "content" / "hardware"
    return [load_hardware(path) for path in sorted(folder.glob("*.yaml"))]


def test_the_projects_own_files_name_a_source_for_every_figure(root: Path) -> None:
    for hardware in own(root):
        is_cpu = "Xeon" in hardware.name or "EPYC" in hardware.name
        assert hardware.rated_bw_tbs is not None
        assert (hardware.memory_gb is None) == is_cpu, hardware.name
        assert (hardware.tdp_w is None) == (hardware.name in NO_TDP), hardware.name
        for figure in filter(None, (hardware.rated_bw_tbs, hardware.memory_gb, hardware.tdp_w)):
            assert len(figure.source) > 20


def test_the_figures_are_ones_that_hardware_has(root: Path) -> None:
    for hardware in own(root):
        ranges = ((hardware.rated_bw_tbs, TBS), (hardware.memory_gb, GB), (hardware.tdp_w, W))
        for figure, (low, high) in ranges:
            assert figure is None or low <= figure.value <= high, hardware.name


def test_every_name_is_one_accelerators(root: Path) -> None:
    names = [name for each in own(root) for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names)) == len(known_hardware(root / "content" / "hardware"))
    assert {"NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA B200", "NVIDIA GB300"} <= set(names)


def test_memory_bandwidth_of_cpus_is_channels_times_transfers(root: Path) -> None:
    said = r"(\d+) channels × ([\d,]+) MT/s × 8 bytes"
    found = [
        (each, re.search(said, each.rated_bw_tbs.source)) for each in own(root) if each.rated_bw_tbs
    ]
    cpus = [(each, match) for each, match in found if match]
    assert len(cpus) == 5
    for each, match in cpus:
        assert each.rated_bw_tbs is not None
        mega = int(match[1]) * int(match[2].replace(",", "")) * 8
        assert each.rated_bw_tbs.value == pytest.approx(mega / 1e6)


def test_a_fault_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "name: X\nvendor: Y\ntdp_w: {value: 700, source: s, as_of: now, checked: true}\n"
    )
    with pytest.raises(UsageError, match=r"x\.yaml:3: tdp_w\.as_of: "):
        load_hardware(path)


def test_a_figure_without_a_source_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: X\nvendor: Y\ntdp_w: {value: 700, as_of: 2026-11-30, checked: true}\n")
    with pytest.raises(UsageError, match=r"x\.yaml:3: tdp_w\.source: this key is required"):
        load_hardware(path)


H100 = "name: H100 SXM\naliases: [NVIDIA H100 80GB HBM3]\nvendor: NVIDIA\n"


def test_an_accelerator_is_known_by_the_name_that_its_driver_gives(tmp_path: Path) -> None:
    (tmp_path / "h100.yaml").write_text(H100)
    known = known_hardware(tmp_path)
    assert list(known) == ["H100 SXM", "NVIDIA H100 80GB HBM3"]
    assert known["NVIDIA H100 80GB HBM3"] is known["H100 SXM"]


def test_two_accelerators_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(H100)
    (tmp_path / "b.yaml").write_text("name: NVIDIA H100 80GB HBM3\nvendor: NVIDIA\n")
    with pytest.raises(UsageError, match=r"b\.yaml: H100 SXM goes by the name of NVIDIA H100"):
        known_hardware(tmp_path)
