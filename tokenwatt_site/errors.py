"""One small tree of errors, each with its exit code.

    TokenwattError (1)
    ├── UsageError (2)          a spec, an option, a file that can't be used
    │   └── RefusedError (2)    asked for by name, known, not to be had
    ├── DocumentError (1)       a run document or content file that can't be read
    ├── FindingsError (3)       strict checks or a verification found something
    ├── NoPassingRate (4)       measured; no rate kept the limits
    ├── InvalidMeasurement (5)  measured; a confirm window or a meter is invalid
    ├── ServerError (1)         the server under test: dead, wrong, refusing
    └── Interrupted (130)       stopped by the user, the draft is saved

Every message says what happened, where (file:line, field or address) and what to do next.
"""


class TokenwattError(Exception):
    """What stops the work. ``what`` happened, ``hint`` is the next step."""

    exit_code = 1

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        """Return the message, and the next step on a line of its own."""
        return f"{self.what}\n  next: {self.hint}" if self.hint else self.what


class UsageError(TokenwattError):
    """A spec, an option or a file that can't be used as given."""

    exit_code = 2


class RefusedError(UsageError):
    """Something known by name that this version or this machine doesn't do."""


class DocumentError(TokenwattError):
    """A run document or a content file that can't be read or isn't valid."""


class FindingsError(TokenwattError):
    """Checks or a verification found something (strict)."""

    exit_code = 3


class NoPassingRate(TokenwattError):  # noqa: N818 - an outcome, not a fault
    """Measured, and no rate kept the limits."""

    exit_code = 4


class InvalidMeasurement(TokenwattError):  # noqa: N818 - an outcome, not a fault
    """Measured, and a confirm window or a configured meter is invalid."""

    exit_code = 5


class ServerError(TokenwattError):
    """The server under test can't be measured: dead, wrong or refusing."""


class Interrupted(TokenwattError):  # noqa: N818 - an outcome, not a fault
    """Stopped by the user; what was measured is saved as a draft."""

    exit_code = 130
