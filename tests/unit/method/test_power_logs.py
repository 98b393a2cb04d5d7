import json

import pytest

from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.power_log import header_row
from tokenwatt_site.method.power_logs import power_log

FACTS = MeterFacts("node_dc", ("psu",), 1.0, "redfish", "Redfish", 1.0, 0.0)
ROWS = [{"w": 0, "t_us": 1000 * k, "device": "psu", "power_w": 100.0 + k} for k in (0, 1, 2)]
SMI = """\
timestamp, index, uuid, power.draw [W], enforced.power.limit [W], clocks.sm [MHz], temperature.gpu
2024/07/05 10:21:33.000, 0, GPU-a, 594.25 W, 700.00 W, 1980 MHz, 61
2024/07/05 10:21:33.000, 1, GPU-b, [N/A], 700.00 W, 1980 MHz, 60
2024/07/05 10:21:34.000, 0, GPU-a, 595.50 W, 700.00 W, 1965 MHz, 62
"""


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_our_own_log() -> None:
    log = power_log(lines(header_row(FACTS, "2026-12-01T00:00:00Z"), *ROWS))
    assert (log.kind, log.scope, log.devices) == ("recorded from redfish", "node_dc", ("psu",))
    assert log.gain_pct == 1.0
    assert [(s.t_s, s.power_w) for s in log.samples] == [(0, 100), (0.001, 101), (0.002, 102)]


def test_a_log_that_was_cut_off_keeps_what_is_whole() -> None:
    text = lines(header_row(FACTS, "2026-12-01T00:00:00Z"), *ROWS)
    assert len(power_log(text[:-10]).samples) == 2


def test_evidence_is_that_of_its_first_window() -> None:
    idle = [{**row, "w": -1, "power_w": 10.0} for row in ROWS]
    later = [{**row, "w": 3} for row in ROWS]
    log = power_log(lines(*idle, *ROWS, *later))
    assert (log.kind, log.scope) == ("evidence of a run", None)
    assert [s.power_w for s in log.samples] == [100.0, 101.0, 102.0]


def test_nvidia_smi_by_its_header() -> None:
    log = power_log(SMI)
    assert (log.scope, log.devices, log.averaged_s) == ("board", ("GPU-a", "GPU-b"), 1.0)
    a0, b0, a1 = log.samples
    assert (a0.power_w, a0.limit_w, a0.clock_mhz, a0.temperature_c) == (594.25, 700, 1980, 61)
    assert (b0.power_w, b0.error) == (None, "not_supported")
    assert a1.t_s - a0.t_s == 1.0


@pytest.mark.parametrize(
    "column, averaged_s",
    [("power.draw.instant [W]", 0.0), ("power.draw.average [W]", 1.0), ("power_draw [W]", 1.0)],
)
def test_nvidia_smi_renames_its_column(column: str, averaged_s: float) -> None:
    log = power_log(SMI.replace("power.draw [W]", column))
    assert log.samples[0].power_w == 594.25
    assert log.averaged_s == averaged_s


def test_a_last_row_that_was_cut_off_is_dropped() -> None:
    log = power_log(SMI + "2024/07/05 10:21:35.000, 0, 59")
    assert len(log.samples) == 3


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "no log that is known"),
        ("<html>power, off</html>\n", "no columns timestamp and power.draw"),
        ("{}", "'w'"),
        (lines({"log": "tokenwatt-power", "version": 9}), "of this version"),
        (SMI.replace("594.25 W", "594250 W"), "milliwatts"),
        (SMI.replace("594.25 W", "594250 mW"), "milliwatts"),
        (SMI.replace("power.draw", "power.usage"), "no columns timestamp and power.draw"),
        (SMI.replace(", GPU-b", ""), "line 3 has 6 columns"),
        (SMI.replace("2024/07/05", "yesterday"), "is no time"),
        (SMI.partition("\n")[0], "it holds no reading"),
        (SMI.replace("594.25 W", "0.00 W").replace("595.50 W", "[N/A]"), "it holds no reading"),
        (lines(*ROWS[:1]) + "x\n" + lines(*ROWS[1:]), "line 2 is no JSON"),
    ],
)
def test_what_is_no_log_is_told(text: str, said: str) -> None:
    with pytest.raises((ValueError, LookupError), match=said):
        power_log(text)
