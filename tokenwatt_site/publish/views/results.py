"""The table of results: a row a run, grouped by power scope, best energy per token first."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tokenwatt_site import units
from tokenwatt_site.documents.run import Run
from tokenwatt_site.method import prose
from tokenwatt_site.method.derived import hardware_of, repeats, spec_of, window_j_per_token
from tokenwatt_site.publish.charts.sweep import Marking
from tokenwatt_site.publish.model import Content, RunEntry
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.links import run_address
from tokenwatt_site.publish.views.standing import Tag, is_listed, standing
from tokenwatt_site.publish.views.windows import Number

_ORDER = tuple(words.SCOPES)
_NOTABLE_PCT = 1.0
_FACETS = (
    ("model", "Model"),
    ("hw", "Hardware"),
    ("eng", "Engine"),
    ("prec", "Precision"),
    ("scope", "Power"),
    ("mode", "Kind"),
)


@dataclass(frozen=True, slots=True)
class Stick:
    """The energy of a row as a picture: stem, whisker and dot, in percent of the axis."""

    at: str
    low: str
    high: str
    hollow: bool
    text: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One run."""

    source: Source
    address: str
    name: str
    detail: str
    tags: tuple[Tag, ...]
    cells: tuple[Number, ...]
    """Energy, efficiency, goodput, of one accelerator, power, TTFT, TPOT, throttled, n."""
    throttled: bool
    """Throttled for a notable share of the time."""
    date: str
    stick: Stick | None
    facets: tuple[tuple[str, str], ...]
    short: str
    """The run in a few words, for the end of a line: machine and precision."""
    marking: Marking


@dataclass(frozen=True, slots=True)
class ResultGroup:
    """The runs of one power scope."""

    scope: str
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """A filter with its values and how often each occurs."""

    key: str
    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Results:
    """The whole table."""

    groups: tuple[ResultGroup, ...]
    facets: tuple[Facet, ...]
    axis: float
    """The picture's axis goes from 0 to this, J/token."""

    @property
    def daggers(self) -> bool:
        """Whether a row's energy is divided by goodput alone."""
        rows = [row for group in self.groups for row in group.rows]
        return any(n.half for row in rows for n in row.cells)

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(len(group.rows) for group in self.groups)


def results(content: Content, entries: Sequence[RunEntry]) -> Results:
    """Return the table of ``entries``; superseded and retracted runs are left out."""
    listed = [entry for entry in entries if is_listed(entry.run)]
    sources = [Source.of(entry.run, _baseline(entry.run)) for entry in listed]
    axis = _axis([s.figures.j_per_token for s in sources])
    rows = [_row(source, content, axis) for source in sources]
    rows.sort(key=lambda row: (_j(row) is None, _j(row) or 0, row.source.run.id))
    scopes = sorted({r.source.figures.scope or "" for r in rows}, key=_scope_order)
    groups = tuple(
        ResultGroup(
            words.scope_words(scope or None),
            tuple(r for r in rows if (r.source.figures.scope or "") == scope),
        )
        for scope in scopes
    )
    return Results(groups, _facets(rows), axis)


def _baseline(run: Run) -> int:
    return next((i for i, config in enumerate(run.configs) if config.key == "baseline"), 0)


def _j(row: ResultRow) -> float | None:
    return row.source.figures.j_per_token


def _scope_order(scope: str) -> tuple[int, str]:
    return (_ORDER.index(scope) if scope in _ORDER else len(_ORDER), scope)


def _axis(values: Sequence[float | None]) -> float:
    """Return the smallest of 1, 2, 5 times ten that holds all."""
    most = max((value for value in values if value is not None), default=1.0)
    steps = (m * 10.0**e for e in range(-6, 9) for m in (1, 2, 5))
    return next((step for step in steps if step >= most), most)


def _row(source: Source, content: Content, axis: float) -> ResultRow:
    run, config, f = source.run, source.config, source.figures
    stands = standing(run, content)
    spec, hardware = spec_of(run, config), hardware_of(run, config)
    accelerator = prose.short_accelerator(hardware.accelerator) or "CPU"
    model = (config.model or run.model).name
    engine, precision = words.engine(run, config), words.precision(spec)
    detail = " · ".join(filter(None, [words.machine(run, config), precision, engine]))
    facets = (
        ("model", model),
        ("hw", accelerator),
        ("eng", run.software.engine or "unnamed"),
        ("prec", precision or "not recorded"),
        ("scope", source.scope),
        ("mode", stands.kind),
    )
    quantities = (
        (f.j_per_token, "j_per_token"),
        (f.tok_s_kw, "tok_s_kw"),
        (config.goodput_tok_s, "tok_s"),
        (f.tok_s_per_gpu, "tok_s"),
        (f.power_w / 1000 if f.power_w is not None else None, "kw"),
        (config.ttft_p99_ms, "ms"),
        (config.tpot_p99_ms, "ms"),
        (f.throttle_share_pct, "share_pct"),
        (config.repeats, "count"),
    )
    return ResultRow(
        source,
        run_address(run.id),
        model,
        detail,
        stands.tags,
        tuple(_cells(quantities, over_goodput=f.tokens == "goodput")),
        (f.throttle_share_pct or 0) > _NOTABLE_PCT,
        run.published or (run.started or "")[:10],
        _stick(source, axis, hollow=stands.hollow),
        facets,
        " ".join(filter(None, [words.machine(run, config), precision])),
        stands.marking,
    )


def _cells(
    quantities: Sequence[tuple[float | None, str]], *, over_goodput: bool
) -> Iterator[Number]:
    """Yield the cells; energy that is divided by goodput alone carries a dagger."""
    for value, quantity in quantities:
        cell = _number(value, quantity)
        marked = over_goodput and value is not None and quantity in {"j_per_token", "tok_s_kw"}
        yield replace(cell, half="†") if marked else cell


def _number(value: float | None, quantity: str) -> Number:
    if value is None:
        return Number("not recorded")
    return Number(units.number(value, quantity), units.exact(value))


def _stick(source: Source, axis: float, *, hollow: bool) -> Stick | None:
    value = source.figures.j_per_token
    if value is None:
        return None
    found = repeats(source.config.windows, window_j_per_token)
    half = found.half if found and found.half else 0.0
    plus = f" {units.half_width(value, half, 'j_per_token')}" if half else ""
    text = f"{units.number(value, 'j_per_token')}{plus} J/token, n = {source.config.repeats}"
    low, high = (_place(v, axis) if half else "" for v in (value - half, value + half))
    return Stick(_place(value, axis), low, high, hollow, text)


def _place(value: float, axis: float) -> str:
    return f"{100 * value / axis:.4g}%"


def _facets(rows: Sequence[ResultRow]) -> tuple[Facet, ...]:
    """Return the filters that have something to choose, the commonest value first."""
    facets: list[Facet] = []
    for key, name in _FACETS:
        counts = Counter(dict(row.facets)[key] for row in rows)
        if len(counts) > 1:
            ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            facets.append(Facet(key, name, tuple(ordered)))
    return tuple(facets)
