"""How much of each limit a run used, and where accuracy and memory bandwidth stand: bars."""

from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config
from tokenwatt_site.method.derived import spec_of
from tokenwatt_site.method.statistics import wilson
from tokenwatt_site.publish.views.bandwidth import step_words
from tokenwatt_site.publish.views.headline import Source


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from 0 to 100 %: a share of a limit, or an estimate with its interval."""

    label: str
    value: str
    text: str
    """What the bar says, for those who can't see it."""
    note: str
    slot: int
    share_pct: float
    limit: bool = False
    interval_pct: tuple[float, float] | None = None

    @property
    def width_pct(self) -> str:
        """The bar's length as SVG takes it."""
        return f"{min(self.share_pct, 100):.4g}%"


@dataclass(frozen=True, slots=True)
class SloView:
    """The section on the promise."""

    title: str
    latency: tuple[Bar, ...]
    quality: tuple[Bar, ...]


def slo_view(source: Source) -> SloView:
    """Return the bars of one configuration."""
    slo, config = source.run.slo, source.config
    pairs = (
        ("TPOT", "p99 time per output token", config.tpot_p99_ms, float(slo.tpot_p99_ms)),
        ("TTFT", "p99 time to first token", config.ttft_p99_ms, float(slo.ttft_p99_ms)),
    )
    known = [(name, label, float(v), limit) for name, label, v, limit in pairs if v is not None]
    bars = tuple(_share(label, value, limit) for _, label, value, limit in known)
    quality = [_accuracy(source), _mbu(config)]
    title = _title([(name, value, limit) for name, _, value, limit in known])
    return SloView(title, bars, tuple(bar for bar in quality if bar is not None))


def _share(label: str, value: float, limit: float) -> Bar:
    share = 100 * value / limit
    left = limit - value
    what = f"{units.number(abs(left), 'ms')} ms {'left' if left >= 0 else 'over'}"
    used = f"{units.number(share, 'pct')} % of the limit used"
    shown = f"{units.number(value, 'ms')} of {units.significant(limit)} ms"
    return Bar(label, shown, f"{shown}, {used}", f"{used}, {what}", 1, share, limit=True)


def _title(known: list[tuple[str, float, float]]) -> str:
    """Return ``TPOT leaves 9 % of headroom, TTFT 81 %``, the tighter limit first."""
    rooms = sorted((100 * (1 - value / limit), name) for name, value, limit in known)
    if not rooms:
        return "Service level"
    if rooms[0][0] < 0:
        over = [f"{name} by {units.fixed(-room, 0)} %" for room, name in rooms if room < 0]
        return f"Over the limit: {' and '.join(over)}"
    first, *rest = [(f"{units.fixed(room, 0)} %", name) for room, name in rooms]
    more = "".join(f", {name} {room}" for room, name in rest)
    return f"{first[1]} leaves {first[0]} of headroom{more}"


def _accuracy(source: Source) -> Bar | None:
    result, gate = source.config.accuracy, source.run.accuracy
    if result is None:
        return None
    spec = spec_of(source.run, source.config).accuracy
    score, n = float(result.score), spec.limit if spec else None
    name = gate.suite if gate else "Accuracy"
    shown = f"{units.number(score, 'pct')} %"
    if not n:
        return Bar(name, shown, f"{name}: {shown}", "number of questions not recorded", 3, score)
    low, high = (100 * share for share in wilson(round(score * n / 100), n))
    span = units.span(low, high, "pct")
    note = f"n = {n}: 95 % interval {span} %"
    if gate and (high - low) / 2 > gate.threshold_pts:
        points = units.significant(float(gate.threshold_pts))
        plural = "" if gate.threshold_pts == 1 else "s"
        note += f", wider than the {points} point{plural} that the gate asks for"
    text = f"{name}: {shown} of {n} questions, 95 % interval {span} %"
    return Bar(name, shown, text, note, 3, score, interval_pct=(low, high))


def _mbu(config: Config) -> Bar | None:
    if config.mbu_pct is None:
        return None
    shown = f"{units.number(config.mbu_pct, 'pct')} %"
    note = "as stated; can’t be recomputed from what the document holds"
    if config.mbu is not None:
        note = f"of what was read at least: {step_words(config.mbu)}"
    name = "Memory bandwidth used"
    return Bar(name, shown, f"{name}: {shown}", note, 3, float(config.mbu_pct))
