"""The conductor: the order of a measurement, from a spec to a saved document.

The server, its accelerators and its meters are opened in turn; then the session measures window
after window until the search has its answer.
"""

import asyncio
import datetime as dt
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from tokenwatt_site import accelerators, restore
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.hardware import known_hardware
from tokenwatt_site.documents.model_config import ModelConfig, spec_model_config
from tokenwatt_site.documents.run import Hardware, Run
from tokenwatt_site.documents.spec import SimulatorOptions, Spec
from tokenwatt_site.documents.tracefile import read_trace
from tokenwatt_site.errors import (
    Interrupted,
    InvalidMeasurement,
    NoPassingRate,
    TokenwattError,
    UsageError,
)
from tokenwatt_site.load.address import Address
from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.control import Control
from tokenwatt_site.load.descriptors import raise_descriptors
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.loop import new_loop
from tokenwatt_site.load.preflight import preflight
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.scrape import Scraper
from tokenwatt_site.load.selftest import Stamina
from tokenwatt_site.load.target import Target, checked_extra
from tokenwatt_site.load.workers import workers_for
from tokenwatt_site.method import prose
from tokenwatt_site.method.assemble import Resolved
from tokenwatt_site.method.draw import tail_s
from tokenwatt_site.method.energy_report import energy
from tokenwatt_site.method.evidence import power_file
from tokenwatt_site.method.identity import same_set_up, same_spec
from tokenwatt_site.method.measured_window import MeasuredWindow
from tokenwatt_site.method.meters import idle_s, meter_specs, rate_hz
from tokenwatt_site.method.probe import Done
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.rebuild import Rebuilt
from tokenwatt_site.method.recorded import with_recorded_rate
from tokenwatt_site.method.replay import Trace, trace_of
from tokenwatt_site.method.search import bounds_of, check_search
from tokenwatt_site.method.secrecy import refuse_secrets
from tokenwatt_site.method.utilisation import served_model
from tokenwatt_site.method.workloads import workload_of
from tokenwatt_site.power.opened import opened_of
from tokenwatt_site.power.sampler import Sampler
from tokenwatt_site.resources import resource
from tokenwatt_site.session import LEAD_S, SETTLE_S, Session, Setup
from tokenwatt_site.simulator.child import Child
from tokenwatt_site.store import RunStore

SIMULATOR = "simulator:"
Tell = Callable[[dict[str, Any]], None]
_FORM = (
    *("model", "max_context", "ids_ok", "ignore_eos_ok", "lengths_ok", "usage_ok"),
    "calibration",
)
"""What the preflight found that decides the requests."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a measurement was asked for, beside its spec."""

    spec_file: Path
    label: str
    role: str
    out: Path
    force: bool

    @classmethod
    def of(
        cls, spec: Spec, *, spec_file: Path, label: str, role: str, out: Path | None, force: bool
    ) -> Self:
        """Fill in the document's default place, ``runs/<label or spec name>.json``."""
        place = out or Path("runs") / f"{prose.slug(label or spec.name)}.json"
        return cls(spec_file, label, role, place, force)


