"""The running embedded engine, its counter hidden, its meter true or 10 % wrong.

Its own energy comes from ``/metrics``, which the meter's overrides don't touch.
"""

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tokenwatt_site.documents.spec import SimulatorOptions, SpecPower
from tokenwatt_site.method.energy import EnergyWindow, energy_window
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import now
from tokenwatt_site.power.sampler import Sampler
from tokenwatt_site.simulator.child import Child

HZ = 10.0
CLIENTS = (3, 5, 7, 9, 11)
"""Requests of each client, one after the other: the load ebbs away, and power with it."""


@dataclass(frozen=True)
class Edge:
    """Counters of the engine at one time of our clock."""

    t_s: float
    energy_j: float
    tokens: float


class Browser:
    """A connection to the engine."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def get(self, method: str, path: str, body: object = None) -> str:
        self._connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "text/json"}
        )
        answer = self._connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return text

    def edge(self, gpus: int) -> Edge:
        began_s = now()
        text = self.get("GET", "/metrics")
        t_s = (began_s + now()) / 2
        rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
        values = {name: float(value) for name, value in rows}
        energy_j = gpus * values["simulator:energy_j_total"]
        return Edge(t_s, energy_j, values["vllm:generation_tokens_total"])

    def close(self) -> None:
        self._connection.close()


def client(url: str, requests: int) -> None:
    browser = Browser(url)
    body = {"model": "simulated", "prompt": list(range(2, 258)), "max_tokens": 48}
    for _ in range(requests):
        browser.get("POST", "/v1/completions", body | {"ignore_eos": True})
    browser.close()


def measured(gain: float) -> tuple[EnergyWindow, float, float]:
    """Return a window under load, the engine's own energy of it, J, and its output tokens."""
    overrides: dict[str, int | float | bool] = {"meter_counter": False, "meter_gain": gain}
    with Child(SimulatorOptions(profile="demo", seed=1, overrides=overrides)) as engine:
        asked = SpecPower(source="simulated")
        meter = open_meter(asked, gpus=None, count=2, simulator_url=engine.url)
        sampler = Sampler(meter, HZ)
        browser = Browser(engine.url)
        with ThreadPoolExecutor(len(CLIENTS)) as pool:
            sampler.start()
            client(engine.url, 1)  # there is a reading before the window
            first = browser.edge(len(meter.devices))
            list(pool.map(lambda requests: client(engine.url, requests), CLIENTS))
            last = browser.edge(len(meter.devices))
        samples = sampler.stop()
        browser.close()
        meter.close()
    window = energy_window(samples, meter.devices, first.t_s, last.t_s, HZ)
    return window, last.energy_j - first.energy_j, last.tokens - first.tokens


@pytest.fixture(scope="module")
def both() -> Iterator[dict[float, tuple[EnergyWindow, float, float]]]:
    """Measure two engines at once: the test takes as long as one."""
    with ThreadPoolExecutor(2) as pool:
        yield dict(zip((1.0, 1.1), pool.map(measured, (1.0, 1.1)), strict=True))


@pytest.mark.parametrize("gain", [1.0, 1.1])
def test_j_per_token_from_samples_is_the_engines_times_the_meters_gain(
    both: dict[float, tuple[EnergyWindow, float, float]], gain: float
) -> None:
    """Within 3 % of the engine's own; a meter made 10 % wrong shows 10 %."""
    window, truth_j, tokens = both[gain]
    assert tokens == 48 * sum(CLIENTS)
    assert (window.method, window.check_joules) == ("sampled", None)
    assert window.joules is not None
    assert window.joules / tokens == pytest.approx(gain * truth_j / tokens, rel=0.03)
    assert set(window.per_device_j) == {"SIM-0", "SIM-1"}
    assert window.throttle_samples == window.samples
