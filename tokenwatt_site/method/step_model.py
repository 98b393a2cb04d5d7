"""A continuous-batching server, one engine step at a time.

The embedded engine steps this model in real time behind HTTP, the truth of a shape is played on it
in virtual time, and a search may fit it to a measured server. It knows no clock: time is what the
steps add up to. Who is in the batch: :class:`Scheduler`. What a step takes: :class:`StepCost`.
"""

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.disturbance import Disturbance
from tokenwatt_site.method.scheduler import Plan, Request, Scheduler
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_cost import Span, StepCost


@dataclass(slots=True)
class Step:
    """What one step did, or several alike."""

    start_s: float
    ends_s: list[float]
    """When each step ended."""
    plan: Plan
    finished: list[Request]


@dataclass(slots=True)
class Totals:
    """Running counters of a model, up to its clock."""

    busy_s: float = 0.0
    throttled_s: float = 0.0
    """Time at the power limit."""
    energy_j: float = 0.0
    """Energy of one accelerator."""
    memory_s: float = 0.0
    """Time reading memory, at full speed."""
    prompt_tokens: int = 0
    """Prompt tokens of the requests that got a first token."""
    output_tokens: int = 0
    finished: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What the meter of one accelerator shows at one time."""

    power_w: float
    energy_j: float
    throttled_s: float
    throttling: bool


class StepModel:
    """A server of one ``shape``; ``seed`` draws its disturbances."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self.t_s = 0.0
        """Now: the end of the last step."""
        self.totals = Totals()
        self._scheduler = Scheduler(shape)
        self._cost = StepCost(shape)
        self._disturbance = Disturbance(shape, seed)
        self._requests: dict[int, Request] = {}
        self._arrivals: deque[Request] = deque()
        self._power_w = shape.idle_w
        self._throttled_share = 0.0

    def submit(self, key: int, t_s: float, prompt_tokens: int, output_tokens: int) -> Request:
        """Add a request that arrives at ``t_s``; arrivals come in the order of their time.

        Raises:
            ValueError: the key is in use, or the request is empty.
            UsageError: the request can never fit.
        """
        if key in self._requests or prompt_tokens < 1 or output_tokens < 1:
            raise ValueError(f"request {key}: {prompt_tokens} in, {output_tokens} out")
        if prompt_tokens + output_tokens > self.shape.longest_tokens:
            raise UsageError(
                f"a request of {prompt_tokens:,} + {output_tokens:,} tokens doesn't fit in the"
                f" simulator's {self.shape.longest_tokens:,}",
                "ask for shorter ones, or override context_tokens and kv_capacity_tokens",
            )
        request = Request(key, t_s, prompt_tokens, output_tokens)
        self._requests[key] = request
        self._arrivals.append(request)
        return request

    def cancel(self, key: int) -> bool:
        """Drop a request wherever it is, which frees its memory; return whether there was one."""
        request = self._requests.pop(key, None)
        if request is None:
            return False
        if request in self._arrivals:
            self._arrivals.remove(request)
        else:
            self._scheduler.drop(request)
        self.totals.cancelled += 1
        return True

    def idle_to(self, t_s: float) -> None:
        """Let a server with nothing to do wait until ``t_s``, at idle power."""
        if t_s > self.t_s:
            self.totals.energy_j += self.shape.idle_w * (t_s - self.t_s)
            self.t_s = t_s
            self._power_w, self._throttled_share = self.shape.idle_w, 0.0
            self._disturbance.skip(t_s)

    def step(self) -> Step | None:
        """Take one step; None if there is nothing to do until another request is submitted."""
        return self._advance(None)

    def run(self, until_s: float = math.inf) -> Step | None:
        """Take the next step and those after it that do just the same: fast, with the same result.

        It stops where a request arrives, starts, finishes or is preempted, where the speed changes,
        and at ``until_s``: no step but the first one begins after it.
        """
        return self._advance(until_s)

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return self._scheduler.running

    @property
    def waiting(self) -> int:
        """Requests that are not in the batch, those still to arrive included."""
        return len(self._requests) - self._scheduler.running

    @property
    def decoding(self) -> Collection[Request]:
        """Sequences that decode, oldest first."""
        return self._scheduler.decoding.values()

    @property
    def kv_share(self) -> float:
        """Share of the memory for context that is taken."""
        return self._scheduler.held_tokens / self.shape.kv_capacity_tokens

    @property
    def preemptions(self) -> int:
        """Sequences sent back to the queue so far."""
        return self._scheduler.preemptions

    @property
    def bytes_read(self) -> float:
        """Bytes of weights and context read so far."""
        return self.totals.memory_s * self.shape.bandwidth_bytes_s

    def produced(self, request: Request) -> int:
        """Return the output tokens of a request so far."""
        return self._scheduler.produced(request)

    def reading(self, t_s: float) -> Reading:
        """Return what the meter of one accelerator shows at ``t_s``, in the last step or after it.

        The energy of a step is spread evenly over it; after it the accelerator idles.
        """
        totals, ahead_s = self.totals, self.t_s - t_s
        if ahead_s < 0:
            return Reading(
                power_w=self.shape.idle_w,
                energy_j=totals.energy_j - self.shape.idle_w * ahead_s,
                throttled_s=totals.throttled_s,
                throttling=False,
            )
        return Reading(
            power_w=self._power_w,
            energy_j=totals.energy_j - self._power_w * ahead_s,
            throttled_s=totals.throttled_s - self._throttled_share * ahead_s,
            throttling=self._throttled_share > 0,
        )

    def _advance(self, until_s: float | None) -> Step | None:
        """Take one step, or as many alike as begin before ``until_s``."""
        self._take_arrivals()
        if not self._scheduler.busy:
            if not self._arrivals:
                return None
            self.idle_to(self._arrivals[0].arrival_s)
            self._take_arrivals()
        plan = self._scheduler.plan()
        start_s = self.t_s
        ends_s = self._pass(plan, until_s)
        finished = self._scheduler.gain(plan, len(ends_s))
        self._count(plan, len(ends_s), finished)
        return Step(start_s, ends_s, plan, finished)

    def _take_arrivals(self) -> None:
        while self._arrivals and self._arrivals[0].arrival_s <= self.t_s:
            self._scheduler.enqueue(self._arrivals.popleft())

    def _pass(self, plan: Plan, until_s: float | None) -> list[float]:
        """Let the time and energy of the plan's steps pass; return when each of them ends."""
        disturbance, totals, start_s = self._disturbance, self.totals, self.t_s
        if start_s >= disturbance.until_s:
            disturbance.renew(start_s)
        begin_s = start_s + disturbance.pause_s(start_s)
        span = Span(begin_s, 0.0, 1) if until_s is None else self._span(plan, begin_s, until_s)
        spent = self._cost.spend(plan, self._scheduler.kv_tokens, disturbance.slowness, span)
        self.t_s = spent.ends_s[-1]
        passed_s = self.t_s - start_s
        energy_j = self.shape.idle_w * passed_s + spent.dynamic_j
        self._power_w = energy_j / passed_s
        self._throttled_share = spent.throttled_s / passed_s
        totals.busy_s += passed_s
        totals.energy_j += energy_j
        totals.throttled_s += spent.throttled_s
        totals.memory_s += spent.memory_s
        return spent.ends_s

    def _span(self, plan: Plan, begin_s: float, until_s: float) -> Span:
        """Return how far the plan holds: up to a finish, an arrival, a change of speed, a pause."""
        until_s = min(until_s, self._disturbance.until_s, self._disturbance.stall_at_s)
        if self._arrivals:
            until_s = min(until_s, self._arrivals[0].arrival_s)
        return Span(begin_s, until_s, self._scheduler.steps_alike(plan))

    def _count(self, plan: Plan, steps: int, finished: list[Request]) -> None:
        totals = self.totals
        totals.output_tokens += plan.decoding * steps + len(plan.first)
        for request in plan.first:
            if request.first_s is None:
                request.first_s = self.t_s
                totals.prompt_tokens += request.prompt_tokens
        for request in finished:
            request.last_s = self.t_s
            del self._requests[request.key]
        totals.finished += len(finished)