@dataclass(frozen=True, slots=True)
class Result:
    """A finished measurement: its document, where it is, and what the program exits with."""

    run: Run
    out: Path
    exit_code: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that was cut off, taken up."""

    store: RunStore
    rebuilt: Rebuilt

    @property
    def spec(self) -> Spec:
        """Return what was asked."""
        return self.rebuilt.begin.spec

    def options(self) -> Options:
        """Return how it was asked for."""
        origin = self.rebuilt.begin.resolved.origin
        return Options(
            Path(origin.spec_file), origin.label, origin.role, self.store.out, force=False
        )


def take_up(out: Path, spec: Spec | None, spec_file: Path | None) -> Resumed:
    """Return a run to go on with; ``spec``, where it is given, must be the run's own.

    Raises:
        UsageError: another spec, or the run is written by another process.
        DocumentError: there is no run that can be gone on with.
    """
    resumed = Resumed(*restore.take_up(out))
    if spec is not None and spec_file is not None:
        trace = trace_of(read_trace(spec.workload.trace, spec_file.parent))
        same_spec(resumed.rebuilt.begin, with_recorded_rate(spec, trace))
    return resumed


def plan(spec: Spec, options: Options, resumed: Resumed | None = None) -> dict[str, Any]:
    """Return what a measurement would do; sends nothing.

    Raises:
        UsageError: the spec asks for what can't be, or for what this version refuses.
    """
    trace = resumed.rebuilt.trace if resumed else _trace(spec, options)
    spec = with_recorded_rate(spec, trace)
    _refuse(spec)
    _model(spec, options, resumed)
    address = None if spec.engine.endpoint == SIMULATOR else Address.of(spec.engine.endpoint)
    workload = workload_of(spec.workload, trace)
    meters = meter_specs(spec)
    settle_s = max(SETTLE_S, *(3 / rate_hz(meter) for meter in meters), 0.0)
    cost = bounds_of(spec, trace, tail_s(spec, trace) + LEAD_S + settle_s)
    rest_min = 2 * (idle_s(spec) + 2 * settle_s) / 60 if idle_s(spec) else 0.0
    folder = options.out.with_suffix("")
    names = [
        "schedule.jsonl",
        "events.jsonl",
        "requests.jsonl.gz",
        *map(power_file, range(len(meters))),
        *(["trace.jsonl.gz"] if trace else []),
    ]
    return {
        "endpoint": address.url if address else "the embedded engine",
        "loopback": address.loopback if address else True,
        "windows": [cost.windows_min, cost.windows_max],
        "minutes": [cost.minutes_best + rest_min, cost.minutes_worst + rest_min],
        "limits": prose.promise(spec),
        "workload": workload.describe(),
        "search": _search(spec),
        "power": ", ".join(f"{meter.source} at {rate_hz(meter):g} Hz" for meter in meters)
        or "none",
        "idle_s": idle_s(spec),
        "out": str(options.out),
        "resumed": len(resumed.rebuilt.windows) if resumed else None,
        "files": [str(options.out), *(str(folder / name) for name in names)],
    }


def measure(spec: Spec, options: Options, tell: Tell, resumed: Resumed | None = None) -> Result:
    """Measure what the spec asks for and save the document.

    Args:
        spec: the spec.
        options: label, role and place.
        tell: shown events: ``note``, ``tick``, ``window``.
        resumed: the run to go on with, from its last finished window.

    Raises:
        TokenwattError: the server, a meter or a file can't be used.
        Interrupted: Ctrl-C; the draft is saved.
    """
    trace = resumed.rebuilt.trace if resumed else _trace(spec, options)
    spec = with_recorded_rate(spec, trace)
    _refuse(spec)
    files = _model(spec, options, resumed)
    if resumed and resumed.rebuilt.done:
        return _finished(resumed, resumed.rebuilt.done)
    raise_descriptors(spec.measurement.max_concurrency)
    with ExitStack() as stack:
        # the files first: a place that can't be written costs no server time
        store = resumed.store if resumed else RunStore(options.out, force=options.force)
        stack.callback(store.close)
        url = _server(spec, stack)
        facts = preflight(spec, url, trace=trace)
        _note(tell, facts)
        hardware = _hardware(spec, url, tell)
        samplers = opened_of(
            spec,
            stack,
            count=hardware.count,
            simulator_url=url,
            folder=options.spec_file.parent,
        )
        setup = _setup(spec, options, (url, facts, hardware, samplers), store, tell)
        setup.trace, setup.resolved = trace, replace(setup.resolved, model=files)
        setup.scraper = _scraper(spec, setup.target, stack)
        session = Session(spec, setup)
        if resumed:
            same_set_up(resumed.rebuilt.begin, setup.resolved, session.meters(), setup.server)
            session.go_on(resumed.rebuilt)
        _play(session, options.out)
    assert session.done is not None  # noqa: S101 - the search has answered
    return Result(session.document(), options.out, exit_code(session.done, session.windows))


def _finished(resumed: Resumed, done: Done) -> Result:
    """Return the result of a run that needs no going on with; nothing is written."""
    run, _ = load_run(resumed.store.out)
    resumed.store.close()
    return Result(run, resumed.store.out, exit_code(done, resumed.rebuilt.windows))


def exit_code(done: Done, windows: Sequence[MeasuredWindow]) -> int:
    """Return 0 for a confirmed rate, 5 where windows or a meter are invalid, else 4."""
    reported = [w for w in windows if w.window.rate_rps == done.rate_rps and w.valid]
    metered = bool(reported and reported[0].meters)
    disagree = metered and not energy(reported)["valid"]
    if done.invalid or disagree or any(not m.energy.valid for w in reported for m in w.meters):
        return InvalidMeasurement.exit_code
    return 0 if done.word in ("met", "proven") else NoPassingRate.exit_code


def _play(session: Session, out: Path) -> None:
    """Run the session on a loop of its own; Ctrl-C ends the window and keeps the rest."""
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(session.run())
    except TokenwattError as error:
        kept = f"{error.what}; {out} holds {len(session.windows)} windows as a draft"
        hint = f"{error.hint}; tokenwatt-site measure --resume {out} goes on with it"
        raise type(error)(kept, hint.removeprefix("; ")) from None
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after {len(session.windows)} windows; {out} holds them as a draft",
            f"tokenwatt-site measure --resume {out} goes on with it",
        ) from None


def _refuse(spec: Spec) -> None:
    """Refuse by name what the spec may say and this version doesn't do."""
    check_search(spec)
    checked_extra(spec.engine.extra_body)
    refuse_secrets(spec)
    if spec.engine.simulator:
        shape_of(spec.engine.simulator.profile, spec.engine.simulator.overrides)
    if spec.hosts and spec.power:
        raise UsageError(
            "hosts and power are both given", "move the meters of `power` to the host they read"
        )
    if spec.engine.simulator and spec.engine.endpoint != SIMULATOR:
        raise UsageError(
            "engine.simulator is given and engine.endpoint isn't `simulator:`",
            "set engine.endpoint to `simulator:`, or remove engine.simulator",
        )


