"""The step model in real time: tokens go out when the loop's clock reaches the end of a step."""

import asyncio
from itertools import chain
from typing import Protocol

from tokenwatt_site.method.step_model import Reading, Step, StepModel
from tokenwatt_site.simulator.trail import Trail

METER_SPAN_S = 0.1
"""A board's power reading is a short mean, not the power of one step."""


class Listener(Protocol):
    """Told of each token of a request: its number from 1, and whether it is the last one."""

    def __call__(self, n: int, *, last: bool) -> None:
        """Take token ``n``."""
        ...


class Engine:
    """Steps a model against the time of an event loop.

    The model decides when a step ends; the loop only waits for that time. So a late wake-up delays
    the tokens of one step and moves no other: nothing drifts. How late it ever was is ``behind_s``.
    """

    def __init__(self, model: StepModel, loop: asyncio.AbstractEventLoop) -> None:
        self.model = model
        self.behind_s = 0.0
        """The longest time by which tokens left after their step's end."""
        self._loop = loop
        self._epoch_s = loop.time()
        self._next_key = 0
        self._listeners: dict[int, Listener] = {}
        self._sent: dict[int, int] = {}
        self._step: Step | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._trail = Trail(METER_SPAN_S)

    @property
    def now_s(self) -> float:
        """Seconds since the engine began."""
        return self._loop.time() - self._epoch_s

    def submit(self, prompt_tokens: int, output_tokens: int, listener: Listener) -> int:
        """Let a request arrive now; return its key."""
        key = self._next_key
        self._next_key += 1
        self.model.submit(key, self.now_s, prompt_tokens, output_tokens)
        self._listeners[key] = listener
        self._sent[key] = 0
        if self._step is None:
            self._begin()
        return key

    def cancel(self, key: int) -> None:
        """Drop a request; its listener hears no more."""
        self.model.cancel(key)
        self._forget(key)

    def close(self) -> None:
        """Stop stepping."""
        if self._timer is not None:
            self._timer.cancel()

    def reading(self) -> tuple[float, Reading, float]:
        """Return the time of a reading, what one accelerator's meter shows, and its mean power.

        In a step that should have ended already it is the reading at the step's end.
        """
        t_s = self.now_s if self._step is None else min(self.now_s, self.model.t_s)
        reading = self.model.reading(t_s)
        mean_w = self._trail.mean_w(t_s, reading.energy_j)
        return t_s, reading, reading.power_w if mean_w is None else mean_w

    def _begin(self) -> None:
        model = self.model
        self._step = step = model.step()
        if step is None:
            return
        start, end = (model.reading(t_s) for t_s in (step.start_s, model.t_s))
        self._trail.add((step.start_s, start.energy_j), (model.t_s, end.energy_j))
        self._timer = self._loop.call_at(self._epoch_s + model.t_s, self._end, step)

    def _end(self, step: Step) -> None:
        self.behind_s = max(self.behind_s, self.now_s - self.model.t_s)
        for request in chain(tuple(self.model.decoding), step.finished):
            listener = self._listeners.get(request.key)
            produced = self.model.produced(request)
            if listener is not None and produced > self._sent[request.key]:
                self._sent[request.key] = produced
                last = produced == request.output_tokens
                if last:
                    self._forget(request.key)
                listener(produced, last=last)
        self._begin()

    def _forget(self, key: int) -> None:
        self._listeners.pop(key, None)
        self._sent.pop(key, None)
