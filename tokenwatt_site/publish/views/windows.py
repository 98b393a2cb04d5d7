"""The windows of a configuration: repeats with their means, the search, the server's own words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config
from tokenwatt_site.documents.window import ServerSaid, WindowRecord
from tokenwatt_site.method.derived import repeats, window_j_per_token, window_power_w, window_within
from tokenwatt_site.publish.views.headline import NOT_RECORDED

Value = Callable[[WindowRecord], float | None]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table of windows."""

    name: str
    unit: str
    quantity: str
    value: Value
    mean: bool = True


@dataclass(frozen=True, slots=True)
class Number:
    """A cell: the number, its interval, the exact value."""

    text: str
    exact: str = ""
    half: str = ""


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One window."""

    name: str
    cells: tuple[Number, ...]
    verdict: str
    passed: bool


@dataclass(frozen=True, slots=True)
class WindowTable:
    """Windows and, over repeats, their means."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[WindowRow, ...]
    means: tuple[Number, ...]
    kept: str


def _misses(window: WindowRecord) -> float | None:
    counts = window.counts
    known = [n for n in (counts.miss_ttft, counts.miss_tpot) if n is not None]
    return max(known) if known else None


def _said(value: Callable[[ServerSaid], float | None]) -> Value:
    return lambda window: value(window.server) if window.server else None


def _upper(bounds: Sequence[float] | None) -> float | None:
    return bounds[1] if bounds else None


_COUNTS = (
    Column("Requests", "", "count", lambda w: w.counts.sent),
    Column("Failed", "", "count", lambda w: w.counts.failed),
    Column("Misses", "", "count", _misses),
)
_FIGURES = (
    Column("Goodput", "tok/s", "tok_s", lambda w: w.goodput_tok_s),
    Column("p99 TTFT", "ms", "ms", lambda w: w.ttft_p99_ms),
    Column("p99 TPOT", "ms", "ms", lambda w: w.tpot_p99_ms),
    Column("Power", "W", "w", window_power_w),
    Column("Energy", "J/token", "j_per_token", window_j_per_token),
)
_SERVER = (
    Column("In the batch", "mean", "mean_count", _said(lambda s: s.running_mean)),
    Column("In the queue", "mean", "mean_count", _said(lambda s: s.waiting_mean)),
    Column("In the queue", "most", "count", _said(lambda s: s.waiting_max)),
    Column("Context memory", "% at most", "pct", _said(lambda s: s.kv_max_pct)),
    Column("Preemptions", "", "count", _said(lambda s: s.preemptions)),
    Column("Cached prompt", "%", "pct", _said(lambda s: s.cached_pct)),
    Column("Its p99 TTFT", "ms at most", "ms", _said(lambda s: _upper(s.ttft_p99_ms))),
    Column("Its p99 TPOT", "ms at most", "ms", _said(lambda s: _upper(s.tpot_p99_ms))),
)
_RATE = Column("Rate", "1/s", "rps", lambda w: w.rate_rps)


def repeats_table(config: Config) -> WindowTable | None:
    """Return the windows at the reported rate with the mean of each column."""
    windows = config.windows
    if not windows:
        return None
    columns = _shown((*_COUNTS, *_FIGURES), windows)
    means = tuple(_mean(column, windows) for column in columns)
    kept = f"{config.slo_pass_count}/{config.repeats}"
    return WindowTable("Repeats", columns, tuple(_rows(columns, windows)), means, kept)


def search_table(config: Config) -> WindowTable | None:
    """Return every other window, in the order they ran."""
    windows = config.sweep
    if not windows:
        return None
    columns = _shown((_RATE, _COUNTS[0], *_FIGURES), windows)
    return WindowTable("Search windows", columns, tuple(_rows(columns, windows)), (), "")


def server_table(config: Config) -> WindowTable | None:
    """Return what the server says of itself in the windows at the reported rate, else in all."""
    windows = [w for w in config.windows or config.sweep or () if w.server]
    if not windows:
        return None
    columns = _shown(_SERVER, windows)
    return WindowTable("The server's own account", columns, tuple(_rows(columns, windows)), (), "")


def preempted(config: Config) -> int:
    """Return how many sequences the server sent back to its queue at the reported rate."""
    return sum(w.server.preemptions or 0 for w in config.windows or () if w.server)


def _shown(columns: Sequence[Column], windows: Sequence[WindowRecord]) -> tuple[Column, ...]:
    """Leave out what no window has."""
    return tuple(c for c in columns if any(c.value(window) is not None for window in windows))


def _rows(columns: Sequence[Column], windows: Sequence[WindowRecord]) -> list[WindowRow]:
    return [
        WindowRow(
            str(number),
            tuple(_number(column.value(window), column.quantity) for column in columns),
            _verdict(window),
            window_within(window) and window.valid,
        )
        for number, window in enumerate(windows, 1)
    ]


def _number(value: float | None, quantity: str) -> Number:
    if value is None:
        return Number(NOT_RECORDED)
    return Number(units.number(value, quantity), units.exact(value))


def _verdict(window: WindowRecord) -> str:
    if not window.valid:
        return f"invalid: {', '.join(window.reasons)}" if window.reasons else "invalid"
    if window.aborted:
        return "outside, given up"
    return "within" if window_within(window) else "outside"


def _mean(column: Column, windows: Sequence[WindowRecord]) -> Number:
    found = repeats(windows, column.value)
    if found is None:
        return Number("")
    half = units.half_width(found.mean, found.half, column.quantity) if found.half else ""
    if column.quantity == "count":
        return Number(units.number(found.mean, "mean_count"), units.exact(found.mean))
    return Number(units.number(found.mean, column.quantity), units.exact(found.mean), half)
