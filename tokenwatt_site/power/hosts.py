"""The meters of several hosts as one: each device by its host, every stamp on this host's clock."""

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any, get_args

from tokenwatt_site.documents.spec import Scope, SpecHost, SpecPower
from tokenwatt_site.drivers.agent import AgentClient, Answer, checked_token
from tokenwatt_site.drivers.choice import EVERY
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.evidence import sample_of
from tokenwatt_site.method.meters import HostFacts, MeterFacts
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import Meter, averaged_s, now
from tokenwatt_site.power.reading import finite
from tokenwatt_site.power.remote_clock import RemoteClock

POLL_S = 0.5
"""An agent is asked no oftener; its readings have their own times."""
_PINGS = 8
_MOST_DEVICES = 4096
_OLDEST_S = 3600.0
_CODE = re.compile(r"[A-Za-z0-9_]{0,40}")


class LocalPart:
    """A meter of this host."""

    def __init__(self, host: SpecHost, meter: Meter) -> None:
        self.facts = HostFacts(host.name, host.role)
        self.meter = meter
        self.scope: Scope = meter.scope
        self.source = meter.source
        self.gain_pct = meter.gain_pct
        self.averaged_s = averaged_s(meter)
        self.devices = _named(host.name, meter.devices)

    def read(self) -> list[PowerSample]:
        """Return a reading."""
        return [replace(s, device=f"{self.facts.name}/{s.device}") for s in self.meter.read()]

    def close(self) -> None:
        """Close the meter."""
        self.meter.close()


class RemotePart:
    """A meter of another host, by its agent."""

    def __init__(self, host: SpecHost, number: int, client: AgentClient) -> None:
        """Ask the agent what it has.

        Raises:
            RefusedError: it can't be reached, doesn't know the token, or has other meters.
        """
        self._client, self._number = client, number
        self._clock, wall = RemoteClock(), RemoteClock()
        said: dict[str, Any] = {}
        try:
            for _ in range(_PINGS):
                said = self._asked(host, wall)
            meter = _facts(host, said, number)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            raise RefusedError(
                f"hosts: the agent of {host.name} has other meters, or says what can't be",
                "start it with the same spec, and the same version of this program",
            ) from None
        error_ms = 1000 * self._clock.error_s
        self.facts = HostFacts(host.name, host.role, 1000 * wall.offset_s, error_ms)
        self.scope: Scope = meter.scope
        self.source, self.gain_pct = meter.source, meter.gain_pct
        self.averaged_s = meter.averaged_s
        self._own = meter.devices
        self.devices = _named(host.name, meter.devices)
        self._after_s = _stamp(said, "now_s") - 1.0
        self._asked_s = 0.0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="agent")
        self._pending: Future[Answer] | None = None

    def _asked(self, host: SpecHost, wall: RemoteClock) -> dict[str, Any]:
        answer = self._client.ask("/v1/facts")
        if answer.data is None:
            raise RefusedError(
                f"hosts: the agent of {host.name} can't be asked ({answer.code})",
                f"on that host: tokenwatt-site power agent SPEC --host {host.name}",
            )
        self._clock.see(answer.sent_s, answer.received_s, _stamp(answer.data, "now_s"))
        wall.see(
            answer.sent_s,
            answer.received_s,
            _stamp(answer.data, "wall_s") - (time.time() - time.monotonic()),
        )
        return answer.data

    def read(self) -> list[PowerSample]:
        """Return what the agent has read since it was asked last, with our times.

        It is asked in a thread of its own: a host that is slow holds up no other.
        """
        found: list[PowerSample] = []
        if self._pending is not None and self._pending.done():
            found = self._answered(self._pending.result())
            self._pending = None
        if self._pending is None and now() - self._asked_s >= POLL_S:
            self._asked_s = now()
            target = f"/v1/readings?meter={self._number}&after={self._after_s!r}"
            self._pending = self._pool.submit(self._client.ask, target)
        return found

    def _answered(self, answer: Answer) -> list[PowerSample]:
        try:
            return self._samples(answer) if answer.data else self._failed(answer.code or "no_data")
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return self._failed("bad_answer")

    def _samples(self, answer: Answer) -> list[PowerSample]:
        data: dict[str, Any] = answer.data or {}
        now_s = _stamp(data, "now_s")
        read = [_sample(row, now_s) for row in data["rows"]]
        self._clock.see(answer.sent_s, answer.received_s, now_s)
        self._after_s = max([self._after_s, *(s.t_s for s in read)])
        return [
            replace(s, t_s=self._clock.ours(s.t_s), device=f"{self.facts.name}/{s.device}")
            for s in read
            if s.device in self._own
        ]

    def _failed(self, code: str) -> list[PowerSample]:
        return [PowerSample(now(), device, error=code) for device in self.devices]

    def close(self) -> None:
        """Wait for a question that is asked, which has its limit, and close the connection."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()


@dataclass(frozen=True, slots=True)
class HostsMeter:
    """One meter of each host, which include the same, as one meter."""

    parts: tuple[LocalPart | RemotePart, ...]
    name: str

    @property
    def scope(self) -> Scope:
        """Return what they include."""
        return self.parts[0].scope

    @property
    def source(self) -> str:
        """Return them in words."""
        return f"Sum over {len(self.parts)} hosts: {self.parts[0].source}"

    @property
    def devices(self) -> tuple[str, ...]:
        """Return every host's devices, as host/device."""
        return tuple(device for part in self.parts for device in part.devices)

    @property
    def gain_pct(self) -> float | None:
        """Return the largest bound; meters of one kind may err alike."""
        known = [part.gain_pct for part in self.parts if part.gain_pct is not None]
        return max(known) if len(known) == len(self.parts) else None

    @property
    def averaged_s(self) -> float:
        """Return the longest time that a reading is a mean of."""
        return max(part.averaged_s for part in self.parts)

    @property
    def hosts(self) -> tuple[HostFacts, ...]:
        """Return the hosts."""
        return tuple(part.facts for part in self.parts)

    def read(self) -> list[PowerSample]:
        """Return what is new of every host."""
        return [sample for part in self.parts for sample in part.read()]

    def close(self) -> None:
        """Let all of them go."""
        for part in self.parts:
            part.close()


