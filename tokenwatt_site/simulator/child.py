"""The embedded engine as a child process: started on a free port, gone with its parent."""

import json
import select
import subprocess
import sys
from types import TracebackType
from typing import Self

from tokenwatt_site.documents.spec import SimulatorOptions
from tokenwatt_site.errors import ServerError

START_S = 30.0
_SHOWN = 500


class Child:
    """A running embedded engine; ``url`` is its API. Its standard input is its lifeline."""

    def __init__(self, options: SimulatorOptions) -> None:
        """Start the engine and wait for its address.

        Raises:
            ServerError: it doesn't come up; the message carries what it printed.
        """
        # -P: a module in the current folder may be a stranger's
        arguments = [sys.executable, "-P", "-m", "tokenwatt_site.simulator", "--port", "0"]
        arguments += ["--profile", options.profile, "--seed", str(options.seed)]
        for name, value in options.overrides.items():
            arguments += ["--override", f"{name}={float(value):.17g}"]
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True
            )
        except OSError as error:
            raise ServerError(
                f"the embedded engine can't be started: {error.strerror or error}",
                "see whether this machine has memory, processors and files left",
            ) from None
        self.url = self._address()

    def _address(self) -> str:
        process = self._process
        assert process.stdout is not None  # noqa: S101 - asked for above
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        line = process.stdout.readline() if ready else ""
        try:
            url: str = json.loads(line)["url"]
        except (ValueError, KeyError):
            process.kill()
            _, said = process.communicate()
            words = said.strip().partition("\n  next: ")[0].removeprefix("error: ")
            raise ServerError(
                f"the embedded engine didn't start: {words[-_SHOWN:] or 'no answer'}",
                "try `tokenwatt-site simulate` by hand",
            ) from None
        return url

    def close(self) -> None:
        """End the engine and wait for it."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def __enter__(self) -> Self:
        """Return the running engine."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.close()
