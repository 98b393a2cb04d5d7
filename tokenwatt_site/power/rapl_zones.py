"""The energy domains of a powercap tree: which there are, and which say the same thing twice."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenwatt_site.power.sysfs import read_micro, read_text

ROOT = Path("/sys/class/powercap")
_TOP = re.compile(r"intel-rapl(-mmio|-tpmi)?:[0-9a-z]+")
_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")


@dataclass(frozen=True, slots=True)
class Zone:
    """One domain at the top of the tree: a package, or the platform around it (psys)."""

    name: str
    folder: Path
    range_uj: int
    """Where its counter starts again at 0, µJ."""

    @property
    def is_package(self) -> bool:
        """Tell a processor package, or one die of it, from a platform."""
        return _PACKAGE.fullmatch(self.name) is not None

    def read_uj(self) -> tuple[int | None, str | None]:
        """Return the counter, µJ, or None and an error's code."""
        return read_micro(self.folder / "energy_uj")


def zones(root: Path) -> list[Zone]:
    """Return the domains at the top of a tree, each name once.

    Cores, graphics and memory are below a package and are left out: the first two are inside it,
    memory is apart. The interface through MSRs goes before that through memory (mmio), which
    repeats it.

    Raises:
        OSError: there is no such folder, or it can't be listed.
    """
    folders = sorted(
        (folder for folder in root.iterdir() if _TOP.fullmatch(folder.name)),
        key=lambda folder: folder.name.split(":")[0],
    )
    found: dict[str, Zone] = {}
    for folder in folders:
        name, _ = read_text(folder / "name")
        range_uj, _ = read_micro(folder / "max_energy_range_uj")
        if name and range_uj:
            found.setdefault(name, Zone(name, folder, range_uj))
    return sorted(found.values(), key=lambda zone: zone.name)


def mirrors(packages: Sequence[Zone]) -> dict[str, str]:
    """Return the packages whose counter is another's: its name -> the one to count.

    Every die of a multi-die processor may show the counter of its socket. Two counters that began
    at different times agree to the microjoule by chance only, so the one is read before and after
    the other: a value in between is the same counter.
    """
    found: dict[str, str] = {}
    for number, zone in enumerate(packages):
        for first in packages[:number]:
            if first.name not in found and _same_counter(first, zone):
                found[zone.name] = first.name
                break
    return found


def _same_counter(first: Zone, second: Zone) -> bool:
    before, _ = first.read_uj()
    between, _ = second.read_uj()
    after, _ = first.read_uj()
    if before is None or between is None or after is None or after == 0:
        return False
    return before <= between <= after
