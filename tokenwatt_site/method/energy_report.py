"""The energy of one window or of several at one rate, as a run document holds it."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tokenwatt_site.method.energy import AGREE_PCT, WARN_PCT, CheckVerdict, EnergyWindow
from tokenwatt_site.method.idle import Idle, idle_of
from tokenwatt_site.method.measured_window import MeasuredWindow, MeterWindow
from tokenwatt_site.method.statistics import mean_interval

NODES = ("node_dc", "node_ac")
BOARDS = ("board", "module")
SLOW_HZ = 2.0
"""Power of the moment that is read less often may beat in time with its readings."""


def energy(windows: Sequence[MeasuredWindow], idle: Sequence[Idle] = ()) -> dict[str, Any]:
    """Return the primary meter's energy over windows, as ``documents.run.Energy`` holds it.

    Args:
        windows: the windows that count together.
        idle: what the meters read while the server had nothing to do.
    """
    document = _energy(windows, 0, idle)
    _against_others(document, windows)
    return document


def further_meters(
    windows: Sequence[MeasuredWindow], idle: Sequence[Idle] = ()
) -> list[dict[str, Any]]:
    """Return what the meters after the primary one say, as ``documents.run.MeterReport``.

    One of the primary's scope is compared with it; those of another include more or less.
    """
    first = windows[0].meters[0].facts
    reports: list[dict[str, Any]] = []
    for number, meter in enumerate(windows[0].meters[1:], 1):
        report: dict[str, Any] = {
            "name": meter.facts.name,
            "source": meter.facts.source,
            "scope": meter.facts.scope,
            "sampling_hz": meter.facts.hz,
            "energy": _energy(windows, number, idle),
        }
        if meter.facts.scope == first.scope:
            apart_pct = _apart_pct(windows, number)
            if apart_pct is not None:
                report |= {"difference_pct": apart_pct, "verdict": _verdict(apart_pct)}
        reports.append(report)
    return reports


def _energy(windows: Sequence[MeasuredWindow], number: int, idle: Sequence[Idle]) -> dict[str, Any]:
    parts = [w.meters[number].energy for w in windows]
    joules = _joules(windows, number)
    tokens = _tokens(windows)
    document: dict[str, Any] = {
        "scope": windows[0].meters[number].facts.scope,
        "method": "counter" if all(e.method == "counter" for e in parts) else "sampled",
        "joules": joules,
        "seconds": math.fsum(e.seconds for e in parts),
        "valid": joules is not None,
        "reasons": sorted({reason for e in parts for reason in e.reasons}),
        "j_per_output_token": joules / tokens if joules is not None and tokens else None,
        "samples": sum(e.samples for e in parts),
        "gaps": sum(e.gaps for e in parts),
    }
    check = _check(parts)
    if check is not None:
        document["check"] = check
    document |= _by_host(windows, number, joules)
    document |= idle_of(idle, number, joules, document["seconds"], tokens)
    if joules is not None:
        uncertainty, unknown = _uncertainty(windows, number, joules)
        document["uncertainty"] = uncertainty
        document["reasons"] = sorted({*document["reasons"], *unknown})
    return document


def _by_host(
    windows: Sequence[MeasuredWindow], number: int, joules: float | None
) -> dict[str, Any]:
    """Return the sums of each host and of each role, where there are several hosts."""
    hosts = windows[0].meters[number].facts.hosts
    if not hosts:
        return {}
    sums: dict[str, float] = {}
    for window in windows:
        for device, part_j in window.meters[number].energy.per_device_j.items():
            name = device.partition("/")[0]
            sums[name] = sums.get(name, 0.0) + part_j
    rows = [
        {**asdict(host), "joules": sums.get(host.name) if joules is not None else None}
        for host in hosts
    ]
    roles: dict[str, float] = {}
    for host in hosts:
        if host.role and joules is not None:
            roles[host.role] = roles.get(host.role, 0.0) + sums.get(host.name, 0.0)
    return {"hosts": rows, **({"roles": roles} if roles else {})}


def _joules(windows: Sequence[MeasuredWindow], number: int) -> float | None:
    """Return a meter's energy over all windows, None where it is invalid in one of them."""
    parts = [w.meters[number].energy for w in windows]
    if not all(e.valid and e.joules is not None for e in parts):
        return None
    return math.fsum(e.joules for e in parts if e.joules is not None)


def _tokens(windows: Sequence[MeasuredWindow]) -> float:
    return math.fsum(w.stats.output_tok_s * w.window.length_s for w in windows)