def _search(spec: Spec) -> str:
    if spec.sweep.rates:
        return "given rates"
    kind = "ladder"
    if spec.sweep.strategy == "adaptive":
        kind = f"adaptive ({spec.sweep.mode or 'standard'})"
    return f"{kind} from {spec.sweep.start_rps:g} requests/s"


def _trace(spec: Spec, options: Options) -> Trace | None:
    """Read the recorded trace that the spec names by its path from the spec's folder."""
    return trace_of(read_trace(spec.workload.trace, options.spec_file.parent))


def _model(spec: Spec, options: Options, resumed: Resumed | None) -> ModelConfig | None:
    """Return what bandwidth utilisation needs of the model's config, if the spec names one.

    Raises:
        UsageError: naming the key of the config that isn't understood.
    """
    if resumed:
        return resumed.rebuilt.begin.resolved.model
    files = spec_model_config(spec.model.config, options.spec_file.parent)
    if files is None and spec.model.geometry:
        raise UsageError(
            "model.geometry is given and model.config isn't",
            "name the config.json whose keys it replaces, or remove it",
        )
    return served_model(spec, files).config if files else None


def _server(spec: Spec, stack: ExitStack) -> str:
    """Return the API's base URL; the embedded engine is started for ``simulator:``."""
    if spec.engine.endpoint != SIMULATOR:
        return spec.engine.endpoint.rstrip("/")
    return stack.enter_context(Child(spec.engine.simulator or SimulatorOptions())).url


def _note(tell: Tell, facts: ServerFacts) -> None:
    version = f" {facts.engine_version}" if facts.engine_version else ""
    tell({"event": "note", "about": "server", "text": f"{facts.model}{version}"})
    for note in facts.notes:
        tell({"event": "note", "about": "server", "text": note})


def _hardware(spec: Spec, url: str, tell: Tell) -> Hardware:
    """Identify the accelerators; the rated bandwidth is the spec's or the shipped figure."""
    found = accelerators.identify(spec.hardware, None if spec.hosts else spec.model, url)
    for note in found.notes:
        tell({"event": "note", "about": "accelerators", "text": note})
    if spec.hosts and found.count:  # those of this host are the kind, not the number
        found = replace(found, count=spec.model.ranks, uuids=())
    rated = found.rated_bw_tbs_per_gpu
    if rated is None:
        figures = known_hardware(resource("content/hardware")).get(found.name)
        rated = figures.rated_bw_tbs.value if figures and figures.rated_bw_tbs else None
    return Hardware(
        vendor=found.vendor,
        accelerator=found.name,
        count=found.count,
        rated_bw_tbs_per_gpu=rated,
        driver=found.driver,
        host=spec.hardware.host,
        uuids=list(found.uuids) or None,
        power_limit_w=found.power_limit_w,
    )


def _scraper(spec: Spec, target: Target, stack: ExitStack) -> Scraper | None:
    """Start reading the server's own page, if it has one that we know."""
    control = Control(target.address, target.headers, ca_file=spec.engine.ca_file)
    scraper = Scraper(stack.enter_context(control))
    if not scraper.look():
        return None
    scraper.start()
    stack.callback(scraper.stop)
    return scraper


def _setup(
    spec: Spec,
    options: Options,
    found: tuple[str, ServerFacts, Hardware, list[Sampler]],
    store: RunStore,
    tell: Tell,
) -> Setup:
    url, facts, hardware, samplers = found
    target = Target.of(spec, url, facts)
    now = dt.datetime.now(dt.UTC)
    resolved = Resolved(
        hardware=hardware,
        engine_version=spec.engine.version or facts.engine_version,
        meter_source=samplers[0].meter.source if samplers else "",
        origin=prose.Origin(
            options.spec_file.name, options.label, options.role, _shown(options.out)
        ),
        run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        started=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        simulated=facts.model == "simulated",
        notes=tuple(facts.notes),
    )
    return Setup(
        target=target,
        prompts=PromptMaker.of(spec, facts),
        resolved=resolved,
        clock=RealClock(),
        connect=TcpConnector(target),
        wall=time.time,
        samplers=samplers,
        store=store,
        tell=tell,
        think=asyncio.to_thread,
        workers=workers_for,
        stamina=Stamina(),
        server={name: asdict(facts)[name] for name in _FORM},
    )


def _shown(out: Path) -> str:
    """The document's path as a reader may use it: never a path of this machine."""
    return out.as_posix() if not out.is_absolute() else f"runs/{out.name}"
