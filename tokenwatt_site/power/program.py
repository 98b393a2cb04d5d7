"""Run a program that tells a reading: no shell, no input, bounded in time and in bytes."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_BYTES = 65_536
"""Of each of the two outputs; a program that writes more is stopped."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program did; ``error`` is a reading's code, None where it ended with exit code 0."""

    output: str = ""
    stderr: str = ""
    error: str | None = None


def run(
    argv: Sequence[str], timeout_s: float, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run a program and return what it wrote.

    It leads a process group of its own, which is killed whole when the time is up. ``environment``
    is added to this process's. Codes: timeout, bad_answer (too much output), failed (exit code
    other than 0), no_permission, program_missing.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            start_new_session=True,
        )
    except PermissionError:
        return Outcome(error="no_permission")
    except (OSError, ValueError):
        return Outcome(error="program_missing")
    with process:
        try:
            return _outcome(process, time.monotonic() + timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _outcome(process: subprocess.Popen[bytes], deadline_s: float) -> Outcome:
    written, error = _read(process, deadline_s)
    if error is None:
        try:
            error = "failed" if process.wait(max(0.0, deadline_s - time.monotonic())) else None
        except subprocess.TimeoutExpired:
            error = "timeout"
    output, stderr = (part.decode("utf-8", "replace") for part in written)
    return Outcome(output, stderr, error)


def _read(
    process: subprocess.Popen[bytes], deadline_s: float
) -> tuple[tuple[bytearray, bytearray], str | None]:
    written = (bytearray(), bytearray())
    with selectors.DefaultSelector() as selector:
        for stream, into in zip((process.stdout, process.stderr), written, strict=True):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, into)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline_s - time.monotonic()))
            if not ready:
                return written, "timeout"
            for key, _ in ready:
                part = os.read(key.fd, MOST_BYTES)
                if not part:
                    selector.unregister(key.fileobj)
                key.data.extend(part)
                if len(key.data) > MOST_BYTES:
                    return written, "bad_answer"
    return written, None
