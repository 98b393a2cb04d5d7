"""Checks of figures that contradict each other or can't be."""

import math
from collections.abc import Iterator, Sequence
from statistics import stdev
from typing import TYPE_CHECKING

from tokenwatt_site.documents.run import Config
from tokenwatt_site.method.checks.rule import Found, Spot, Subject, among, walk
from tokenwatt_site.method.derived import hardware_of, power_of, spec_of
from tokenwatt_site.units import fmt

if TYPE_CHECKING:
    from tokenwatt_site.documents.window import Counts

SAFE_INTEGER = 2**53
IDENTITY_PCT = 0.5
_REAL_MBU_PCT = 85
_ALL_PCT = 100
_OFF_SHARE = 0.03


def mbu_impossible(subject: Subject) -> Found:
    """Find more memory bandwidth than there is."""
    return _mbu(subject, _ALL_PCT, math.inf, "more than the memory is rated at")


def mbu_high(subject: Subject) -> Found:
    """Find more memory bandwidth than is reached in practice."""
    return _mbu(subject, _REAL_MBU_PCT, _ALL_PCT, "more than memory delivers in practice")


def _mbu(subject: Subject, over: float, most: float, what: str) -> Found:
    known = [(p, c.mbu_pct) for p, c in subject.configs() if c.mbu_pct is not None]
    spots = [
        Spot(f"{p}/mbu_pct", f"{fmt(pct, 'pct')} is {what}")
        for p, pct in known
        if over < pct <= most
    ]
    return among(spots, ran=bool(known), needs="memory bandwidth utilisation")


def slo_claim(subject: Subject) -> Found:
    """Find a p99 over its limit where all windows are said to have kept it."""
    slo = subject.run.slo
    limits = {"ttft_p99_ms": slo.ttft_p99_ms, "tpot_p99_ms": slo.tpot_p99_ms}
    spots: list[Spot] = []
    for pointer, config in subject.configs():
        claims = [(pointer, config, 0 < config.repeats == config.slo_pass_count)]
        claims += [
            (f"{pointer}/{part}/{i}", window, window.passed)
            for part in ("windows", "sweep")
            for i, window in enumerate(getattr(config, part) or ())
        ]
        for place, holder, passed in claims:
            for key, limit_ms in limits.items():
                value_ms = getattr(holder, key)
                if passed and value_ms is not None and value_ms > limit_ms:
                    text = f"{fmt(value_ms, 'ms')} is over the limit of {fmt(limit_ms, 'ms')}"
                    spots.append(Spot(f"{place}/{key}", f"{text}, which is said to be kept"))
    return spots


def counts(subject: Subject) -> Found:
    """Find numbers of requests, windows and samples that don't add up."""
    spots: list[Spot] = []
    for pointer, config in subject.configs():
        spots += _requests(pointer, config)
        spots += _repeats(subject, pointer, config)
        spots += _samples(subject, pointer, config)
    return spots


def _requests(pointer: str, config: Config) -> Iterator[Spot]:
    held: list[tuple[str, Counts | None]] = [(f"{pointer}/counts", config.counts)]
    for part in ("windows", "sweep"):
        windows = getattr(config, part) or ()
        held += [(f"{pointer}/{part}/{i}/counts", w.counts) for i, w in enumerate(windows)]
    for place, found in held:
        if found and found.sent != found.ok + found.failed + found.unfinished:
            text = (
                f"{found.sent} sent, but {found.ok} ok + {found.failed} failed +"
                f" {found.unfinished} unfinished"
            )
            yield Spot(place, text)


def _repeats(subject: Subject, pointer: str, config: Config) -> Iterator[Spot]:
    run = subject.run
    asked = spec_of(run, config).measurement.repeats
    confirmed = run.verdict is None or run.verdict.word in {"met", "proven"}
    if config.repeats != run.runs:
        text = f"{config.repeats} confirm windows, where the document says {run.runs}"
        yield Spot(f"{pointer}/repeats", text)
    elif confirmed and config.repeats != asked and _is_ladder(subject, config):
        text = f"{config.repeats} confirm windows, where the spec asks for {asked}"
        yield Spot(f"{pointer}/repeats", text)
    if config.slo_pass_count > config.repeats:
        text = f"{config.slo_pass_count} windows passed of {config.repeats}"
        yield Spot(f"{pointer}/slo_pass_count", text)


