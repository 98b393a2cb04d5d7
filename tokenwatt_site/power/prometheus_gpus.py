"""The GPUs that NVIDIA's DCGM exporters tell a Prometheus server about, and those under test."""

import re
from collections.abc import Sequence

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.drivers.choice import choose
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power.prometheus_api import PrometheusApi, Series

ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
"""mJ since the driver was loaded."""
POWER = "DCGM_FI_DEV_POWER_USAGE"
"""W."""
_UUID = re.compile(r"GPU-[0-9A-Fa-f-]{1,64}")
_MIG = ("GPU_I_ID", "GPU_I_PROFILE")
_MOST_INDEX = 1024


def gpus_under_test(
    api: PrometheusApi, power: SpecPower, gpus: Sequence[int | str] | None, count: int
) -> tuple[list[str], list[str]]:
    """Return the UUIDs of the GPUs under test, and which of ENERGY and POWER they have.

    Raises:
        UnansweredError: the server can't be asked.
        RefusedError: it knows no GPU, or one is split by MIG and the spec doesn't say so.
        UsageError: the GPUs asked for aren't there, or can't be told apart by their index.
    """
    by = ", ".join(("__name__", "UUID", "gpu", *_MIG))
    rows = api.ask(f'count by ({by}) ({{__name__=~"{ENERGY}|{POWER}"}})').series
    rows = [row for row in rows if _UUID.fullmatch(row.labels.get("UUID", ""))]
    if not rows:
        raise RefusedError(
            f"power.source: prometheus: the server has neither {ENERGY} nor {POWER} of any GPU",
            "let it scrape a dcgm-exporter that is up, or give power.query, unit and quantity",
        )
    chosen = choose(_by_index(rows, gpus, count), gpus, count)
    mine = [row for row in rows if row.labels["UUID"] in chosen]
    split = next((row for row in mine if any(row.labels.get(name) for name in _MIG)), None)
    if split is not None and power.scope != "shared_board":
        raise RefusedError(
            f"GPU {split.labels['UUID']} is split by MIG: its power is that of the whole board, "
            "whoever uses the other parts",
            "turn MIG off, or set power.scope: shared_board to publish it as that",
        )
    return chosen, sorted({row.labels["__name__"] for row in mine}, reverse=True)


def _by_index(
    rows: Sequence[Series], gpus: Sequence[int | str] | None, count: int
) -> list[str | None]:
    """Return UUIDs in the order of their index, or in any where no index is needed."""
    uuids = sorted({row.labels["UUID"] for row in rows})
    if gpus is None and count == len(uuids):
        return list(uuids)
    if gpus is not None and all(isinstance(gpu, str) for gpu in gpus):
        return list(uuids)
    found: dict[int, str] = {}
    for row in rows:
        uuid, index = row.labels["UUID"], row.labels.get("gpu", "")
        if not (index.isdecimal() and int(index) < _MOST_INDEX):
            continue
        if found.setdefault(int(index), uuid) != uuid:
            raise UsageError(
                f"the Prometheus server knows {len(uuids)} GPUs, several of them as number {index}",
                "name those under test by UUID in hardware.gpus (nvidia-smi -L shows them)",
            )
    return [found.get(index) for index in range(max(found, default=-1) + 1)]
