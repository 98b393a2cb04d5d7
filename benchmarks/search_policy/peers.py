"""The searches of other tools, in our own words: the rate that each would report for our limits.

Read were the sources of the versions named below. What is taken from them is how a search goes:
what it sends, which figures it judges, which rate it ends with. Each gets the server, lengths and
limits of the case, a client without lag, and no error of its own in what it measures.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.search_policy.cases import Case
from benchmarks.search_policy.fast import poisson_schedule
from benchmarks.search_policy.monotone import Curve
from benchmarks.search_policy.native import NativeServer, Seen
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.statistics import nearest_rank
from tokenwatt_site.method.workloads import workload_of

_MOST = 60_000
"""Requests of one load."""
_CANCEL_S = 2.0
_MOST_STREAMS = 1024  # of guidellm's search for them


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool sees of one load: of its finished requests, in s."""

    ttft_s: Sequence[float]
    tpot_s: Sequence[float]
    """Of those with two tokens or more."""
    took_s: float
    both_s: Sequence[tuple[float, float]] = ()
    """TTFT and TPOT of each that has both."""

    @property
    def per_s(self) -> float:
        """Finished requests a second."""
        return len(self.ttft_s) / self.took_s

    def keeps(self, case: Case) -> bool:
        """Tell whether both 99th percentiles keep the case's limits."""
        ttft_s, tpot_s = self.margins(case)
        return ttft_s <= 0 and tpot_s <= 0

    def attained(self, case: Case) -> float:
        """Return the share of requests that keep both limits."""
        ttft_s, tpot_s = (case.slo[name] / 1000 for name in ("ttft_p99_ms", "tpot_p99_ms"))
        kept = sum(a <= ttft_s and b <= tpot_s for a, b in self.both_s)
        return kept / len(self.both_s) if self.both_s else 0.0

    def margins(self, case: Case) -> tuple[float, float]:
        """Return how far the 99th percentiles of TTFT and TPOT are above their limits, s."""
        return (
            _p99(self.ttft_s) - case.slo["ttft_p99_ms"] / 1000,
            _p99(self.tpot_s) - case.slo["tpot_p99_ms"] / 1000,
        )


def _p99(values: Sequence[float]) -> float:
    return nearest_rank(sorted(values), 0.99) if values else math.inf


