"""Checks of power, energy and throttling."""

import re

from tokenwatt_site.documents.run import Config
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.method.checks.rule import Found, Spot, Subject, among
from tokenwatt_site.method.derived import (
    derived,
    hardware_of,
    power_of,
    scope_of,
    spec_of,
)
from tokenwatt_site.units import fmt

THROTTLED_MAX_PCT = 1.0
OVER_LIMIT = 1.05
DISAGREE_PCT = 5.0
SLOW_HZ = 2
_BOARDS = {"board", "module", "package"}
_HARD = re.compile(r"thermal|brake|\bhw|_hw|hardware", re.IGNORECASE)
_CAP = re.compile(r"power[ _]?cap", re.IGNORECASE)
_DISCLOSED = r"throttl|power[ -]cap|power limit|\bclock"


def throttling_undisclosed(subject: Subject) -> Found:
    """Find accelerators that were slowed down while the publisher doesn't say so."""
    if subject.says(_DISCLOSED):
        return []
    spots: list[Spot] = []
    unknown = False
    for pointer, config in subject.configs():
        counts = {name: count for name, count in config.throttle_counts.items() if count}
        hard = sorted(name for name in counts if _HARD.search(name))
        capped = any(map(_CAP.search, counts))
        share = derived(subject.run, config).throttle_share_pct
        unknown = unknown or (capped and share is None and not hard)
        if hard:
            spots.append(_throttled(pointer, f"the accelerators were slowed by {', '.join(hard)}"))
        elif capped and share is not None and share > THROTTLED_MAX_PCT:
            often = fmt(share, "share_pct")
            spots.append(_throttled(pointer, f"the power cap held clocks down for {often}"))
    return among(spots, ran=bool(spots) or not unknown, needs="the share of time throttled")


def _throttled(pointer: str, what: str) -> Spot:
    text = f"{what}, and neither the summary nor not_covered says so"
    return Spot(f"{pointer}/throttle_counts", text)


def power_over_limit(subject: Subject) -> Found:
    """Find boards that are said to draw more than their limit allows."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        hardware = hardware_of(subject.run, config)
        limit_w = config.power_limit_w or hardware.power_limit_w or _tdp_w(subject)
        boards = scope_of(subject.run, config) in _BOARDS
        if config.node_power_kw is None or limit_w is None or not hardware.count or not boards:
            continue
        ran = True
        power_w, most_w = 1000 * config.node_power_kw, limit_w * hardware.count
        if power_w > OVER_LIMIT * most_w:
            text = (
                f"{fmt(power_w, 'w')} is more than {hardware.count} times the limit of"
                f" {fmt(limit_w, 'w')}"
            )
            spots.append(Spot(f"{pointer}/node_power_kw", text))
    return among(spots, ran=ran, needs="board power, the number of accelerators and their limit")


def _tdp_w(subject: Subject) -> float | None:
    return subject.hardware.tdp_w.value if subject.hardware and subject.hardware.tdp_w else None


def node_below_boards(subject: Subject) -> Found:
    """Find a node that draws less than the boards in it."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        extra_w = config.energy.node_minus_boards_w if config.energy else None
        ran = ran or extra_w is not None
        if extra_w is not None and extra_w < 0:
            text = f"the node draws {fmt(-extra_w, 'w')} less than its accelerators"
            spots.append(Spot(f"{pointer}/energy/node_minus_boards_w", text))
    return among(spots, ran=ran, needs="a node meter beside the boards")


def meters_disagree(subject: Subject) -> Found:
    """Find two readings of the same energy that are far apart."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        check = config.energy.check if config.energy else None
        ran = ran or check is not None
        if check and (check.verdict == "disagree" or abs(check.difference_pct) > DISAGREE_PCT):
            apart = fmt(abs(check.difference_pct), "pct")
            text = f"the second reading ({check.method}) differs by {apart}"
            spots.append(Spot(f"{pointer}/energy/check", text))
    return among(spots, ran=ran, needs="a second reading of the energy")


def scope_name(subject: Subject) -> Found:
    """Find board power under a name that says node."""
    return [
        Spot(
            f"{pointer}/node_power_kw",
            "the power is that of the accelerator boards, and no energy.scope says so",
        )
        for pointer, config in subject.configs()
        if power_of(subject.run, config).kind == "board"
        and config.node_power_kw is not None
        and config.energy is None
    ]


def sampling_slow(subject: Subject) -> Found:
    """Find samples too rare for a power that changes with each batch."""
    spots: list[Spot] = []
    for pointer, config in subject.configs():
        hz = power_of(subject.run, config).sampling_hz
        sampled = config.energy is None or config.energy.method == "sampled"
        if hz is not None and hz < SLOW_HZ and sampled:
            place = f"{pointer}/power" if config.power else "/power"
            text = f"power was read {fmt(hz, 'hz')}, too seldom for a load that changes in between"
            spots.append(Spot(f"{place}/sampling_hz", text))
    return list(dict.fromkeys(spots))


def one_meter(subject: Subject) -> Found:
    """Find power that no second meter checks: a device's counter and samples are one meter."""
    spots: list[Spot] = []
    for pointer, config in subject.configs():
        if power_of(subject.run, config).kind != "none" and _meters(subject, config) < 2:  # noqa: PLR2004
            place = f"{pointer}/power" if config.power else "/power"
            spots.append(Spot(place, "one meter measured the power, and no second one checks it"))
    return list(dict.fromkeys(spots))


def _meters(subject: Subject, config: Config) -> int:
    if config.energy and config.energy.node_minus_boards_w is not None:
        return 2
    return sum(meter.source != "none" for meter in asked_meters(subject, config))


def asked_meters(subject: Subject, config: Config) -> list[SpecPower]:
    """Return the meters that a configuration's spec names."""
    power = spec_of(subject.run, config).power
    return power if isinstance(power, list) else [power] if power else []


def tls_unverified(subject: Subject) -> Found:
    """Find remote meters whose certificate nobody checked."""
    power = subject.run.spec.power
    spots: list[Spot] = []
    for i, meter in enumerate(asked_meters(subject, subject.run.configs[0])):
        if meter.url and not meter.verify_tls:
            place = f"/spec/power/{i}" if isinstance(power, list) else "/spec/power"
            text = "the meter's certificate was not verified, so another may have answered for it"
            spots.append(Spot(f"{place}/verify_tls", text))
    return spots
