"""The step model in C, compiled when it is first used, and the seam behind which it stands."""

import ctypes
import hashlib
import os
import subprocess
from array import array
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.shape import Shape

HERE = Path(__file__).parent
SOURCES = tuple(HERE / f"{name}.c" for name in ("step_model", "twin", "schedule"))
CACHE = HERE.parents[1] / ".cache" / "search_policy"
# no contraction: a fused multiply-add rounds once where Python rounds twice
FLAGS = ("-O2", "-ffp-contract=off", "-shared", "-fPIC")
_MORE_DRAWS = 1
_DRAWS = 4096

Floats = Sequence[float]
Ints = Sequence[int]


class Seen(NamedTuple):
    """What a client has seen of each request: times in s on the server's clock, inf for never."""

    first_s: "array[float]"
    last_s: "array[float]"
    """Last token so far."""
    tokens: "array[int]"


class Server(Protocol):
    """A server in virtual time."""

    @property
    def t_s(self) -> float:
        """Return its clock: the end of the last step."""
        ...

    def idle_to(self, t_s: float) -> None:
        """Let a server with nothing to do wait until ``t_s``."""
        ...

    def load(self, arrival_s: Floats, prompts: Ints, outputs: Ints) -> None:
        """Drop every request, and expect these in the order of their arrival."""
        ...

    def run(self, until_s: float) -> None:
        """Take steps while they begin before ``until_s`` and there is anything to do."""
        ...

    def look(self, look_s: float) -> Seen:
        """Return what a client has seen by ``look_s``, which is where ``run`` was to stop."""
        ...


class _Shape(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_double)
            for name in (
                "bandwidth_bytes_s",
                "fixed_s",
                "sequence_s",
                "dense_bytes",
                "expert_bytes",
                "experts",
                "experts_per_token",
                "kv_bytes",
                "prefill_token_s",
                "prefill_attention_s",
                "decode_token_s",
                "idle_w",
                "limit_w",
                "memory_w",
                "compute_w",
                "noise_sd",
                "noise_tau_s",
                "stalls_per_s",
                "stall_s",
                "drift_speed",
                "drift_after_s",
            )
        ),
        *(
            (name, ctypes.c_int64)
            for name in (
                "budget_tokens",
                "max_sequences",
                "kv_capacity_tokens",
                "exclusive_prefill",
                "shortest_first",
            )
        ),
    ]


@cache
def library() -> ctypes.CDLL:
    """Return the compiled model.

    Raises:
        FileNotFoundError: there is no gcc.
        subprocess.CalledProcessError: it doesn't compile.
    """
    source = b"".join(path.read_bytes() for path in SOURCES)
    path = CACHE / f"{hashlib.sha256(source + repr(FLAGS).encode()).hexdigest()[:16]}.so"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(f".{os.getpid()}.tmp")  # workers compile at once
        command = ["gcc", *FLAGS, "-o", str(made), *map(str, SOURCES), "-lm"]
        subprocess.run(command, check=True)
        made.replace(path)
    loaded = ctypes.CDLL(str(path))
    pointer, number, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    columns = [pointer, pointer, pointer]
    shape = ctypes.POINTER(_Shape)
    signatures: dict[str, tuple[list[Any], Any]] = {
        "server_new": ([shape, pointer, number, pointer, number], pointer),
        "server_free": ([pointer], None),
        "server_draws": ([pointer, pointer, number, pointer, number], None),
        "server_now": ([pointer], real),
        "server_preemptions": ([pointer], number),
        "server_idle_to": ([pointer, real], None),
        "server_load": ([pointer, number, pointer, pointer, pointer, pointer], ctypes.c_int),
        "server_stream": ([pointer, number], None),
        "server_sent": ([pointer, pointer], None),
        "server_run": ([pointer, real], ctypes.c_int),
        "server_look": ([pointer, real, *columns], None),
        "twin_play": ([pointer, number, *columns, real, *columns], ctypes.c_int),
        "twin_scores": (
            [number, ctypes.c_int, real, real, pointer, *columns, pointer],
            None,
        ),
        "scaled": ([number, real, pointer, pointer], None),
        "total": ([number, pointer], real),
        "at_least": ([number, pointer, real, pointer], number),
        "count_over": ([number, pointer, real], number),
        "products": ([number, number, pointer, pointer], None),
        "poisson_schedule": (
            [ctypes.c_uint64, real, real, pointer, pointer, number, *columns],
            number,
        ),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, result
    return loaded


def at(values: Any) -> int:
    """Return the address of an array's values."""
    return int(values.buffer_info()[0])


class NativeServer:
    """The step model in C; the same times as the one in Python with the same seed."""

    def __init__(self, shape: Shape, seed: int, *, shortest_first: bool = False) -> None:
        self._lib = library()
        self._noise = rng(seed, "server noise")
        self._stalls = rng(seed, "server stalls")
        self._stalling = shape.stalls_per_s > 0
        self._normals, self._exponentials = array("d"), array("d")
        self._draw()
        values = {name: getattr(shape, name, None) for name, *_ in _Shape._fields_}
        packed = _Shape(**(values | {"shortest_first": shortest_first}))
        self._server = self._lib.server_new(ctypes.byref(packed), *self._draws())
        if not self._server:
            raise MemoryError

    def __del__(self) -> None:
        """Free what C holds."""
        if getattr(self, "_server", None):
            self._lib.server_free(self._server)

    def _draw(self) -> None:
        self._normals.extend(self._noise.gauss(0.0, 1.0) for _ in range(_DRAWS))
        if self._stalling:
            self._exponentials.extend(self._stalls.expovariate(1.0) for _ in range(_DRAWS))

    def _draws(self) -> tuple[int, int, int, int]:
        normals, exponentials = self._normals, self._exponentials
        return at(normals), len(normals), at(exponentials), len(exponentials)

    @property
    def t_s(self) -> float:
        """Return the model's clock."""
        return float(self._lib.server_now(self._server))

    @property
    def preemptions(self) -> int:
        """Return how many sequences were sent back to the queue so far."""
        return int(self._lib.server_preemptions(self._server))

    def idle_to(self, t_s: float) -> None:
        """Let the model wait."""
        self._lib.server_idle_to(self._server, t_s)

    def load(
        self, arrival_s: Floats, prompts: Ints, outputs: Ints, cached: Ints | None = None
    ) -> None:
        """Drop every request and expect these; ``cached`` prompt tokens need no prefill."""
        self._n = len(arrival_s)
        times, sizes = array("d", arrival_s), [array("q", prompts), array("q", outputs)]
        hits = None if cached is None else array("q", cached)
        where = None if hits is None else at(hits)
        if self._lib.server_load(self._server, self._n, at(times), *map(at, sizes), where):
            raise MemoryError

    def stream(self, streams: int) -> None:
        """Send what is loaded by so many streams, each its next request when its last has ended."""
        self._lib.server_stream(self._server, streams)

    def sent(self) -> "array[float]":
        """Return when each request was sent; inf for not yet."""
        times = array("d", bytes(8 * self._n))
        self._lib.server_sent(self._server, at(times))
        return times

    def run(self, until_s: float) -> None:
        """Take steps, with as many draws as they need."""
        while self._lib.server_run(self._server, until_s) == _MORE_DRAWS:
            self._draw()
            self._lib.server_draws(self._server, *self._draws())

    def look(self, look_s: float) -> Seen:
        """Return the requests as a client has seen them by ``look_s``."""
        size = bytes(8 * self._n)
        seen = Seen(array("d", size), array("d", size), array("q", size))
        self._lib.server_look(self._server, look_s, *map(at, seen))
        return seen