class Tool:
    """A load generator at a case's server, each load with fresh requests."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        self._spec = case.spec(seed)
        server = case.server(seed)
        if not isinstance(server, NativeServer):
            raise TypeError(case.about)
        self._server = server
        self._seed, self._loads = seed, 0
        self.now_s = 0.0

    def open(self, rate_rps: float, requests: int) -> Outcome:
        """Send a number of requests at random times of a rate; wait for all of them."""
        drawn = self._draw(rate_rps, 2 * requests / rate_rps + 60)
        few = slice(requests)
        return self._play(drawn.arrival_s[few], drawn.input_tokens[few], drawn.output_tokens[few])

    def timed(self, rate_rps: float, length_s: float) -> Outcome:
        """Send requests at random times of a rate for some time; drop what runs then."""
        drawn = self._draw(rate_rps, length_s)
        return self._play(
            drawn.arrival_s, drawn.input_tokens, drawn.output_tokens, until_s=length_s
        )

    def streams(
        self, streams: int, *, requests: int = _MOST, length_s: float = math.inf
    ) -> Outcome:
        """Send by so many streams, until a number of requests has ended or some time is over."""
        drawn = self._draw(1.0, float(min(requests, _MOST)) + 2000)
        columns = (column[:requests] for column in (drawn.input_tokens, drawn.output_tokens))
        inputs, outputs = columns
        return self._play(array("d", bytes(8 * len(inputs))), inputs, outputs, length_s, streams)

    def _draw(self, rate_rps: float, horizon_s: float) -> Schedule:
        self._loads += 1
        seed = derive_seed(self._seed, "peer", self._loads)
        return poisson_schedule(workload_of(self._spec.workload), rate_rps, horizon_s, seed)

    def _play(
        self,
        arrival_s: "array[float]",
        inputs: "array[int]",
        outputs: "array[int]",
        until_s: float = math.inf,
        streams: int = 0,
    ) -> Outcome:
        t0_s, server = self.now_s, self._server
        server.idle_to(t0_s)
        server.load([t0_s + t for t in arrival_s], inputs, outputs)
        server.stream(streams)
        server.run(t0_s + until_s)
        seen, sent_s = server.look(t0_s + until_s), server.sent()
        took_s = min(until_s, server.t_s - t0_s)
        self.now_s = t0_s + took_s + _CANCEL_S
        return _outcome(seen, sent_s, outputs, took_s)


def _outcome(seen: Seen, sent_s: Sequence[float], outputs: Sequence[int], took_s: float) -> Outcome:
    done = [i for i, output in enumerate(outputs) if seen.tokens[i] == output]
    ttft_s = {i: seen.first_s[i] - sent_s[i] for i in done}
    tpot_s = {
        i: (seen.last_s[i] - seen.first_s[i]) / (outputs[i] - 1) for i in done if outputs[i] > 1
    }
    both_s = [(ttft_s[i], each_s) for i, each_s in tpot_s.items()]
    return Outcome([*ttft_s.values()], [*tpot_s.values()], took_s, both_s)


def guidellm(tool: Tool, length_s: float) -> float | None:
    """Sweep as guidellm 0.8.1 does (its profile ``sweep`` of 10, Poisson), and read its table.

    One request after the other, then as many at once as 512, each for the time given; then eight
    rates evenly between the two throughputs. It names no best rate: a reader with our limits takes
    the highest one up to which all kept them.
    """
    low = tool.streams(1, length_s=length_s).per_s
    high = tool.streams(512, length_s=length_s).per_s
    best = None
    for number in range(1, 9):
        rate = low + (high - low) * number / 8
        if rate <= 0 or not tool.timed(rate, length_s).keeps(tool.case):
            break
        best = rate
    return best


def goodput(tool: Tool, length_s: float) -> float | None:
    """Search the number of streams as guidellm 0.8.1 does (its profile ``goodput``).

    Streams from 4, doubled until fewer than 99 % of the requests keep all limits (95 % unless asked
    otherwise), then halved in between until the bracket is under 10 %; 15 loads at most, each for
    the time given. Reported is the most streams that passed; as a rate, the requests a second that
    they got.
    """
    passed: dict[int, float] = {}
    low, high, streams = 0, math.inf, 4
    for _ in range(15):
        outcome = tool.streams(streams, length_s=length_s)
        if outcome.attained(tool.case) >= 0.99:  # noqa: PLR2004 - what was promised
            passed[streams], low = outcome.per_s, max(low, streams)
        else:
            high = min(high, streams)
        if math.isinf(high):
            if streams == _MOST_STREAMS:
                break
            streams = min(2 * streams, _MOST_STREAMS)
        elif high == 1 or (low and high - low <= max(1, 0.1 * low)):
            break
        else:
            streams = int(low + high) // 2
    return passed[low] if low else None


def evalscope(tool: Tool, factor: float) -> float | None:
    """Tune the rate as evalscope 1.14.1 does (``--sla-auto-tune --sla-variable rate``).

    Whole rates from 1, doubled until one fails, then halved in between. A rate is three loads of
    ``factor`` times the rate requests (2 unless asked otherwise), 5 s apart; it passes if the means
    of their 99th percentiles keep the limits. Reported is the highest rate that passed.
    """
    known: dict[int, bool] = {}

    def passes(rate: int) -> bool:
        if rate not in known:
            margins = []
            for _ in range(3):
                margins.append(tool.open(rate, max(1, round(factor * rate))).margins(tool.case))
                tool.now_s += 5
            known[rate] = all(math.fsum(each) <= 0 for each in zip(*margins, strict=True))
        return known[rate]

    low = high = 1
    if not passes(1):
        return None
    while passes(high) and high < 65_536:  # noqa: PLR2004 - its upper bound
        low, high = high, 2 * high
    left, right = low + 1, high - 1
    while left <= right:
        middle = (left + right) // 2
        if passes(middle):
            left = middle + 1
        else:
            right = middle - 1
    return float(max(rate for rate, passed in known.items() if passed))


def aiperf(tool: Tool) -> float | None:
    """Search the number of streams as aiperf 0.13.0 does (``max-concurrency-under-sla``).

    Streams from 1, doubled until a limit is missed; three points between; then a monotone curve
    through the margins of the limit that is missed most tells the next point, until the bracket is
    under 5 % or the point is known. A point is 60 s of warm-up and 1,000 requests. Its recipe takes
    95th percentiles; here 99th, which is what was promised. Reported is the most streams that kept
    the limits; as a rate, the requests a second that they got.
    """
    return _Isotonic(tool).run()


class _Isotonic:
    _PRECISION, _MOST_POINTS, _MOST_STREAMS = 0.05, 30, 1000
    _REFITS = 3

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._margins: dict[int, tuple[float, float]] = {}
        self._per_s: dict[int, float] = {}
        self._low: int | None = None
        self._high: int | None = None

    def run(self) -> float | None:
        streams = 1
        while self._high is None:
            self._probe(streams)
            if self._low is None:
                return None
            if streams == self._MOST_STREAMS:
                break
            streams = min(2 * streams, self._MOST_STREAMS)
        if self._high is not None and self._low is not None:
            self._fit(
                [self._low + max(1, round((self._high - self._low) * k / 4)) for k in (1, 2, 3)]
            )
        return None if self._low is None else self._per_s[self._low]

    def _fit(self, first: Iterable[int]) -> None:
        queue = [x for x in dict.fromkeys(first) if x not in self._margins]
        for count in range(1, self._MOST_POINTS):
            for x in queue:
                self._probe(x)
            low, high = self._low or 1, self._high or self._MOST_STREAMS
            candidate = self._candidate(low, high)
            if candidate is None or len(self._margins) >= self._MOST_POINTS:
                return
            few = self._distinct() < 3 and count < self._REFITS  # noqa: PLR2004
            if few:
                queue = [low + max(1, round((high - low) * part)) for part in (0.125, 0.625)]
                queue = [x for x in queue if x < high and x not in self._margins]
            elif candidate in self._margins or (high - low) / high < self._PRECISION:
                return
            else:
                queue = [candidate]

    def _probe(self, streams: int) -> None:
        self._tool.streams(streams, length_s=60)
        outcome = self._tool.streams(streams, requests=1000)
        self._margins[streams] = outcome.margins(self._tool.case)
        self._per_s[streams] = outcome.per_s
        if outcome.keeps(self._tool.case):
            if self._high is None or streams < self._high:
                self._low = max(self._low or 0, streams)
        elif self._low is None or streams > self._low:
            self._high = min(self._high or streams, streams)

    def _binding(self) -> int:
        last = self._margins[max(self._margins)]
        return max((0, 1), key=last.__getitem__)

    def _distinct(self) -> int:
        return len({round(y, 9) for y in self._curve().levels})

    def _curve(self) -> Curve:
        xs, kind = sorted(self._margins), self._binding()
        return Curve.through(xs, [self._margins[x][kind] for x in xs])

    def _candidate(self, low: int, high: int) -> int | None:
        root = self._curve().root(low, high)
        if root is None:
            return low + (high - low) // 2 if high - low > 1 else None
        return min(max(round(root), low + 1), high - 1)


Peer = Callable[[Tool], float | None]

PEERS: dict[str, tuple[str, Peer]] = {
    "guidellm": ("guidellm 0.8.1, sweep, 10 × 60 s", lambda tool: guidellm(tool, 60.0)),
    "guidellm-goodput": (
        "guidellm 0.8.1, goodput, 60 s a load",
        lambda tool: goodput(tool, 60.0),
    ),
    "evalscope": ("evalscope 1.14.1, auto-tuned rate", lambda tool: evalscope(tool, 2.0)),
    "evalscope-60": (
        "evalscope 1.14.1, auto-tuned rate, 60 s a load",
        lambda tool: evalscope(tool, 60.0),
    ),
    "aiperf": ("aiperf 0.13.0, most streams under the limits", aiperf),
}
"""What tables call them, and the searches."""
