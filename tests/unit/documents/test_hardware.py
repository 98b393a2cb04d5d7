from pathlib import Path

import pytest

from tokenwatt_site.documents.hardware import known_hardware, load_hardware
from tokenwatt_site.errors import UsageError


def test_the_projects_own_files_name_a_source_for_every_figure(root: Path) -> None:
    known = known_hardware(root / "content" / "hardware")
    assert "NVIDIA H200" in known
    for hardware in known.values():
        for figure in (hardware.rated_bw_tbs, hardware.memory_gb, hardware.tdp_w):
            assert figure is not None
            assert len(figure.source) > 20


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
