"""A copy of the files that git knows: what a fresh clone has, with today's changes in them."""

import shutil
import subprocess
from pathlib import Path

from tests.support.shared import ROOT, require


def tracked() -> list[str]:
    """Return the files that git knows, as paths below the root."""
    command = [require("git"), "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]


def copy_to(folder: Path) -> Path:
    """Copy those files below a folder and return it."""
    for path in tracked():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, folder / path)
    return folder
