"""The serve command as a process: one address on this machine, and content that is followed."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from tests.support.content_folder import PAGE, content_folder

WAIT_S = 60


class Process:
    """The command, and what it prints."""

    def __init__(self, folder: Path) -> None:
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "tokenwatt_site", "serve", "--port", "0"],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(self.scratch)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def until(self, pattern: str) -> str:
        """Return the next line that matches; fail when none comes."""
        while True:
            line = self.lines.get(timeout=WAIT_S)
            if re.search(pattern, line):
                return line.strip()

    def stop(self, how: int) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=WAIT_S)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Process]:
    content_folder(tmp_path / "content")
    process = Process(tmp_path)
    yield process
    process.process.kill()
    process.process.wait()
    process._reader.join()
    assert process.process.stdout is not None
    process.process.stdout.close()


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=WAIT_S) as answer:  # noqa: S310 - our own address
        return str(answer.read().decode())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_content_is_followed_until_it_is_stopped(served: Process, tmp_path: Path, how: int) -> None:
    served.until(r"2 runs, ")
    url = served.until(r"^http://127\.0\.0\.1:\d+/$")
    assert "Read the" in page(url + "about/")
    about = tmp_path / "content/pages/about.md"
    about.write_text("cut")
    assert "about.md:1: no front matter" in served.until("^error: ")
    assert "Read the" in page(url + "about/")
    about.write_text(PAGE.replace("Read", "Reread"))
    served.until(r"2 runs, ")
    assert "Reread the" in page(url + "about/")
    assert served.stop(how) == 0
    assert list(served.scratch.iterdir()) == []
    assert not (tmp_path / "site").exists()


def test_without_content_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tokenwatt_site", "serve", "--port", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env=os.environ | {"TMPDIR": tempfile.gettempdir()},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: content: no such folder")
