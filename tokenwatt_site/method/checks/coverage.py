"""Checks of how much a document rests on: repeats, lengths, meters, what can be recomputed."""

from tokenwatt_site.documents.run import Config
from tokenwatt_site.method.checks.rule import Found, NotApplicable, Spot, Subject, among
from tokenwatt_site.method.derived import spec_of
from tokenwatt_site.method.statistics import wilson
from tokenwatt_site.method.window import LAG_FLOOR_S
from tokenwatt_site.units import fmt

FULL_REPEATS = 3
FULL_WINDOW_S = 180
FULL_REQUESTS = 300
_DRIFT_PCT = 0.1
_BUNCHED = 0.1  # a median gap under this share of a token's time
_MEASURED = ("mbu_pct", "node_power_kw", "goodput_tok_s", "ttft_p99_ms", "tpot_p99_ms", "accuracy")


def accuracy_underpowered(subject: Subject) -> Found:
    """Find an accuracy check with too few items to see the drop that it guards against."""
    gate = subject.run.accuracy
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        spec = spec_of(subject.run, config).accuracy
        if gate is None or config.accuracy is None or spec is None or spec.limit is None:
            continue
        if config.key != "baseline":
            continue  # a drop is judged on the same items in both runs, which no field holds
        ran = True
        n, score = spec.limit, config.accuracy.score
        low, high = wilson(round(score / 100 * n), n)
        half_pts = 100 * (high - low) / 2
        if half_pts > 2 * gate.threshold_pts:
            text = (
                f"{n} questions know the score to ±{fmt(half_pts, 'pts')}, and the check is to"
                f" find a drop of {fmt(gate.threshold_pts, 'pts')}"
            )
            spots.append(Spot(f"{pointer}/accuracy", text))
    return among(spots, ran=ran, needs="an accuracy score and its number of questions")


def few_repeats(subject: Subject) -> Found:
    """Find too few confirm windows for an interval."""
    runs = subject.run.runs
    if runs == 0:
        return NotApplicable("a confirm window")
    if runs >= FULL_REPEATS:
        return []
    plural = "s say" if runs > 1 else " says"
    return [Spot("/runs", f"{runs} confirm window{plural} little about the spread between windows")]


def window_short(subject: Subject) -> Found:
    """Find windows too short to average what a server does."""
    if subject.run.runs == 0:
        return NotApplicable("a confirm window")
    short: list[str] = []
    for _, config in subject.configs():
        lengths = [w.window_s for w in config.windows or ()]
        sent = [w.counts.sent for w in config.windows or ()]
        window_s = min(lengths, default=spec_of(subject.run, config).measurement.window_s)
        if window_s < FULL_WINDOW_S:
            short.append(str(fmt(window_s, "s")))
        elif min(sent, default=FULL_REQUESTS) < FULL_REQUESTS:
            short.append(f"{min(sent)} requests")
    if not short:
        return []
    text = f"a window of {short[0]}, where {FULL_WINDOW_S} s and {FULL_REQUESTS} requests are asked"
    return [Spot("/power/window", text)]


def ladder_policy(subject: Subject) -> Found:
    """Find a rate chosen by the ladder, which is right about three times in four."""
    sweep = subject.run.spec.sweep
    if sweep.strategy == "adaptive" or sweep.rates is not None:
        return []
    text = "the rate was found by the ladder, whose passes are partly luck: windows vary in load"
    return [Spot("/spec/sweep", text)]


def null_unexplained(subject: Subject) -> Found:
    """Find measured figures that are missing without a reason."""
    missing = subject.run.missing or {}
    places = [
        (f"{pointer}/{key}", getattr(config, key))
        for pointer, config in subject.configs()
        for key in _MEASURED
    ]
    places.append(("/variance_band_pct", subject.run.variance_band_pct))
    return [
        Spot(pointer, "the figure is missing, and `missing` doesn't say why")
        for pointer, value in places
        if value is None and pointer not in missing
    ]


def not_recomputable(subject: Subject) -> Found:
    """Find figures that nobody can compute again from what is published."""
    spots: list[Spot] = []
    for pointer, config in subject.configs():
        nothing = config.goodput_tok_s is None and config.node_power_kw is None
        lacking = [] if nothing else _lacking(subject, config)
        if lacking:
            text = f"not published, so the figures can't be computed again: {', '.join(lacking)}"
            spots.append(Spot(pointer, text))
    return spots


def _lacking(subject: Subject, config: Config) -> list[str]:
    energy, windows = config.energy, config.windows or ()
    held = {
        "the rate": config.rate_rps is not None,
        "what MBU was computed from": config.mbu_pct is None or config.mbu is not None,
        "how much of the window the meter covered": config.node_power_kw is None
        or (energy is not None and energy.samples is not None),
        "the windows' times": any(window.started for window in windows),
        "the counts of requests": config.counts is not None,
        "the evidence": bool(config.evidence or subject.run.evidence),
    }
    return [what for what, there in held.items() if not there]


def untrusted_clock(subject: Subject) -> Found:
    """Find a load generator whose two clocks drift apart."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        drift_pct = config.client.clock_drift_pct if config.client else None
        ran = ran or drift_pct is not None
        if drift_pct is not None and abs(drift_pct) > _DRIFT_PCT:
            text = f"monotonic and wall clock differ by {fmt(abs(drift_pct), 'share_pct')}"
            spots.append(Spot(f"{pointer}/client/clock_drift_pct", text))
    return among(spots, ran=ran, needs="the client's clocks")


def client_lag(subject: Subject) -> Found:
    """Find a load generator that came near its own limit."""
    limit_ms = max(1000 * LAG_FLOOR_S, 0.01 * subject.run.slo.ttft_p99_ms)
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        lag_ms = config.client.lag_p99_ms if config.client else None
        ran = ran or lag_ms is not None
        if lag_ms is not None and lag_ms > limit_ms / 2:
            text = (
                f"requests were sent {fmt(lag_ms, 'ms')} late, and {fmt(limit_ms, 'ms')} is allowed"
            )
            spots.append(Spot(f"{pointer}/client/lag_p99_ms", text))
    return among(spots, ran=ran, needs="the client's lag")


def buffered(subject: Subject) -> Found:
    """Find token events that came in bunches: no gap before most of them."""
    spots: list[Spot] = []
    ran = False
    for pointer, config in subject.configs():
        gap_ms = config.itl_ms.p50 if config.itl_ms else None
        tpot_ms = config.tpot_ms.p50 if config.tpot_ms else None
        if gap_ms is None or not tpot_ms:
            continue
        ran = True
        if gap_ms < _BUNCHED * tpot_ms:
            text = (
                f"the median gap between token events is {fmt(gap_ms, 'ms')}, and a token takes "
                f"{fmt(tpot_ms, 'ms')}: they came in bunches"
            )
            spots.append(Spot(f"{pointer}/itl_ms/p50", text))
    return among(spots, ran=ran, needs="the median gap and TPOT")
