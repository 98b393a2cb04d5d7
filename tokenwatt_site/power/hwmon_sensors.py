"""The power and energy sensors of a hwmon tree, and the one that a spec means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power.sysfs import read_text

ROOT = Path("/sys/class/hwmon")
_FILE = re.compile(r"(power|energy)(\d+)_(input|average)")
_ORDER = {"input": 0, "average": 1}


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor of one chip: its power, its running energy, or both."""

    chip: str
    """The driver's name for it."""
    label: str
    power: Path | None = None
    energy: Path | None = None

    @property
    def name(self) -> str:
        """Return chip and sensor, as ``power.field`` names them."""
        return f"{self.chip}/{self.label or self.stems[0]}"

    @property
    def files(self) -> list[Path]:
        """Return the files that it is read from."""
        return [path for path in (self.power, self.energy) if path is not None]

    @property
    def stems(self) -> list[str]:
        """Return the beginnings of its files' names, such as power1."""
        return [_stem(path) for path in self.files]

    def is_named(self, field: str) -> bool:
        """Tell whether ``field`` is its full name, its label or the stem of its files."""
        names = [self.label, *self.stems]
        return field in [*names, *(f"{self.chip}/{name}" for name in names if name)]

    @property
    def scope(self) -> Scope | None:
        """Return what it includes where its driver's documentation says so, else None.

        Sources: Documentation/hwmon/amd_energy.rst ("Esocket", a package's energy) and
        fam15h_power.rst ("current processor power") of the Linux kernel.
        """
        if self.chip == "fam15h_power" or (
            self.chip == "amd_energy" and self.label.startswith("Esocket")
        ):
            return "package"
        return None


def sensors(path: Path) -> list[Sensor]:
    """Return the sensors at a path: a sensor's file, a chip's folder or a folder of chips.

    Raises:
        OSError: nothing is there, or it can't be listed.
    """
    if not path.is_dir():
        return [_sensor(path.parent, path)] if _FILE.fullmatch(path.name) else []
    chips = [path] if (path / "name").is_file() else sorted(path.iterdir(), key=_natural)
    return [sensor for chip in chips if chip.is_dir() for sensor in _of_chip(chip)]


def choose_sensor(found: Sequence[Sensor], power: SpecPower, where: Path) -> Sensor:
    """Return the sensor that ``power.field`` names, or the only one.

    Raises:
        RefusedError: there is none.
        UsageError: several, and none or several are meant.
    """
    if not found:
        raise RefusedError(
            f"hwmon: {where} shows no power or energy sensor",
            "a virtual machine or container has none of its host's; use another meter, or none",
        )
    field = power.field
    meant = [sensor for sensor in found if field is None or sensor.is_named(field)]
    if len(meant) != 1:
        asked = "several sensors" if field is None else f"{len(meant)} sensors named {field!r}"
        names = ", ".join(f"{s.name} ({s.files[0].parent.name})" for s in found)
        raise UsageError(
            f"hwmon: {where} has {asked}",
            f"set power.field to one of: {names}; or power.path to a sensor's file",
        )
    return meant[0]


def _of_chip(chip: Path) -> list[Sensor]:
    """Return a chip's sensors: power and energy of one number and label are one."""
    files = [path for path in chip.iterdir() if _FILE.fullmatch(path.name)]
    files.sort(key=lambda path: (_natural(path), _ORDER[path.name.rpartition("_")[2]]))
    merged: dict[tuple[int, str], Sensor] = {}
    for path in files:
        sensor = _sensor(chip, path)
        key = (_natural(path)[1], sensor.label)
        have = merged.get(key, sensor)
        merged[key] = replace(
            have, power=have.power or sensor.power, energy=have.energy or sensor.energy
        )
    return list(merged.values())


def _sensor(chip: Path, path: Path) -> Sensor:
    label, _ = read_text(chip / f"{_stem(path)}_label")
    name, _ = read_text(chip / "name")
    known = name or chip.name
    if path.name.startswith("power"):
        return Sensor(known, label, power=path)
    return Sensor(known, label, energy=path)


def _stem(path: Path) -> str:
    return path.name.split("_")[0]


def _natural(path: Path) -> tuple[str, int]:
    digits = re.search(r"\d+", path.name)
    return re.sub(r"\d+.*", "", path.name), int(digits.group()) if digits else 0
