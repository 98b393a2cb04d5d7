"""A server's power by its management controller: DCMI's reading, else its supplies' sensors.

The program is ipmitool. DCMI (Intel's Data Center Manageability Interface) reads the platform's
power and doesn't say on which side of the supplies it is taken.
"""

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power.meter import Now, now
from tokenwatt_site.power.program import Outcome, run
from tokenwatt_site.power.reading import checked

PORT, LAST_PORT = 623, 65_535
TIMEOUT_S = 8.0
"""ipmitool gives up a silent controller after some seconds of its own."""
DCMI = ("dcmi", "power", "reading")
SENSORS = ("sdr", "type", "Current")
_READING = re.compile(r"Instantaneous power reading:\s*(\d+)\s+Watts", re.ASCII)
_STATE = re.compile(r"Power reading state is:\s*(\w+)")
_HOST = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?", re.ASCII
)
_SUPPLY = re.compile(r"(PS|PSU|Power Supply)\s*\d+.*(Power In|Input Power|PIN)\b", re.IGNORECASE)
_CODES = {
    "Invalid command": "not_supported",
    "Could not open device": "unreachable",
    "Unable to establish": "unreachable",
    "Permission denied": "no_permission",
    "HMAC is invalid": "unauthorized",
    "insufficient privilege": "no_permission",
}
_HINTS = {
    "not_supported": "use redfish, or a meter at the wall by command",
    "unreachable": "check power.host, that IPMI over LAN is on, and the user and its password: "
    "ipmitool doesn't tell them apart; without a host, load the module ipmi_devintf",
    "no_permission": "run as root, or give the user the right to read /dev/ipmi0; over the network "
    "it needs the privilege of an administrator or operator",
    "unauthorized": "check power.username and the variable that power.password_env names",
    "timeout": "check that the controller answers, or sample less often",
}


@dataclass(frozen=True, slots=True)
class Ipmi:
    """How ipmitool is called; the password only stands in the child's environment."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict, repr=False)

    def ask(self, words: Sequence[str]) -> Outcome:
        """Run one command of ipmitool's."""
        return run((*self.argv, *words), TIMEOUT_S, self.environment)


class IpmiMeter:
    """The instantaneous power of one server."""

    name = "ipmi"

    def __init__(
        self, ipmi: Ipmi, scope: Scope, gain_pct: float | None = None, clock: Now = now
    ) -> None:
        self._ipmi, self._clock = ipmi, clock
        self._words = DCMI
        self.scope = scope
        self.gain_pct = gain_pct
        self.devices = ("node",)

    @property
    def source(self) -> str:
        """The meter in words."""
        if self._words == SENSORS:
            return "IPMI sensors of the power supplies' input (ipmitool)"
        return "IPMI DCMI power reading (ipmitool; the side of the supplies isn't told)"

    def use_sensors(self) -> None:
        """Read the supplies' sensors instead of DCMI."""
        self._words = SENSORS

    def read(self) -> list[PowerSample]:
        """Return one sample, stamped at the middle of the program's run."""
        began_s = self._clock()
        done = self._ipmi.ask(self._words)
        t_s = (began_s + self._clock()) / 2
        parse = sensors_w if self._words == SENSORS else dcmi_w
        watts, error = parse(done.output) if done.error is None else (None, code_of(done))
        return [PowerSample(t_s, self.devices[0], power_w=watts, error=error)]

    def close(self) -> None:
        """Nothing is kept open."""


def code_of(done: Outcome) -> str | None:
    """Return a reading's code for what ipmitool wrote when it failed."""
    if done.error != "failed":
        return done.error
    found = (code for words, code in _CODES.items() if words in done.stderr)
    return next(found, "failed")


def dcmi_w(output: str) -> tuple[float | None, str | None]:
    """Return the power of a DCMI reading, W, or None and why; averages are over unknown times.

    0 W is a controller without a sensor.
    """
    found = _READING.findall(output)
    if len(found) != 1:
        return None, "bad_answer"
    state = _STATE.search(output)
    if state is not None and state[1] != "activated":
        return None, "no_data"
    watts = float(found[0])
    error = "not_supported" if watts == 0 else checked(watts, "power")
    return (None, error) if error else (watts, None)


def sensors_w(output: str) -> tuple[float | None, str | None]:
    """Return the sum of the supplies' input, W; None and why where one isn't read.

    A supply on standby reads 0 and is counted so; all of them at 0 is no reading.
    """
    total_w, supplies = 0.0, 0
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if not _SUPPLY.match(cells[0]):
            continue
        reading = re.fullmatch(r"(\d+(?:\.\d+)?) Watts", cells[-1], re.ASCII)
        if reading is None:
            return None, "device_missing"
        supplies += 1
        total_w += float(reading[1])
    if not supplies:
        return None, "not_supported"
    error = checked(total_w, "power")
    return (None, error) if error else (total_w, None)


def _ipmi(power: SpecPower) -> Ipmi:
    if power.host is None:
        return Ipmi(("ipmitool", "-I", "open"))
    host = _HOST.fullmatch(power.host)
    if host is None or not 0 < int(host["port"] or PORT) <= LAST_PORT:
        raise UsageError(
            f"power.host: {power.host!r} is no host",
            "set power.host to a name or an address, with a port if it isn't 623: bmc.example:623",
        )
    if not power.username or power.username.startswith("-"):
        raise UsageError(
            "power.username: IPMI over the network needs a user name", "set power.username"
        )
    secret = os.environ.get(power.password_env or "")
    if secret is None:
        raise RefusedError(
            f"power.password_env: the variable {power.password_env or 'of the password'} isn't set",
            "name the variable in power.password_env, and export it with the password",
        )
    address = host["host"].strip("[]")
    remote = ("-I", "lanplus", "-H", address, "-p", host["port"] or str(PORT))
    return Ipmi(("ipmitool", *remote, "-U", power.username, "-E"), {"IPMI_PASSWORD": secret})


def open_ipmi(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> IpmiMeter:
    """Open a management controller and read it once.

    ``power.host`` may end in a port; without it the local controller is read.

    Raises:
        RefusedError: no ipmitool, no password, no answer, or no power in the answer.
        UsageError: a host or user name that is none.
    """
    del gpus, count, simulator_url
    ipmi = _ipmi(power)
    if shutil.which("ipmitool") is None:
        raise RefusedError("IPMI: ipmitool isn't installed", "apt install ipmitool")
    meter = IpmiMeter(ipmi, power.scope or "node_ac", power.gain_pct)
    error = meter.read()[0].error
    if error == "not_supported":
        meter.use_sensors()
        error = meter.read()[0].error
    if error is not None:
        raise RefusedError(
            f"IPMI: the controller gives no power ({error})",
            _HINTS.get(error, "run ipmitool dcmi power reading by hand"),
        )
    return meter
