"""A whole measurement in virtual time that costs a tenth of a second: a server that is a formula.

Its answers depend on the requests in flight alone, so that a window gives the same figures whatever
was before it, and so does the meter.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.scripted import END, HEAD, Script, ScriptedServer, chunk, event
from tests.support.virtual_loop import MemoryConnector, VirtualClock
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.documents.run import Hardware
from tokenwatt_site.documents.spec import Scope, Spec
from tokenwatt_site.load.connector import Connector
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.assemble import Resolved
from tokenwatt_site.method.prose import Origin
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.restore import take_up
from tokenwatt_site.session import Session, Setup
from tokenwatt_site.store import RunStore

DEVICES = ("GPU-0", "GPU-1")
FACTS = ServerFacts(model="formula", ids_ok=True)


def spec_of(**sections: Mapping[str, Any]) -> Spec:
    """Return a spec of short windows; the server keeps its limits up to about 100 requests/s."""
    values: dict[str, Any] = {
        "name": "virtual",
        "engine": {"endpoint": "http://127.0.0.1:1/v1", "name": "formula"},
        "model": {"name": "formula", "vocab_size": 32_000},
        "slo": {"ttft_p99_ms": 400, "tpot_p99_ms": 50},
        "workload": {
            "trace": None,
            "input_tokens": {"median": 6, "p90": 12},
            "output_tokens": {"fixed": 2},
            "seed": 5,
        },
        "measurement": {
            "idle_s": 0.5,
            "warmup_s": 0.2,
            "window_s": 0.2,
            "search_window_s": 0.2,
            "repeats": 3,
            "request_timeout_s": 5,
        },
        "sweep": {"start_rps": 60, "growth": 2, "bisect_steps": 1, "backoff": 0.9},
        "power": {"source": "simulated", "sampling_hz": 10},
    }
    for name, change in sections.items():
        values[name] = values[name] | change
    return Spec.model_validate(values)


@dataclass(slots=True)
class VirtualSampler:
    """Stands where a meter's sampler does; each window sees the same readings of it."""

    hz: float = 10
    scope: Scope = "board"
    gain_pct = 0.0
    devices: tuple[str, ...] = DEVICES
    name: str = "virtual"
    source: str = "Two boards of a formula"

    @property
    def meter(self) -> "VirtualSampler":
        """Return the meter: this."""
        return self

    def between(self, start_s: float, end_s: float) -> list[PowerSample]:
        """Return readings at even times from ``start_s`` on."""
        return [
            PowerSample(
                start_s + k / self.hz,
                device,
                power_w=300.5 + 10 * number + 7 * (k % 5),
                energy_j=1000.0 + (312.5 + 10 * number) * k / self.hz,
                throttle=("sw_power_cap",) if k % 7 == 0 else (),
                limit_w=700.0,
                clock_mhz=1980.0,
                temperature_c=60.0 + k % 3,
            )
            for k in range(int((end_s - start_s) * self.hz) + 1)
            for number, device in enumerate(self.devices)
        ]

    def recent(self) -> list[PowerSample]:
        """Return nothing: no display is tested here."""
        return []


class Formula:
    """Answers each request by the number of those that came in the second before it."""

    def __init__(self) -> None:
        self.server = ScriptedServer(self.script)
        self._came: deque[float] = deque()

    def script(self, _number: int, body: dict[str, Any]) -> Script:
        """Return the first token after 50 ms, or more above 100 requests/s; then 5 ms a token."""
        now_s = asyncio.get_running_loop().time()
        while self._came and self._came[0] <= now_s - 1:
            self._came.popleft()
        self._came.append(now_s)
        wait_s = 0.05 + 0.02 * max(0, len(self._came) - 100)
        tokens = body["max_tokens"]
        stream: list[tuple[float, bytes]] = [(wait_s, HEAD + TOKEN)]
        stream += [(wait_s + 0.005 * i, TOKEN) for i in range(1, tokens)]
        return [*stream, (wait_s + 0.005 * tokens, _end(len(body["prompt"]), tokens))]


TOKEN = chunk(event({"choices": [{"index": 0, "text": "a", "finish_reason": None}]}))


@cache
def _end(prompt: int, tokens: int) -> bytes:
    last = {
        "choices": [{"index": 0, "text": "", "finish_reason": "length"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": tokens},
    }
    return chunk(event(last), event("[DONE]")) + END


@dataclass(slots=True)
class VirtualRun:
    """How a measurement in virtual time is set up."""

    out: Path
    spec: Spec = field(default_factory=spec_of)
    connect: Callable[[], Connector] = lambda: MemoryConnector(Formula().server)
    wall: Callable[[], float] | None = None
    role: str = "baseline"
    trace: Trace | None = None
    samplers: tuple[Any, ...] = ()
    """Those of several meters; without them there is one, if the spec asks for power."""
    tell: Callable[[dict[str, Any]], None] = lambda _: None
    model: ModelConfig | None = None
    """What was read of the model's config."""

    def session(self, store: RunStore) -> Session:
        """Return the session; to be called on a virtual loop."""
        loop = asyncio.get_running_loop()
        setup = Setup(
            target=Target.of(self.spec, self.spec.engine.endpoint, FACTS),
            prompts=PromptMaker(self.spec.workload.seed, self.spec.model.vocab_size),
            resolved=self.resolved(),
            clock=VirtualClock(),
            connect=self.connect(),
            wall=self.wall or loop.time,
            samplers=self.samplers or ([VirtualSampler()] if self.spec.power else []),  # type: ignore[arg-type]
            store=store,
            tell=self.tell,
            server={"model": FACTS.model},
            trace=self.trace,
        )
        return Session(self.spec, setup)

    def resolved(self) -> Resolved:
        """Return what a preflight would have found."""
        return Resolved(
            hardware=Hardware(
                vendor="nobody",
                accelerator="Formula",
                count=2,
                power_limit_w=700.0,
                rated_bw_tbs_per_gpu=1e-4 if self.model else None,
            ),
            engine_version="1.0",
            meter_source=VirtualSampler().source,
            origin=Origin("virtual.spec.yaml", "", self.role, f"runs/{self.out.name}"),
            run_id="20261130T000000Z-000000",
            started="2026-11-30T00:00:00Z",
            model=self.model,
        )

    async def measure(self, mortal: Callable[[RunStore], Any] = lambda store: store) -> Session:
        """Measure to the end: anew, or from where a run that was cut off stands.

        ``mortal`` wraps the store, to end the process while it writes.
        """
        if not self.out.exists():
            store = RunStore(self.out, force=True)
            session = self.session(mortal(store))
        else:
            store, rebuilt = take_up(self.out)
            session = self.session(mortal(store))
            session.go_on(rebuilt)
        try:
            await session.run()
        finally:
            store.close()
        return session
