"""Recorded logs of power, read as samples: our own, a run's evidence, MLPerf's, nvidia-smi's CSV.

Times are seconds from a log's own zero; nothing is resampled or filled in.
"""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tokenwatt_site.documents.spec import Scope
from tokenwatt_site.method.evidence import sample_of
from tokenwatt_site.method.power_log import KIND, facts_of
from tokenwatt_site.method.samples import PowerSample

MOST_BOARD_W = 5000.0
"""No board draws as much: a larger figure is in milliwatts."""
_SMI_POWER = ("power.draw.instant", "power.draw", "power.draw.average", "power_draw")
_SMI_STAMPS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")
_MLPERF_STAMP = "%m-%d-%Y %H:%M:%S.%f"


@dataclass(frozen=True, slots=True)
class PowerLog:
    """What was recorded."""

    kind: str
    """The log in a word, for the document."""
    samples: tuple[PowerSample, ...]
    """By time."""
    devices: tuple[str, ...]
    scope: Scope | None
    """None where the log doesn't say."""
    gain_pct: float | None = None
    averaged_s: float = 0.0
    """Each reading is the mean of so long."""


def power_log(text: str) -> PowerLog:
    """Return a log by its first line.

    Raises:
        ValueError: no log that is known, or one without a reading; the message says where.
    """
    first = text.lstrip("\ufeff").partition("\n")[0]
    if first.startswith("{"):
        read: Callable[[str], PowerLog] = (
            _own if json.loads(first).get("log") == KIND else _evidence
        )
    elif first.startswith("Time,"):
        read = _mlperf
    elif "power" in first and "," in first:
        read = _smi
    else:
        raise ValueError("its first line is that of no log that is known")
    found = read(text.lstrip("\ufeff"))
    if not any(s.power_w is not None or s.energy_j is not None for s in found.samples):
        raise ValueError("it holds no reading")
    return found


def _sorted(samples: Sequence[PowerSample]) -> tuple[PowerSample, ...]:
    return tuple(sorted(samples, key=lambda sample: sample.t_s))


def _devices(samples: Sequence[PowerSample]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sample.device for sample in samples))


def _rows(text: str) -> Iterator[dict[str, Any]]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                return  # cut off while it was written
            raise ValueError(f"line {number} is no JSON") from None
        yield row


def _own(text: str) -> PowerLog:
    head, *rows = _rows(text)
    facts = facts_of(head)
    samples = _sorted([sample_of(row) for row in rows])
    return PowerLog(
        f"recorded from {facts.name}",
        samples,
        facts.devices,
        facts.scope,
        facts.gain_pct,
        facts.averaged_s,
    )


def _evidence(text: str) -> PowerLog:
    """The readings of a run's first window: the others have zeros of their own."""
    rows = list(_rows(text))
    window = min((row["w"] for row in rows if row["w"] >= 0), default=0)
    samples = _sorted([sample_of(row) for row in rows if row["w"] == window])
    return PowerLog("evidence of a run", samples, _devices(samples), None)


def _mlperf(text: str) -> PowerLog:
    """The power analyzer's log of MLPerf: lines of name, value, name, value."""
    samples: list[PowerSample] = []
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) > 3 and cells[0] == "Time" and cells[2] == "Watts":  # noqa: PLR2004
            t_s = _seconds(cells[1], (_MLPERF_STAMP,))
            samples.append(PowerSample(t_s, "analyzer", power_w=float(cells[3])))
    return PowerLog("MLPerf power log", _sorted(samples), ("analyzer",), "node_ac")


def _smi(text: str) -> PowerLog:
    """What ``nvidia-smi --query-gpu=timestamp,uuid,power.draw,… --format=csv`` writes."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    names = [name.partition(" [")[0] for name in rows[0]]
    power = next((name for name in _SMI_POWER if name in names), None)
    if power is None or "timestamp" not in names:
        raise ValueError("its CSV has no columns timestamp and power.draw")
    samples: list[PowerSample] = []
    for number, cells in enumerate(rows[1:], 2):
        if len(cells) != len(names):
            if number == len(rows):
                break  # cut off while it was written
            raise ValueError(f"line {number} has {len(cells)} columns, the first {len(names)}")
        samples.append(_smi_sample(dict(zip(names, cells, strict=True)), power))
    averaged_s = 0.0 if power == "power.draw.instant" else 1.0
    found = _sorted(samples)
    return PowerLog("nvidia-smi log", found, _devices(found), "board", 5.0, averaged_s)


def _smi_sample(row: dict[str, str], power: str) -> PowerSample:
    device = row.get("uuid") or row.get("index") or row.get("pci.bus_id") or "GPU"
    t_s = _seconds(row["timestamp"], _SMI_STAMPS)
    watts = _smi_number(row[power])
    if watts is not None and watts > MOST_BOARD_W:
        raise ValueError(f"{row[power]} of one GPU: it must be in milliwatts")
    if not watts:  # 0 W is no reading
        return PowerSample(t_s, device, error="not_supported")
    return PowerSample(
        t_s,
        device,
        power_w=watts,
        limit_w=_smi_number(row.get("enforced.power.limit") or row.get("power.limit") or ""),
        clock_mhz=_smi_number(row.get("clocks.current.sm") or row.get("clocks.sm") or ""),
        temperature_c=_smi_number(row.get("temperature.gpu") or ""),
    )


def _smi_number(cell: str) -> float | None:
    """Return a cell's number; ``[N/A]``, ``[Not Supported]`` and such are None."""
    number, _, unit = cell.partition(" ")
    if unit == "mW":
        raise ValueError(f"{cell}: power in milliwatts isn't what nvidia-smi writes")
    try:
        return float(number)
    except ValueError:
        return None


def _seconds(stamp: str, forms: Sequence[str]) -> float:
    for form in forms:
        try:
            # a log has no zone; only differences are used
            return datetime.strptime(f"{stamp} +0000", f"{form} %z").timestamp()
        except ValueError:
            continue
    raise ValueError(f"{stamp!r} is no time as such a log has it")
