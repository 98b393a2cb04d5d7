"""Play a schedule on the twin: the crude model of a server that a search fits to what it saw.

Its scheduler is the step model's: first come first served, chunked prefill into a token budget, a
limit on sequences. What a step takes depends on the batch alone, not on its context, so that
steps between two events are alike and are taken at once: a stream of 40,000 requests costs tenths
of a second.
"""

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

UNLIMITED = 1 << 30
"""``max_sequences`` of a twin that has no such limit."""


@dataclass(frozen=True, slots=True)
class TwinParams:
    """What a step of the twin takes.

    With B sequences that decode in it, x prompt tokens, and a = Σ x_c·(tokens of that prompt before
    + x_c/2) over their chunks x_c, it takes::

        dt = fixed + sequence·B + root·√B + token·x + square·a   (+ prefill, where x > 0)
    """

    fixed_s: float
    sequence_s: float
    root_s: float
    prefill_s: float
    token_s: float
    square_s: float
    budget_tokens: int = 8192
    """Tokens of one step: first one of each sequence that decodes, then prompts."""
    max_sequences: int = UNLIMITED

    def scaled(self, kappa: float) -> "TwinParams":
        """Return a twin whose steps take ``kappa`` times as long."""
        return replace(
            self,
            fixed_s=kappa * self.fixed_s,
            sequence_s=kappa * self.sequence_s,
            root_s=kappa * self.root_s,
            prefill_s=kappa * self.prefill_s,
            token_s=kappa * self.token_s,
            square_s=kappa * self.square_s,
        )


class Played(NamedTuple):
    """What became of each request of a schedule, in its order."""

    first_s: "array[float]"
    """First token; +inf where none came."""
    last_s: "array[float]"
    """Last token so far; +inf where none came."""
    tokens: "array[int]"
    """Output tokens so far; fewer than asked for: unfinished when the play stopped."""


Player = Callable[
    [TwinParams, "array[float]", "array[int]", "array[int]", float],
    Played,
]
"""Plays arrivals (s, ascending, typecode d), prompt tokens and output tokens (each at least 1,
typecode q) on a twin that is idle at 0, until ``until_s`` (may be +inf: until all have finished).

A step that ends after ``until_s`` has not happened. Requests of the same arrival are in the order
given. :func:`play_twin` is the reference; another one must give the same times, to rounding.
"""


def play_twin(
    params: TwinParams,
    arrival_s: "array[float]",
    input_tokens: "array[int]",
    output_tokens: "array[int]",
    until_s: float = math.inf,
) -> Played:
    """Play a schedule on a twin in plain Python, see :data:`Player`."""
    return _Play(params, (arrival_s, input_tokens, output_tokens), until_s).run()


class _Play:
    """One play of a schedule.

    A sequence that decodes is a number: the count of steps at which it finishes, times the number
    of requests, plus its index. A heap of them knows who finishes next.
    """

    def __init__(
        self,
        params: TwinParams,
        schedule: tuple["array[float]", "array[int]", "array[int]"],
        until_s: float,
    ) -> None:
        self._params = params
        self._arrival_s, self._inputs, self._outputs = schedule
        self._until_s = until_s
        self._n = n = len(self._arrival_s)
        self._first_s = array("d", [math.inf]) * n
        self._last_s = array("d", [math.inf]) * n
        self._tokens = array("q", bytes(8 * n))
        self._heap: list[int] = []
        self._head = 0  # of the queue: the next request to prefill
        self._done = 0  # tokens of its prompt that are computed
        self._decode_s: list[float] = []  # time of a step that only decodes, by sequences

    def run(self) -> Played:
        """Take steps until the play ends."""
        t_s, count = self._steps()
        n, tokens, last_s = self._n, self._tokens, self._last_s
        for key in self._heap:
            finish, i = divmod(key, n)
            tokens[i] = self._outputs[i] - (finish - count)
            last_s[i] = t_s
        return Played(self._first_s, last_s, tokens)

    def _steps(self) -> tuple[float, int]:
        """Take all steps; return when the last one ended, and their count."""
        heap, arrivals, n, until_s = self._heap, self._arrival_s, self._n, self._until_s
        limit, ceil = self._params.max_sequences, math.ceil
        t_s, count = 0.0, 0
        while True:
            head = self._head
            next_s = arrivals[head] if head < n else math.inf
            if not heap and next_s > t_s:
                if next_s >= until_s:
                    return t_s, count
                t_s = next_s
            running = len(heap)
            if next_s <= t_s and running < limit:
                end_s = self._prefill(t_s, count)
                if end_s > until_s:
                    return t_s, count
                t_s = end_s
                count += 1
                continue
            dt_s = self._decode_time_s(running)
            steps = heap[0] // n - count
            if running < limit and next_s < t_s + steps * dt_s:
                steps = max(1, ceil((next_s - t_s) / dt_s))
            if t_s + steps * dt_s > until_s:
                steps = int((until_s - t_s) / dt_s)
                return t_s + steps * dt_s, count + steps
            t_s += steps * dt_s
            count += steps
            self._finish(count, t_s)

    def _prefill(self, t_s: float, count: int) -> float:
        """Take a step with prompts in it, unless it ends after the play; return when it ends."""
        params, heap, n = self._params, self._heap, self._n
        arrivals, inputs = self._arrival_s, self._inputs
        head, done = self._head, self._done
        room = params.budget_tokens - len(heap)
        places = params.max_sequences - len(heap)
        tokens, square = 0, 0.0
        while head < n and arrivals[head] <= t_s and head - self._head < places and room > 0:
            left = inputs[head] - done
            chunk = min(left, room)
            tokens += chunk
            square += chunk * (done + 0.5 * chunk)
            room -= chunk
            if chunk < left:
                done += chunk
                break
            head, done = head + 1, 0
        dt_s = self._decode_time_s(len(heap))
        if tokens:
            dt_s += params.prefill_s + params.token_s * tokens + params.square_s * square
        end_s = t_s + dt_s
        if end_s <= self._until_s:
            self._finish(count + 1, end_s)
            for i in range(self._head, head):
                self._first_s[i] = end_s
                if self._outputs[i] == 1:
                    self._tokens[i], self._last_s[i] = 1, end_s
                else:
                    heappush(heap, (count + self._outputs[i]) * n + i)
            self._head, self._done = head, done
        return end_s

    def _decode_time_s(self, sequences: int) -> float:
        """Return the time of a step in which that many sequences decode and nothing else is."""
        known, params = self._decode_s, self._params
        while len(known) <= sequences:
            b = len(known)
            known.append(params.fixed_s + params.sequence_s * b + params.root_s * math.sqrt(b))
        return known[sequences]

    def _finish(self, count: int, t_s: float) -> None:
        """Let those finish whose last token came with the ``count``-th step, at ``t_s``."""
        heap, n = self._heap, self._n
        end = (count + 1) * n
        while heap and heap[0] < end:
            i = heappop(heap) % n
            self._tokens[i], self._last_s[i] = self._outputs[i], t_s
