"""The ladder against a server whose boundary is known: the step model, played in virtual time.

The spec is fit for it: five bisections, a bisected confirm, fixed lengths, full windows of some
1,800 requests. The boundary is pinned: the mean of six streams of 100,000 requests, as ``truth``
computes it for this shape, workload and limits in minutes of CPU (95 %: 30.1 to 30.9).
"""

import math
from array import array
from dataclasses import dataclass
from functools import cache

import pytest

from tokenwatt_site.documents.spec import SpecMeasurement, SpecSlo, SpecSweep
from tokenwatt_site.method.ladder import next_probe
from tokenwatt_site.method.probe import Measured, Probe
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.rng import derive_seed
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.scheduler import Request
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.virtual import play
from tokenwatt_site.method.window import Window, judge
from tokenwatt_site.method.workloads import Fixed, Workload

pytestmark = pytest.mark.no_cover  # tracing makes whole searches several times slower

TRUTH_RPS = 30.50
SEEDS = 50
SHAPE = shape_of("d8", {"noise_sd": 0.01})
WORKLOAD = Workload("custom", Fixed(512), Fixed(128))
SLO = SpecSlo(ttft_p99_ms=2000, tpot_p99_ms=50)
SWEEP = SpecSweep(start_rps=8.0, bisect_steps=5, confirm="bisect")
MEASUREMENT = SpecMeasurement(warmup_s=10, window_s=60, search_window_s=30, repeats=3)
TAIL_S = 9.0
"""By then each request has its verdict: 2 s to the first token, 128 more at 50 ms."""


@dataclass(frozen=True)
class Server:
    """One server with one load, measured window after window without a pause."""

    seed: int
    model: StepModel

    def measure(self, probe: Probe) -> Measured:
        """Play a window's schedule and judge what came back."""
        seed = derive_seed(self.seed, "schedule", probe.index)
        w0_s = self.model.t_s + probe.warmup_s
        w1_s = w0_s + probe.window_s
        end_s = w1_s + TAIL_S
        schedule = poisson_schedule(WORKLOAD, probe.rate_rps, end_s - self.model.t_s, seed)
        window = Window(probe.index, probe.phase, probe.rate_rps, w0_s, w1_s, probe.warmup_s)
        traces = [recorded(request) for request in play(self.model, schedule, end_s)]
        stats = judge(traces, window, SLO, end_s)
        return Measured(probe, stats.passed, stats.valid, stats.undecided_n)


def recorded(request: Request) -> RequestTrace:
    """Return what a client knows of a request, with its first and its last token only."""
    done = request.last_s is not None
    stamps = [request.first_s, request.last_s]
    return RequestTrace(
        index=request.key,
        t_sched_s=request.arrival_s,
        input_tokens=request.prompt_tokens,
        output_tokens=request.output_tokens,
        t_send_s=request.arrival_s,
        events_s=array("d", [stamp for stamp in stamps if stamp is not None]),
        n_output=request.output_tokens if done else None,
        outcome="ok" if done else "running",
        t_end_s=request.last_s if done else None,
    )


def ladder(seed: int) -> float:
    """Return the rate that a whole search reports, 0 for none."""
    server = Server(seed, StepModel(SHAPE, derive_seed(seed, "server")))
    history: list[Measured] = []
    while isinstance(step := next_probe(history, SWEEP, MEASUREMENT), Probe):
        history.append(server.measure(step))
    return step.rate_rps or 0.0


@cache
def shares() -> list[float]:
    """Return reported over true rate, one a seed; within a test, so that no_cover holds for it."""
    return [ladder(seed) / TRUTH_RPS for seed in range(SEEDS)]


def test_the_ladder_is_right_on_average() -> None:
    assert math.fsum(shares()) / SEEDS == pytest.approx(1, abs=0.03)


def test_hardly_any_search_is_far_off() -> None:
    assert sum(abs(share - 1) <= 0.08 for share in shares()) >= 48
