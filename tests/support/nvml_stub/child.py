"""Runs in a process that sees the stub: a request a line on standard input, an answer a line.

Each request is answered by a fork, so that the library and its state are fresh and Python isn't
started anew; ``"state"`` is what the stub begins with.

``{"do": "identify", "hardware": {…}, "model": {…}}`` names the accelerators. ``{"do": "sample",
"power": {…}, "gpus": …, "count": …, "hz": …, "seconds": …, "events": [[t, "key=value"], …]}``
samples the meter through the real sampler, from t = 100 s, on a clock that the stub shares and
that only waiting moves: nothing sleeps. A reading takes ``call_s`` of that clock.
"""

import ctypes
import importlib
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from tokenwatt_site.accelerators import identify
from tokenwatt_site.documents.spec import SpecHardware, SpecModel, SpecPower
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import averaged_s
from tokenwatt_site.power.sampler import Sampler

BEGIN_S = 100.0
STUBS = {"nvml": ("libnvidia-ml.so.1", "nvml_stub_set"), "amd": ("libamd_smi.so", "amd_stub_set")}


class Time:
    """A clock that the stub shares."""

    def __init__(
        self, stub: str, seconds: float, events: list[tuple[float, str]], call_s: float
    ) -> None:
        self.t_s = BEGIN_S
        self.end_s = BEGIN_S + seconds
        self.events = sorted(events)
        self.call_s = call_s
        library, call = STUBS[stub]
        self.tell_stub = getattr(ctypes.CDLL(library), call)

    def now(self) -> float:
        self.t_s += self.call_s / 4  # the sampler and the meter look twice each in a reading
        self.set()
        return self.t_s

    def wait(self, seconds: float) -> bool:
        while self.events and self.events[0][0] <= self.t_s + seconds:
            at_s, words = self.events.pop(0)
            self.set(f" {words}", at_s)
        self.t_s += seconds
        self.set()
        return self.t_s >= self.end_s

    def set(self, words: str = "", at_s: float | None = None) -> None:
        self.tell_stub(f"now_s={at_s or self.t_s:.9f}{words}".encode())


def sample(request: dict[str, Any]) -> dict[str, Any]:
    events = [tuple(event) for event in request.get("events", [])]
    stub = request.get("stub", "nvml")
    time = Time(stub, request.get("seconds", 0.0), events, request.get("call_s", 0.0))
    if stub == "nvml":  # the other's counter is looked at when the meter is opened: it must move
        time.set()
    meter = open_meter(
        SpecPower(**request["power"]),
        gpus=request.get("gpus"),
        count=request["count"],
        simulator_url=None,
    )
    meter._clock = time.now  # type: ignore[attr-defined]
    sampler = Sampler(meter, request.get("hz", 10.0), clock=time.now, wait=time.wait)
    sampler.run()
    samples = sampler.stop()
    meter.close()
    return {
        "name": meter.name,
        "source": meter.source,
        "scope": meter.scope,
        "devices": meter.devices,
        "averaged_s": averaged_s(meter),
        "skipped": sampler.skipped,
        "errors": sampler.errors,
        "samples": [asdict(sample) for sample in samples],
    }


def named(request: dict[str, Any]) -> dict[str, Any]:
    model = SpecModel(name="m", **request.get("model", {}))
    return asdict(identify(SpecHardware(**request["hardware"]), model))


def answer(request: dict[str, Any]) -> None:
    os.environ["NVML_STUB"] = os.environ["AMD_STUB"] = request.get("state", "")
    try:
        did = {"sample": sample, "identify": named}[request["do"]](request)
        said: dict[str, Any] = {"result": did}
    except TokenwattError as error:
        said = {"error": error.what, "hint": error.hint, "kind": type(error).__name__}
    sys.stdout.write(json.dumps(said, allow_nan=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    while line := sys.stdin.readline():
        if '"stub": "amd"' in line:
            importlib.import_module("amdsmi")  # once: it takes longer than an answer
        if pid := os.fork():
            _, status = os.waitpid(pid, 0)
            if status:
                sys.exit(f"answering failed: {line}")
        else:
            answer(json.loads(line))
            os._exit(0)


if __name__ == "__main__":
    main()
