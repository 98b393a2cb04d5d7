"""CPU time and memory of a program and all that it starts, read from /proc while it runs."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

_HZ = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_EVERY_S = 0.1


class Tree:
    """A program under observation; ``cpu_s_at`` tells what it and its children had used when."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self.started_s = time.monotonic()
        self.peak_bytes = 0
        self._looks: list[tuple[float, float]] = [(self.started_s, 0.0)]
        self._gone_s: dict[int, float] = {}
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def wait(self, timeout_s: float) -> int:
        """Return the exit status; a program that takes longer is killed, and all it started."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            status = self._process.wait()
        self.ended_s = time.monotonic()
        self._done.set()
        self._watcher.join()
        return status

    def cpu_s_at(self, t_s: float) -> float:
        """Return the CPU seconds used up to a time on the monotonic clock, between two looks."""
        before = self._looks[0]
        for look in self._looks:
            if look[0] >= t_s:
                share = (t_s - before[0]) / max(look[0] - before[0], 1e-9)
                return before[1] + share * (look[1] - before[1])
            before = look
        return before[1]

    @property
    def cpu_s(self) -> float:
        """CPU seconds in all."""
        return self._looks[-1][1]

    def _watch(self) -> None:
        while not self._done.wait(_EVERY_S):
            used_s, resident = _used(self._process.pid)
            for pid, seconds in used_s.items():
                self._gone_s[pid] = max(seconds, self._gone_s.get(pid, 0.0))
            self._looks.append((time.monotonic(), sum(self._gone_s.values())))
            self.peak_bytes = max(self.peak_bytes, resident)


def _used(session: int) -> tuple[dict[int, float], int]:
    """Return CPU seconds by process, and the memory of all, of a session."""
    used_s: dict[int, float] = {}
    resident = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has just ended
        fields = stat.rpartition(")")[2].split()
        if int(fields[3]) == session:
            used_s[int(entry.name)] = (int(fields[11]) + int(fields[12])) / _HZ
            resident += int(fields[21]) * _PAGE
    return used_s, resident