def _is_ladder(subject: Subject, config: Config) -> bool:
    return spec_of(subject.run, config).sweep.strategy != "adaptive"


def _samples(subject: Subject, pointer: str, config: Config) -> Iterator[Spot]:
    hz, count = power_of(subject.run, config).sampling_hz, hardware_of(subject.run, config).count
    if hz is None:
        return
    seconds = [window.window_s for window in config.windows or ()]
    spec_s = spec_of(subject.run, config).measurement.window_s
    total_s = math.fsum(seconds) if seconds else spec_s * config.repeats
    most = math.ceil(total_s * hz + config.repeats) * count
    for reason, found in config.throttle_counts.items():
        if found > most:
            text = f"{found} throttled samples, where there can be {most} at most"
            yield Spot(f"{pointer}/throttle_counts/{reason}", text)


def identity(subject: Subject) -> Found:
    """Find figures that belong together by definition and don't."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        energy = config.energy
        terms = (
            energy.j_per_output_token if energy else None,
            config.output_tok_s,
            config.node_power_kw,
        )
        ran = ran or None not in terms
        spots += _energy(pointer, terms)
        spots += _accelerators(subject, pointer, config)
    return among(spots, ran=ran or bool(spots), needs="J per output token, output tok/s and power")


def _energy(pointer: str, terms: Sequence[float | None]) -> Iterator[Spot]:
    j_token, tok_s, power_kw = terms
    if j_token is None or tok_s is None or power_kw is None:
        return
    power_w = 1000 * power_kw
    if abs(j_token * tok_s - power_w) > IDENTITY_PCT / 100 * power_w:
        text = (
            f"{fmt(j_token, 'j_per_token')} times {fmt(tok_s, 'tok_s')} is"
            f" {fmt(j_token * tok_s, 'w')}, and the power is {fmt(power_w, 'w')}"
        )
        yield Spot(f"{pointer}/energy/j_per_output_token", text)


def _accelerators(subject: Subject, pointer: str, config: Config) -> Iterator[Spot]:
    if not (pointer == "/configs/0" or config.hardware or config.spec):
        return
    count, model = hardware_of(subject.run, config).count, spec_of(subject.run, config).model
    needed = model.ranks
    if count and count != needed:
        place = f"{pointer}/hardware" if config.hardware else "/hardware"
        text = (
            f"{count} accelerators, but {model.replicas} replicas of TP{model.tensor_parallel}"
            f" PP{model.pipeline_parallel} take {needed}"
        )
        yield Spot(f"{place}/count", text)


def non_finite(subject: Subject) -> Found:
    """Find numbers that aren't: NaN and infinity."""
    return [
        Spot(pointer, f"{value} is not a number of JSON")
        for pointer, value in walk(subject.data)
        if isinstance(value, float) and not math.isfinite(value)
    ]


def big_integer(subject: Subject) -> Found:
    """Find whole numbers that a browser can't hold exactly; seeds are kept as text there."""
    return [
        Spot(pointer, f"{value} is over 2⁵³, where browsers round")
        for pointer, value in walk(subject.data)
        if isinstance(value, int) and abs(value) > SAFE_INTEGER and not pointer.endswith("/seed")
    ]


def goodput_vs_rate(subject: Subject) -> Found:
    """Find a goodput that rate times mean answer length doesn't explain."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        mean = config.tokens.output if config.tokens else None
        each = [window.goodput_tok_s for window in config.windows or ()]
        rate, goodput = config.rate_rps, config.goodput_tok_s
        if rate is None or mean is None or goodput is None or len(each) < 2:  # noqa: PLR2004
            continue
        ran = True
        off = abs(goodput - rate * mean)
        if off > max(_OFF_SHARE * rate * mean, 2 * stdev(each) / math.sqrt(len(each))):
            text = (
                f"{fmt(goodput, 'tok_s')}, where {fmt(rate, 'rps')} of {fmt(mean, 'tokens')} each"
                f" make {fmt(rate * mean, 'tok_s')}"
            )
            spots.append(Spot(f"{pointer}/goodput_tok_s", text))
    return among(spots, ran=ran, needs="rate, mean answer length and goodput of two windows")