def open_hosts(hosts: Sequence[SpecHost], number: int) -> HostsMeter:
    """Open the meter of a place in every host's list.

    Args:
        hosts: those of the spec.
        number: place in ``power``, the primary one 0.

    Raises:
        RefusedError: an agent can't be asked, or the hosts' meters don't include the same.
        UsageError: hosts of one name, other meters on one than on another, or no token.
    """
    _same_kind(hosts)
    with ExitStack() as opened:
        parts = [
            opened.enter_context(closing(_open(host, host.power[number], number))) for host in hosts
        ]
        _same_scope(parts)
        opened.pop_all()  # all are fine: the meter closes them
    return HostsMeter(tuple(parts), hosts[0].power[number].source)


def _open(host: SpecHost, asked: SpecPower, number: int) -> LocalPart | RemotePart:
    if host.agent is None:
        meter = open_meter(asked, gpus=host.gpus, count=EVERY, simulator_url=None)
        return LocalPart(host, meter)
    token = checked_token(os.environ.get(host.token_env or ""), host.token_env)
    client = AgentClient(host.agent, token)
    try:
        return RemotePart(host, number, client)
    except BaseException:
        client.close()
        raise


def _same_kind(hosts: Sequence[SpecHost]) -> None:
    names = [host.name for host in hosts]
    if len(set(names)) < len(names) or any("/" in name or not name for name in names):
        raise UsageError(
            "hosts: a name is missing, has a slash or is given twice", "name each once"
        )
    kinds = {tuple(meter.source for meter in host.power) for host in hosts}
    if len(kinds) > 1 or () in kinds:
        raise UsageError(
            "hosts: each needs the same meters, in the same order", "give each the same sources"
        )


def _same_scope(parts: Sequence[LocalPart | RemotePart]) -> None:
    scopes = sorted({part.scope for part in parts})
    if len(scopes) > 1:
        raise RefusedError(
            f"hosts: their meters include different things: {', '.join(scopes)}",
            "name meters of one scope on every host",
        )


def _facts(host: SpecHost, said: dict[str, Any], number: int) -> MeterFacts:
    """Return what an agent says of a meter.

    Raises:
        RefusedError: it is another host's.
        LookupError, TypeError, ValueError, AttributeError: it says something else.
    """
    if said["host"] != host.name:
        raise RefusedError(
            f"hosts: the agent of {host.name} is that of another host", "correct hosts.agent"
        )
    meter = MeterFacts.of_row(said["meters"][number])
    texts: tuple[Any, ...] = (*meter.devices, meter.source, meter.name)
    plain = all(isinstance(text, str) and text.isprintable() for text in texts)
    numbers = (meter.averaged_s, 0.0 if meter.gain_pct is None else meter.gain_pct)
    once = 0 < len(meter.devices) == len(set(meter.devices)) <= _MOST_DEVICES
    known = meter.scope in get_args(Scope)
    if not (plain and once and known and all(map(finite, numbers))):
        raise ValueError("no facts of a meter")
    return meter


def _sample(row: dict[str, Any], now_s: float) -> PowerSample:
    """Return a stranger's row as a sample; its numbers are looked at where samples are kept.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: it is no such row, or of another time.
    """
    sample = sample_of(row)
    words: tuple[Any, ...] = (sample.error or "", *(sample.throttle or ()), *sample.throttle_ns)
    counts = list(sample.throttle_ns.values())
    if not all(isinstance(word, str) and _CODE.fullmatch(word) for word in words):
        raise ValueError("a code that is none")
    if not all(map(finite, (*counts, sample.t_s))) or abs(sample.t_s - now_s) > _OLDEST_S:
        raise ValueError("a reading of another time")
    return sample


def _stamp(data: dict[str, Any], key: str) -> float:
    if not finite(data[key]):
        raise ValueError(f"{key} is no time")
    return float(data[key])


def _named(host: str, devices: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{host}/{device}" for device in devices)
