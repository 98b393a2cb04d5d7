"""The servers and loads that searches are tried on: the shapes of the product, and three more."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.search_policy.native import Floats, Ints, NativeServer, Seen, Server
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.profiles import PROFILES
from tokenwatt_site.method.rng import derive_seed, rng
from tokenwatt_site.method.shape import Shape

CHAT: dict[str, Any] = {"trace": "chat-mix-v1"}
LONG: dict[str, Any] = {
    "trace": None,
    "input_tokens": {"median": 3000, "p90": 12000},
    "output_tokens": {"median": 32, "p90": 128},
}
LIMITS = {"ttft_p99_ms": 2000, "tpot_p99_ms": 50}


def plain(shape: Shape, seed: int) -> Server:
    """Return the step model of a shape."""
    return NativeServer(shape, seed)


def shortest_first(shape: Shape, seed: int) -> Server:
    """Return one whose queue is served by prompt and answer length, shortest first."""
    return NativeServer(shape, seed, shortest_first=True)


class CachingServer:
    """One that remembers prompts: half of the requests find 0 to 90 % of theirs computed."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self._server = NativeServer(shape, seed)
        self._source = rng(seed, "prefix cache")

    @property
    def t_s(self) -> float:
        """Return the model's clock."""
        return self._server.t_s

    def idle_to(self, t_s: float) -> None:
        """Let the model wait."""
        self._server.idle_to(t_s)

    def load(self, arrival_s: Floats, prompts: Ints, outputs: Ints) -> None:
        """Drop every request and expect these, each with its luck."""
        cached = [
            int(tokens * 0.9 * self._source.random()) if self._source.random() < 1 / 2 else 0
            for tokens in prompts
        ]
        self._server.load(arrival_s, prompts, outputs, cached)

    def run(self, until_s: float) -> None:
        """Take steps."""
        self._server.run(until_s)

    def look(self, look_s: float) -> Seen:
        """Return what a client has seen."""
        return self._server.look(look_s)


class Replicas:
    """Two servers behind a balancer that gives each every other request."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self._servers = [NativeServer(shape, derive_seed(seed, "replica", i)) for i in range(2)]

    @property
    def t_s(self) -> float:
        """Return the later of the two clocks."""
        return max(server.t_s for server in self._servers)

    def idle_to(self, t_s: float) -> None:
        """Let both wait."""
        for server in self._servers:
            server.idle_to(t_s)

    def load(self, arrival_s: Floats, prompts: Ints, outputs: Ints) -> None:
        """Drop every request and expect these, in turns."""
        for i, server in enumerate(self._servers):
            server.load(arrival_s[i::2], prompts[i::2], outputs[i::2])

    def run(self, until_s: float) -> None:
        """Take steps on both."""
        for server in self._servers:
            server.run(until_s)

    def look(self, look_s: float) -> Seen:
        """Return what a client has seen of all requests in their order."""
        parts = [server.look(look_s) for server in self._servers]
        n = sum(len(part.tokens) for part in parts)
        seen = Seen(array("d", bytes(8 * n)), array("d", bytes(8 * n)), array("q", bytes(8 * n)))
        for i, part in enumerate(parts):
            seen.first_s[i::2], seen.last_s[i::2], seen.tokens[i::2] = part
        return seen


@dataclass(frozen=True, slots=True)
class Case:
    """A server under a load and its limits."""

    about: str
    shape: Shape
    serve: Callable[[Shape, int], Server] = plain
    workload: dict[str, Any] = field(default_factory=lambda: CHAT)
    slo: dict[str, Any] = field(default_factory=lambda: LIMITS)
    replicas: int = 1

    def spec(self, seed: int, **parts: Any) -> Spec:
        """Return the spec of a trial; ``parts`` are its sweep and measurement."""
        return Spec.model_validate(
            {
                "name": "trial",
                "engine": {"endpoint": "simulator:", "name": "step model"},
                "model": {"name": "step model", "replicas": self.replicas},
                "slo": self.slo,
                "workload": {**self.workload, "seed": seed},
                **parts,
            }
        )

    def server(self, seed: int) -> Server:
        """Return a server with its own luck."""
        return self.serve(self.shape, derive_seed(seed, "server"))


CASES: dict[str, Case] = {
    "cal": Case("fitted to our first run: mixture of experts, 4 accelerators", PROFILES["cal"]),
    "d8": Case("dense 8B model, 1 accelerator", PROFILES["d8"]),
    "d70": Case("dense 70B model, 4 accelerators", PROFILES["d70"]),
    "pref": Case(
        "the first, long prompts and short answers",
        PROFILES["pref"],
        workload=LONG,
        slo={**LIMITS, "tpot_p99_ms": 300},
    ),
    "hard": Case("the first, at most 48 requests at once", PROFILES["hard"]),
    "drift": Case("the first, 10 % slower after ten minutes", PROFILES["drift"]),
    "b2k": Case("the first, 2,048 tokens a step", PROFILES["b2k"]),
    "stall": Case("the first, with pauses of 200 ms", PROFILES["stall"]),
    "jit": Case("the first, 8 % noise in its speed", PROFILES["jit"]),
    "excl": Case("the first, where prefill stops decoding", PROFILES["excl"]),
    "sjf": Case("48 requests at once, shortest job first", PROFILES["hard"], serve=shortest_first),
    "cache": Case(
        "long prompts, with a prefix cache",
        PROFILES["pref"],
        serve=CachingServer,
        workload=LONG,
        slo={**LIMITS, "tpot_p99_ms": 300},
    ),
    "two": Case(
        "two of the 8B servers behind a balancer", PROFILES["d8"], serve=Replicas, replicas=2
    ),
}
