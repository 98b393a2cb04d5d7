"""What events.jsonl says can be read back as it was written, through JSON."""

import json
from typing import Any

import pytest

from tests.support.windows import spec_of
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.documents.run import METHOD_VERSION, Hardware
from tokenwatt_site.errors import DocumentError
from tokenwatt_site.method.account import Load
from tokenwatt_site.method.assemble import Resolved
from tokenwatt_site.method.events import begin_of, begin_row, load_of, load_row, probe_of, probe_row
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.probe import Cut, Probe
from tokenwatt_site.method.prose import Origin

PROBE = Probe(5.25, "search", 30.0, 12, 0, 3)
TUNED = Probe(
    5.25, "confirm", 30, 20, 300, 4, tail_s=10.0, inject=7, draw="balance/7", cut=Cut(8, 0.1, 30)
)


def written(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(row))
    return found


@pytest.mark.parametrize("probe", [PROBE, TUNED])
def test_a_probe_is_read_back(probe: Probe) -> None:
    assert probe_of(written(probe_row(probe))) == probe


@pytest.mark.parametrize("aborted", [False, True])
def test_a_load_is_read_back(*, aborted: bool) -> None:
    load = Load("2026-11-30T12:00:00Z", 31_000_001, 1 / 3, 0.1 + 0.2, -1e-9, aborted)
    assert load_of(written(load_row(3, load))) == load


def test_what_stood_before_the_first_window_is_read_back() -> None:
    resolved = Resolved(
        hardware=Hardware(vendor="NVIDIA", accelerator="NVIDIA H200", count=2, uuids=["a", "b"]),
        engine_version="0.32.0",
        meter_source="boards",
        origin=Origin("my.spec.yaml", "my label", "candidate", "runs/a b.json"),
        run_id="20261130T120000Z-abcdef",
        started="2026-11-30T12:00:00Z",
        notes=("a note",),
        model=ModelConfig({"hidden_size": 8, "layer_types": ["full_attention"]}, None, "f" * 64),
    )
    meters = (MeterFacts("board", ("a", "b"), 10), MeterFacts("node_ac", ("psu",), 0.5))
    spec = spec_of()
    begin = begin_of(written(begin_row(spec, resolved, meters, {"model": "m"})))
    assert (begin.spec, begin.resolved, begin.meters) == (spec, resolved, meters)
    assert (begin.server, begin.method) == ({"model": "m"}, METHOD_VERSION)


def test_a_model_that_is_none_is_no_evidence() -> None:
    resolved = Resolved(
        hardware=Hardware(vendor="", accelerator="", count=0),
        engine_version="",
        meter_source="",
        origin=Origin("s.yaml", "", "baseline", "runs/a.json"),
        run_id="20261130T120000Z-abcdef",
        started="2026-11-30T12:00:00Z",
    )
    row = written(begin_row(spec_of(), resolved, (), {}))
    assert begin_of(row).resolved.model is None
    row["resolved"]["model"] = {"config": [], "quant": None, "sha256": "f"}
    with pytest.raises(DocumentError, match="config"):
        begin_of(row)
