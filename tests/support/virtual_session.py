"""A session against the embedded engine in this process, both on a loop's virtual time."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.virtual_loop import MemoryConnector, VirtualClock
from tokenwatt_site.documents.run import Hardware
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.assemble import Resolved
from tokenwatt_site.method.overrides import Meter
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.prose import Origin
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.session import Session, Setup
from tokenwatt_site.simulator.app import App
from tokenwatt_site.simulator.engine import Engine
from tokenwatt_site.store import RunStore


def session_of(
    spec: Spec,
    out: Path,
    overrides: dict[str, Any],
    tell: Callable[[dict[str, Any]], None] = lambda _: None,
    store: RunStore | None = None,
    trace: Trace | None = None,
) -> Session:
    """Return a session that measures the engine of the demo profile with these overrides."""
    loop = asyncio.get_running_loop()
    app = App(Engine(StepModel(shape_of("demo", overrides)), loop), Meter())
    facts = ServerFacts(model="simulated", ids_ok=True)
    setup = Setup(
        target=Target.of(spec, spec.engine.endpoint, facts),
        prompts=PromptMaker(spec.workload.seed, spec.model.vocab_size),
        resolved=Resolved(
            hardware=Hardware(vendor="", accelerator="", count=0),
            engine_version="",
            meter_source="",
            origin=Origin("virtual.spec.yaml", "", "baseline", "runs/virtual.json"),
            run_id="20261130T000000Z-000000",
            started="2026-11-30T00:00:00Z",
        ),
        clock=VirtualClock(),
        connect=MemoryConnector(app.connection),
        wall=loop.time,
        samplers=[],
        store=store or RunStore(out),
        tell=tell,
        trace=trace,
    )
    return Session(spec, setup)
