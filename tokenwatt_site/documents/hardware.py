"""What an accelerator is rated at: a YAML file each in ``content/hardware/``, figures sourced."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from tokenwatt_site.documents import yamlfile
from tokenwatt_site.documents.base import Date, Positive, Strict
from tokenwatt_site.documents.faults import faults
from tokenwatt_site.errors import UsageError


def _iso(value: Any) -> Any:
    """YAML reads 2026-10-27 as a date; documents hold its text."""
    return value.isoformat() if type(value) is dt.date else value


YamlDate = Annotated[Date, BeforeValidator(_iso)]


class Figure(Strict):
    """One figure and where it comes from."""

    value: Positive
    source: Annotated[str, Field(min_length=1)]
    as_of: YamlDate
    """The day it was looked up."""
    checked: bool
    """True where the source itself was read, false where the figure comes from copies of it."""


class Hardware(Strict):
    """The rated figures of one accelerator."""

    name: Annotated[str, Field(min_length=1)]
    """As run documents name it in ``hardware.accelerator``."""
    aliases: list[Annotated[str, Field(min_length=1)]] = []
    """Other names of it, as drivers give them."""
    vendor: str
    rated_bw_tbs: Figure | None = None
    """Memory bandwidth, TB/s."""
    memory_gb: Figure | None = None
    """Memory, GB."""
    tdp_w: Figure | None = None
    """Thermal design power, W."""


def load_hardware(path: Path) -> Hardware:
    """Read one file of ``content/hardware/``.

    Raises:
        UsageError: it can't be read or isn't such a file; the message names file, line and field.
    """
    file = yamlfile.load(path)
    return parse_hardware(file, str(path))


def parse_hardware(file: yamlfile.YamlFile, name: str) -> Hardware:
    """Validate one parsed file; ``name`` is the file's name for messages."""
    try:
        return Hardware.model_validate(file.data)
    except ValidationError as error:
        lines = [
            f"{name}:{file.line(fault.path)}: {fault.dotted}: {fault.text}"
            for fault in faults(error, file.data, Hardware)
        ]
    raise UsageError("\n".join(lines), "content/hardware/h200.yaml shows the keys")


def known_hardware(folder: Path) -> dict[str, Hardware]:
    """Return the accelerators of a ``content/hardware`` folder by every name that they go by.

    Raises:
        UsageError: a file can't be read, or two of them claim one name.
    """
    known: dict[str, Hardware] = {}
    for path in sorted(folder.glob("*.yaml")):
        hardware = load_hardware(path)
        for name in (hardware.name, *hardware.aliases):
            if name in known:
                raise UsageError(
                    f"{path}: {known[name].name} goes by the name of {name} too",
                    "give each accelerator's file names of its own",
                )
            known[name] = hardware
    return known


def by_name(every: Iterable[Hardware]) -> dict[str, Hardware]:
    """Return accelerators by every name that they go by."""
    return {name: each for each in every for name in (each.name, *each.aliases)}
