"""docs/hardware.md: the rated figures that MBU and the checks use, and where each is from.

``python -m tokenwatt_site.documents.hardware_table FOLDER FILE`` writes it.
"""

import sys
from pathlib import Path

from tokenwatt_site.documents.hardware import Figure, Hardware, load_hardware

_HEAD = """\
# Hardware

<!-- Made by `make docs` from the files of content/hardware: edit those. -->

Rated figures of accelerators, one file each in `content/hardware`. The bandwidth is what bandwidth
utilisation ([mbu](mbu.md)) is measured against; the spec's `hardware.rated_bw_tbs_per_gpu` goes
first. An accelerator is found by its name or by one that a driver gives it. **✓**: the source was
read itself; without it the figure is known from copies of the source.

| name | as drivers say | bandwidth, TB/s | memory, GB | power, W |
|---|---|---|---|---|
"""


def table(folder: Path) -> str:
    """Return the text of docs/hardware.md.

    Raises:
        UsageError: a file can't be read.
    """
    every = [load_hardware(path) for path in sorted(folder.glob("*.yaml"))]
    rows = [_row(each) for each in every]
    sources = [_sources(each) for each in every]
    return _HEAD + "\n".join(rows) + "\n\n## Sources\n\n" + "\n".join(sources) + "\n"


def _row(hardware: Hardware) -> str:
    figures = (hardware.rated_bw_tbs, hardware.memory_gb, hardware.tdp_w)
    names = ", ".join(hardware.aliases)
    return f"| {hardware.name} | {names} | {' | '.join(map(_figure, figures))} |"


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return f"{figure.value:,g}{' ✓' if figure.checked else ''}"


def _sources(hardware: Hardware) -> str:
    figures = (hardware.rated_bw_tbs, hardware.memory_gb, hardware.tdp_w)
    named = zip(("bandwidth", "memory", "power"), figures, strict=True)
    parts = [
        f"{name}: {figure.source} ({figure.as_of})" for name, figure in named if figure is not None
    ]
    return f"- **{hardware.name}** · {' · '.join(parts)}"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(table(Path(sys.argv[1])), encoding="utf-8")