def _against_others(document: dict[str, Any], windows: Sequence[MeasuredWindow]) -> None:
    """Hold the primary meter against one of its scope, and the node against its boards."""
    meters = windows[0].meters
    first = meters[0].facts.scope
    for number in range(1, len(meters)):
        apart_pct = _apart_pct(windows, number) if meters[number].facts.scope == first else None
        if apart_pct is not None and _verdict(apart_pct) == "disagree":
            document["reasons"] = sorted({*document["reasons"], "second_meter_disagrees"})
            document |= {"valid": False, "joules": None, "j_per_output_token": None}
            for key in ("net_j_per_output_token", "uncertainty", "hosts", "roles"):
                document.pop(key, None)
            return
    extra_w = _node_minus_boards_w(windows)
    if extra_w is not None:
        document["node_minus_boards_w"] = extra_w


def _apart_pct(windows: Sequence[MeasuredWindow], number: int) -> float | None:
    """Return a meter against the primary one in percent of that, where both are valid."""
    first_j, second_j = _joules(windows, 0), _joules(windows, number)
    if not first_j or second_j is None:
        return None
    return 100 * (second_j - first_j) / first_j


def _verdict(apart_pct: float) -> CheckVerdict:
    if abs(apart_pct) <= AGREE_PCT:
        return "agree"
    return "warn" if abs(apart_pct) <= WARN_PCT else "disagree"


def _node_minus_boards_w(windows: Sequence[MeasuredWindow]) -> float | None:
    """Return the mean power of the first node meter less that of the first board meter."""
    node = _first(windows[0].meters, NODES)
    boards = _first(windows[0].meters, BOARDS)
    if node is None or boards is None:
        return None
    node_j, boards_j = _joules(windows, node), _joules(windows, boards)
    if node_j is None or boards_j is None:
        return None
    return (node_j - boards_j) / math.fsum(w.meters[0].energy.seconds for w in windows)


def _first(meters: Sequence[MeterWindow], scopes: Sequence[str]) -> int | None:
    found = (number for number, meter in enumerate(meters) if meter.facts.scope in scopes)
    return next(found, None)


def _check(parts: Sequence[EnergyWindow]) -> dict[str, Any] | None:
    """The second reading over all windows, where each window has one."""
    if any(e.check_joules is None or e.joules is None or e.check_method is None for e in parts):
        return None
    joules = math.fsum(e.check_joules for e in parts if e.check_joules is not None)
    first = math.fsum(e.joules for e in parts if e.joules is not None)
    order = {"agree": 0, "warn": 1, "disagree": 2}
    worst = max((e.check_verdict or "agree" for e in parts), key=lambda word: order[word])
    return {
        "method": parts[0].check_method,
        "joules": joules,
        "difference_pct": 100 * (joules - first) / first if first else 0.0,
        "verdict": worst,
    }


def _uncertainty(
    windows: Sequence[MeasuredWindow], number: int, joules: float
) -> tuple[dict[str, float], list[str]]:
    """Return the parts of J/token's uncertainty and codes of what isn't known or seen.

    Each is the half-width of a 95 % interval in percent. The gain is systematic, and the same in
    all windows; sampling and edges of several windows add up as independent ones; the spread over
    repeats holds the sampling already, so that the larger of the two counts::

        combined = √(gain² + max(repeats, sampling)² + edges²)
    """
    facts = windows[0].meters[number].facts
    parts = [w.meters[number].energy for w in windows]
    sampled = [e for e in parts if e.method == "sampled"]
    seen = {
        "gain_pct": facts.gain_pct,
        "repeats_pct": _repeats_pct(windows, number),
        "sampling_pct": _together_pct([e.sampling_j for e in sampled], joules),
        "edges_pct": _together_pct([e.edges_j for e in parts], joules),
    }
    unknown = {
        "gain_unknown": facts.gain_pct is None,
        "constant_power": any(e.sampling_j is None for e in sampled),
        "slow_sampling": bool(sampled) and facts.hz < SLOW_HZ and facts.averaged_s * facts.hz < 1,
    }
    known = {name: pct for name, pct in seen.items() if pct is not None}
    if not unknown["gain_unknown"] and not unknown["constant_power"] and "edges_pct" in known:
        spread_pct = max(known.get("repeats_pct", 0.0), known.get("sampling_pct", 0.0))
        known["combined_pct"] = math.hypot(known["gain_pct"], spread_pct, known["edges_pct"])
    return known, [code for code, true in unknown.items() if true]


def _together_pct(halves_j: Sequence[float | None], joules: float) -> float | None:
    """Return half-widths of several windows as one, percent of their energy."""
    known = [half for half in halves_j if half is not None]
    if not known or len(known) < len(halves_j) or joules <= 0:
        return None
    return 100 * math.hypot(*known) / joules


def _repeats_pct(windows: Sequence[MeasuredWindow], number: int) -> float | None:
    """Return what the spread of J/token over the windows says of its mean."""
    each = [
        e.joules / (w.stats.output_tok_s * w.window.length_s)
        for w in windows
        if (e := w.meters[number].energy).joules is not None and w.stats.output_tok_s
    ]
    if len(each) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    mean, half = mean_interval(each)
    return 100 * half / mean if half is not None and mean else None
