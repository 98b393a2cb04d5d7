"""Our integral against a published result of MLPerf: the same log, two rules, both stated."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.method.energy import energy_window
from tokenwatt_site.method.power_logs import power_log

RESULT = "data/results/mlperf/v4.1_H200x8_MaxQ/mixtral-8x7b/Server"


def seconds(stamp: str) -> float:
    return datetime.strptime(f"{stamp} +0000", "%m-%d-%Y %H:%M:%S.%f %z").timestamp()


def edges(log: Path) -> tuple[float, float]:
    found = [line.split(" ", 1)[1] for line in log.read_text().splitlines() if '"power_' in line]
    events = {event["key"]: seconds(event["value"]) for event in map(json.loads, found)}
    return events["power_begin"], events["power_end"]


def test_mixtral_on_eight_h200() -> None:
    """6,174.90 W is MLPerf's mean of the samples; the integral over the same time is 6,175.02 W.

    They differ because the mean gives every sample the same weight, wherever the edges lie.
    """
    folder = shared_path(RESULT)
    log = power_log((folder / "performance_run_1_spl.txt").read_text())
    samples = log.samples
    assert (log.kind, log.scope, log.devices) == ("MLPerf power log", "node_ac", ("analyzer",))
    w0, w1 = edges(folder / "performance_run_1_mlperf_log_detail.txt")
    inside = [sample.power_w for sample in samples if w0 <= sample.t_s <= w1]
    window = energy_window(samples, ["analyzer"], w0, w1, 1.0)
    assert len(inside) == window.samples == 2424
    assert sum(filter(None, inside)) / len(inside) == pytest.approx(6174.90, abs=0.005)
    assert window.mean_w == pytest.approx(6175.02, abs=0.005)
    assert (window.valid, window.gaps, window.reasons) == (True, 0, ("samples_only",))
    assert window.mean_w is not None
    assert window.mean_w / 45_496.95 == pytest.approx(0.1357, abs=0.00005)
