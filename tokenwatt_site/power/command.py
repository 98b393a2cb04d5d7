"""A program that prints a reading: one number, or JSON with the number in a field."""

import json
import re
from collections.abc import Sequence
from typing import Any

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.program import run
from tokenwatt_site.power.reading import Quantity, asked_for, checked

TIMEOUT_S = 5.0
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class CommandMeter:
    """What a program prints, run anew for each reading."""

    name = "command"

    def __init__(
        self, power: SpecPower, argv: Sequence[str], scope: Scope, clock: Now = now
    ) -> None:
        self._argv, self._field, self._clock = tuple(argv), power.field, clock
        quantity, self._factor = asked_for(power)
        self._quantity: Quantity = quantity
        self.scope = scope
        self.gain_pct = power.gain_pct
        self.devices = ("command",)
        # arguments may hold what isn't for readers: the program's name is enough
        program = self._argv[0].rsplit("/", 1)[-1]
        self.source = f"Reading of {self._quantity} by the command {program}"

    def read(self) -> list[PowerSample]:
        """Return one sample, stamped at the middle of the program's run."""
        began_s = self._clock()
        done = run(self._argv, TIMEOUT_S)
        t_s = (began_s + self._clock()) / 2
        device = self.devices[0]
        raw = None if done.error else number(done.output, self._field)
        error = done.error or ("bad_answer" if raw is None else checked(raw, self._quantity))
        if raw is None or error is not None:
            return [PowerSample(t_s, device, error=error)]
        if self._quantity == "energy":
            return [PowerSample(t_s, device, energy_j=raw * self._factor)]
        return [PowerSample(t_s, device, power_w=raw * self._factor)]

    def close(self) -> None:
        """Nothing is kept open."""


def number(output: str, field: str | None) -> float | None:
    """Return the one number of a program's output, None where there isn't exactly one.

    ``field`` is a path with dots into JSON; a part that is a whole number counts in a list. A text
    is a number only whole: no unit, no comma, no N/A.
    """
    if field is None:
        return _plain(output)
    try:
        found: Any = json.loads(output)
        for part in field.split("."):
            is_list = isinstance(found, list)
            found = found[int(part) if is_list else part]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float, str)):
        return None
    return _plain(str(found))


def _plain(text: str) -> float | None:
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def open_command(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> CommandMeter:
    """Open a program that prints a reading, and run it once.

    Raises:
        RefusedError: it can't be run, or what it prints is no reading.
        UsageError: command, scope, quantity or unit aren't given.
    """
    del gpus, count, simulator_url
    if not power.command:
        raise UsageError(
            "power.command: the command meter has no program",
            "set power.command to a list: the program, then its arguments",
        )
    if power.scope is None:
        raise UsageError(
            "power.scope: a command can't say what its readings include",
            "set power.scope, such as node_ac for a meter at the wall",
        )
    meter = CommandMeter(power, power.command, power.scope)
    error = meter.read()[0].error
    if error is not None:
        raise RefusedError(
            f"power.command: {power.command[0]} gives no reading ({error})",
            "run it by hand: it must print one number, or JSON with power.field, and exit with 0 "
            f"within {TIMEOUT_S:g} s",
        )
    return meter
