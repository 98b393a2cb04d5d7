"""The figures of one window, from the rows of its evidence and nothing else.

The session computes them so when the window ends; ``verify`` and ``measure --resume`` compute them
again from the files, and get the same to the last bit.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.energy import EnergyWindow, after_average, energy_window
from tokenwatt_site.method.evidence import sample_of, trace_of
from tokenwatt_site.method.measured_window import MeasuredWindow, MeterWindow
from tokenwatt_site.method.meters import MeterFacts
from tokenwatt_site.method.probe import Measured, Probe
from tokenwatt_site.method.records import records_of
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.series import series
from tokenwatt_site.method.server_metrics import page_of_row, server_window
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.trend import stationary
from tokenwatt_site.method.window import Window, WindowStats, judge

DRIFT_WARN_PCT = 1.0

Rows = Iterable[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Load:
    """What the client knows of a load that it played, beside its requests."""

    started: str
    """The wall clock's time, a label."""
    end_us: int
    """When the load ended, µs after its start."""
    cpu_s: float
    """CPU time of the client."""
    loop_stall_max_s: float
    clock_drift_pct: float
    """How far the wall clock went from the monotonic one."""
    aborted: bool = False
    """The window was given up."""
    workers: int = 1
    """Processes that played it."""
    held_events_s: float | None = None
    """Token events a second that a self-test showed the client to hold; None where the load was
    too light to need one."""

    @property
    def end_s(self) -> float:
        """Return when the load ended, s after its start."""
        return self.end_us / 1e6


@dataclass(frozen=True, slots=True)
class Beside:
    """What was read beside the load."""

    power: Sequence[tuple[MeterFacts, Rows]] = ()
    """Each meter and its rows, the primary one first."""
    server: Rows = ()
    """The server's own page."""


@dataclass(frozen=True, slots=True)
class Account:
    """What a window came to."""

    window: MeasuredWindow
    measured: Measured
    """What the search is told."""
    series: dict[str, Any] | None
    """``documents.run.Series``; only of windows that may be reported."""


def account(spec: Spec, probe: Probe, load: Load, requests: Rows, beside: Beside) -> Account:
    """Return a window's figures.

    Args:
        spec: what was asked.
        probe: the window that was asked for.
        load: what the client knows of its load.
        requests: one row a request, in the order of the schedule.
        beside: rows of the meters and of the server's page.
    """
    power = beside.power
    window = window_of(probe, load)
    traces = [trace_of(row) for row in requests]
    end_s = max(load.end_s, window.w1_s)
    stats = judge(traces, window, spec.slo, end_s)
    samples = [[sample_of(row) for row in rows] for _, rows in power]
    meters = tuple(
        MeterWindow(meter, _energy(meter, read, window))
        for (meter, _), read in zip(power, samples, strict=True)
    )
    reasons = [*stats.reasons]
    if abs(load.clock_drift_pct) > DRIFT_WARN_PCT:
        reasons.append("CLOCK")
    if load.held_events_s is not None and _events_s(traces, window) > load.held_events_s:
        reasons.append("CLIENT_RATE")
    measured = MeasuredWindow(
        window,
        stats,
        meters,
        _client(load, stats),
        load.started,
        not reasons,
        tuple(reasons),
        probe.inject,
        stationary(traces, window, end_s),
        server_window([page_of_row(row) for row in beside.server], window.w0_s, window.w1_s),
    )
    devices = power[0][0].devices if power else ()
    return Account(
        measured,
        Measured(
            probe,
            stats.passed,
            measured.valid,
            stats.undecided_n,
            window.aborted,
            stats.counts.sent,
            stats.counts.miss_ttft,
            stats.counts.miss_tpot,
            window.w0_s,
            window.w1_s,
            end_s,
            records_of(traces) if spec.sweep.strategy == "adaptive" else (),
        ),
        None
        if window.phase == "search"
        else series(window, traces, samples[0] if power else [], devices, end_s),
    )


def _energy(meter: MeterFacts, read: Sequence[PowerSample], window: Window) -> EnergyWindow:
    edges = window.w0_s, window.w1_s
    energy = energy_window(read, meter.devices, *edges, meter.hz, meter.averaged_s)
    return after_average(energy, meter.averaged_s, window.warmup_s)


def window_of(probe: Probe, load: Load) -> Window:
    """Return a probe's window on the clock of its load, whose start is 0.

    One that was given up ends when its load did.
    """
    window = planned(probe)
    return replace(window, w1_s=load.end_s, aborted=True) if load.aborted else window


def planned(probe: Probe, t0_s: float = 0.0) -> Window:
    """Return the window that a probe asks for, of a load that starts at ``t0_s``."""
    w0_s = t0_s + probe.warmup_s
    w1_s = w0_s + probe.window_s
    return Window(
        probe.index, probe.phase, probe.rate_rps, w0_s, w1_s, probe.warmup_s, probe.tail_s
    )


def _events_s(traces: Iterable[RequestTrace], window: Window) -> float:
    """Return the token events a second that the client read in a window."""
    edges = (window.w0_s, window.w1_s)
    read = sum(
        stop - start
        for trace in traces
        for start, stop in [[bisect_left(trace.events_s, edge) for edge in edges]]
    )
    return read / window.length_s


def _client(load: Load, stats: WindowStats) -> dict[str, float | None]:
    return {
        "lag_p99_ms": _ms(stats.client.lag_p99_s),
        "lag_max_ms": _ms(stats.client.lag_max_s),
        "gap_cv": stats.client.gap_cv,
        "dispersion": stats.client.dispersion,
        "cached_pct": stats.client.cached_pct,
        "planned_cached_pct": stats.planned_cached_pct,
        "cpu_share": load.cpu_s / max(load.end_s, 1e-6),
        "loop_stall_max_ms": _ms(load.loop_stall_max_s),
        "clock_drift_pct": load.clock_drift_pct,
        "workers": load.workers,
        "held_events_s": load.held_events_s,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else max(0.0, 1000 * seconds)
