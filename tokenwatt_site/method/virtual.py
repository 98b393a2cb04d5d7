"""Play a schedule on the step model in virtual time: what a perfect client would see."""

import math
from array import array
from collections.abc import Callable

from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.scheduler import Request
from tokenwatt_site.method.step_model import Step, StepModel
from tokenwatt_site.method.trace import RequestTrace


def play(
    model: StepModel,
    schedule: Schedule,
    until_s: float = math.inf,
    watch: Callable[[Step], None] | None = None,
) -> list[Request]:
    """Send a schedule from the model's present on; return its requests in order.

    Args:
        model: the server, with nothing to do. It keeps its clock and state for a next call.
        schedule: arrivals, relative to the model's clock.
        until_s: when the client stops: what arrives later isn't sent, what runs is cancelled.
        watch: sees each step, or several alike, as it was taken.
    """
    t0_s = model.t_s
    requests: list[Request] = []
    for key in range(len(schedule)):
        arrival_s = t0_s + schedule.arrival_s[key]
        if arrival_s >= until_s:
            break
        prompt_tokens, output_tokens = schedule.input_tokens[key], schedule.output_tokens[key]
        requests.append(model.submit(key, arrival_s, prompt_tokens, output_tokens))
    while model.t_s < until_s and (step := model.run(until_s)) is not None:
        if watch is not None:
            watch(step)
    for request in requests:
        model.cancel(request.key)
    return requests


def trace(model: StepModel, schedule: Schedule, until_s: float = math.inf) -> list[RequestTrace]:
    """Play a schedule and return what the client records of it, a stamp for every token.

    The client has no lag: it sends at the scheduled time and reads a token when its step ends.
    """
    recorder = _Recorder()
    requests = play(model, schedule, until_s, recorder.watch)
    return [recorder.trace_of(request, until_s) for request in requests]


class _Recorder:
    """Token times of all requests: the ends of the steps, and where in them each request began."""

    def __init__(self) -> None:
        self._ends_s = array("d")  # of the steps that decoded
        self._tokens_s: dict[int, array[float]] = {}
        self._begins: dict[int, int] = {}

    def watch(self, step: Step) -> None:
        if step.plan.decoding:
            self._ends_s.extend(step.ends_s)
        for request in step.plan.first:
            stamps = self._tokens_s.setdefault(request.key, array("d"))
            self._catch_up(request, request.kept - 1)
            stamps.append(step.ends_s[-1])
            self._begins[request.key] = len(self._ends_s)

    def _catch_up(self, request: Request, tokens: int) -> None:
        """Copy the ends of the steps in which a request gained its tokens up to ``tokens``."""
        stamps = self._tokens_s[request.key]
        missing = tokens - len(stamps)
        if missing > 0:
            begin = self._begins[request.key]
            stamps.extend(self._ends_s[begin : begin + missing])

    def trace_of(self, request: Request, until_s: float) -> RequestTrace:
        stamps = self._tokens_s.get(request.key, array("d"))
        if stamps:
            self._catch_up(request, request.kept)
        while stamps and stamps[-1] > until_s:
            stamps.pop()
        finished = len(stamps) == request.output_tokens
        return RequestTrace(
            index=request.key,
            t_sched_s=request.arrival_s,
            input_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            t_send_s=request.arrival_s,
            events_s=stamps,
            n_output=len(stamps) if finished else None,
            n_source="usage" if finished else None,
            n_prompt=request.prompt_tokens if stamps else None,
            status=200,
            finish="length" if finished else None,
            done=finished,
            outcome="ok" if finished else "running",
            t_end_s=stamps[-1] if finished else until_s,
        )
