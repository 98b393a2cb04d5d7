"""The files that all pages share, under names that hold their content's hash."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

FOLDER = "assets"
_FILES = {
    "style": "style.css",
    "site": "site.js",
    "explore": "explore.js",
    "plotly": "vendor/plotly-basic.min.js",
    "plotly_css": "vendor/plotly.css",
}
_LICENCE = "vendor/plotly-LICENSE.txt"


@dataclass(frozen=True, slots=True)
class Asset:
    """One shared file."""

    address: str
    data: bytes


def load_assets(static: Path) -> dict[str, Asset]:
    """Read the shared files of a templates folder, by the name that templates use."""
    return {name: _load(static, file) for name, file in _FILES.items()} | {
        "plotly_licence": Asset(f"{FOLDER}/plotly-LICENSE.txt", (static / _LICENCE).read_bytes())
    }


def _load(static: Path, file: str) -> Asset:
    data = (static / file).read_bytes()
    path = PurePosixPath(file)
    mark = hashlib.sha256(data).hexdigest()[:8]
    return Asset(f"{FOLDER}/{path.stem}-{mark}{path.suffix}", data)


def asset_files(assets: dict[str, Asset]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the shared files."""
    for asset in assets.values():
        yield PurePosixPath(asset.address), asset.data
