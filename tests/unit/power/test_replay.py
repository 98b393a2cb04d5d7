import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.power_log import header_row
from tokenwatt_site.power.replay import ReplayMeter, open_replay

FACTS = MeterFacts("node_ac", ("psu",), 1.0, "ipmi", "BMC", 3.0)
ROWS = [{"w": 0, "t_us": 1_000_000 * k, "device": "psu", "power_w": 100.0 + k} for k in range(4)]


class Time:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def log(folder: Path, *rows: object, name: str = "idle.jsonl.gz") -> Path:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def opened(folder: Path, time: Time | None = None, **asked: Any) -> ReplayMeter:
    power = SpecPower.model_validate({"source": "replay", "path": "idle.jsonl.gz"} | asked)
    meter = open_replay(power, gpus=None, count=0, simulator_url=None, folder=folder)
    if time is not None:
        meter._clock = time
        meter._shift_s = time.s - meter._samples[0].t_s
    return meter


def test_readings_come_at_their_own_distances_from_now_on(tmp_path: Path) -> None:
    log(tmp_path, header_row(FACTS, "2026-12-01T00:00:00Z"), *ROWS)
    time = Time()
    meter = opened(tmp_path, time)
    assert (meter.scope, meter.devices, meter.gain_pct) == ("node_ac", ("psu",), 3.0)
    assert "not of this run" in meter.source
    assert [(s.t_s, s.power_w) for s in meter.read()] == [(1000.0, 100.0)]
    time.s += 0.5
    assert meter.read() == []
    time.s += 1.6
    assert [(s.t_s, s.power_w) for s in meter.read()] == [(1001.0, 101.0), (1002.0, 102.0)]
    time.s += 10
    assert [s.power_w for s in meter.read()] == [103.0]
    assert [(s.device, s.error, s.power_w) for s in meter.read()] == [("psu", "log_ended", None)]


def test_a_spec_says_what_evidence_includes(tmp_path: Path) -> None:
    log(tmp_path, *ROWS)
    with pytest.raises(UsageError, match="doesn't say what its power includes"):
        opened(tmp_path)
    assert opened(tmp_path, scope="board").scope == "board"


@pytest.mark.parametrize("path", ["../idle.jsonl.gz", "/etc/passwd"])
def test_a_log_lies_beside_its_spec(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    log(tmp_path, *ROWS)
    with pytest.raises(UsageError, match="leaves the spec's folder"):
        opened(folder, path=path)


@pytest.mark.parametrize(
    "path, said", [(None, "needs power.path"), ("no.csv", "No such file"), (".", "a directory")]
)
def test_what_can_not_be_read_is_told(tmp_path: Path, path: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        opened(tmp_path, path=path)


@pytest.mark.parametrize("data", [b"\x1f\x8bxx", b"\xff\xfe", b"{}", b"[]", b"\0" * 100])
def test_no_bytes_lead_to_a_traceback(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "idle.jsonl.gz").write_bytes(data)
    with pytest.raises(UsageError, match="is no log of power"):
        opened(tmp_path)
