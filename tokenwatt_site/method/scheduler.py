"""Which sequences are in the batch of a continuous-batching server: queue, prefill, memory.

It counts tokens and steps; how long a step takes is no business of it. Decoding sequences gain a
token together, so that one counter of steps and a heap of the counts at which they finish do for
all of them, and a step costs the same whatever the batch holds.
"""

import heapq
from collections import deque
from dataclasses import dataclass

from tokenwatt_site.method.shape import ADMIT_SHARE, Shape


@dataclass(slots=True, eq=False)
class Request:
    """One request. Times are seconds on the model's clock, None until they have come."""

    key: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    first_s: float | None = None
    """First token."""
    last_s: float | None = None
    """Last token."""
    kept: int = 0
    """Output tokens before it began to decode, the last time."""
    prefilled: int = 0
    """Tokens of its context that are computed, while it prefills."""
    joined: int = 0
    """Count of decode steps when it began to decode."""

    @property
    def context(self) -> int:
        """Tokens to prefill: the prompt and, after a preemption, what was produced."""
        return self.prompt_tokens + self.kept


@dataclass(slots=True)
class Plan:
    """What the next step does."""

    decoding: int
    """nd: sequences that gain a token."""
    prefill_tokens: int
    """x: prompt tokens."""
    attended_tokens: float
    """a: Σ x_c·(tokens of that prompt before + x_c/2) over the chunks x_c."""
    first: list[Request]
    """Requests whose prompts are complete after it: each gains its first token."""


class Scheduler:
    """First come, first served, with chunked prefill and preemption of the newest."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._queue: deque[Request] = deque()
        self.decoding: dict[int, Request] = {}
        """By key; the last one is the newest."""
        self._prefilling: Request | None = None  # of which a part is computed: at most one
        self._entering = 0  # prompts that the step under way completes
        self.kv_tokens = 0
        """Context of the decoding sequences."""
        self._reserved_tokens = 0  # context of admitted prompts that don't decode yet
        self._steps = 0  # that decoded
        self._due_steps: list[int] = []  # heap of the keys of _due
        self._due: dict[int, list[Request]] = {}  # count of steps -> sequences that finish then
        self.preemptions = 0

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self.decoding) + self._entering + (self._prefilling is not None)

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._queue or self.decoding or self._prefilling)

    @property
    def held_tokens(self) -> int:
        """Tokens of context for which memory is taken."""
        return self.kv_tokens + self._reserved_tokens

    def produced(self, request: Request) -> int:
        """Return the output tokens of a request so far."""
        if request.key in self.decoding:
            return request.kept + self._steps - request.joined
        return request.kept

    def enqueue(self, request: Request) -> None:
        """Add a request to the end of the queue."""
        self._queue.append(request)

    def drop(self, request: Request) -> None:
        """Forget a request that is in the batch or in the queue; its memory is free at once."""
        if request.key in self.decoding:
            self._leave(request)
        elif request is self._prefilling:
            self._stop_prefill(request)
        else:
            self._queue.remove(request)

    def plan(self) -> Plan:
        """Preempt what doesn't fit, fill the token budget, and return what the step does."""
        while self.held_tokens > self._shape.kv_capacity_tokens:
            self._preempt()
        decoding = len(self.decoding)
        room = self._shape.budget_tokens - decoding
        prefill_tokens, attended_tokens = 0, 0.0
        first: list[Request] = []
        while room > 0 and (request := self._prefilling or self._admit()) is not None:
            left = request.context - request.prefilled
            chunk = min(room, left)
            attended_tokens += chunk * (request.prefilled + chunk / 2)
            prefill_tokens += chunk
            request.prefilled += chunk
            room -= chunk
            self._prefilling = request
            if chunk == left:
                self._prefilling = None
                self._entering += 1
                first.append(request)
        if prefill_tokens and self._shape.exclusive_prefill:
            decoding = 0
        return Plan(decoding, prefill_tokens, attended_tokens, first)

    def steps_alike(self, plan: Plan) -> int:
        """Return how many steps from here on do just what this plan does, if nobody arrives.

        Sequences that only decode go on until one finishes or the memory overflows; a queue that
        could not move can't move before that.
        """
        if plan.prefill_tokens:
            return 1
        spare_tokens = self._shape.kv_capacity_tokens - self.held_tokens
        return min(self._due_steps[0] - self._steps, spare_tokens // plan.decoding + 1)

    def gain(self, plan: Plan, steps: int) -> list[Request]:
        """Count the tokens of ``steps`` steps of a plan; return the requests that finish."""
        finished: list[Request] = []
        if plan.decoding:
            self._steps += steps
            self.kv_tokens += steps * plan.decoding
            while self._due_steps and self._due_steps[0] <= self._steps:
                finished += self._finish(heapq.heappop(self._due_steps))
        for request in plan.first:
            self._reserved_tokens -= request.context
            request.kept += 1
            if request.kept == request.output_tokens:
                finished.append(request)
            else:
                self._join(request)
        self._entering = 0
        return finished

    def _admit(self) -> Request | None:
        """Take the head of the queue into the batch, if there is a place and memory for it."""
        if not self._queue or self.running >= self._shape.max_sequences:
            return None
        request = self._queue[0]
        limit_tokens = ADMIT_SHARE * self._shape.kv_capacity_tokens
        if self.held_tokens + request.context > limit_tokens:
            return None
        request.prefilled = 0
        self._reserved_tokens += request.context
        return self._queue.popleft()

    def _join(self, request: Request) -> None:
        self.decoding[request.key] = request
        self.kv_tokens += request.context
        request.joined = self._steps
        due = self._steps + request.output_tokens - request.kept
        if due not in self._due:
            self._due[due] = []
            heapq.heappush(self._due_steps, due)
        self._due[due].append(request)

    def _finish(self, due: int) -> tuple[Request, ...]:
        finished = tuple(self._due[due])
        for request in finished:
            self._leave(request)
        del self._due[due]
        return finished

    def _leave(self, request: Request) -> None:
        due = request.joined + request.output_tokens - request.kept
        self._due[due].remove(request)
        request.kept = self.produced(request)
        self.kv_tokens -= request.context
        del self.decoding[request.key]

    def _stop_prefill(self, request: Request) -> None:
        self._prefilling = None
        self._reserved_tokens -= request.context

    def _preempt(self) -> None:
        """Send the newest sequence back to the head of the queue, to prefill again."""
        newest = self._prefilling or next(reversed(self.decoding.values()))
        self.drop(newest)
        self._queue.appendleft(newest)
        self.preemptions += 1
