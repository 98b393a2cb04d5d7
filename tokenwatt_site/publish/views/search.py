"""How an adaptive search found the boundary, and how far its answer can be trusted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import BalancedSchedule, Config, Run, Search, TwinModel
from tokenwatt_site.publish.views.power import Row

MEANINGS = {
    "proven": "the misses that were counted are at most 1 %, and the boundary, less its error, "
    "lies above the rate",
    "met": "the misses that were counted are at most 1 %; that the boundary lies above the rate is "
    "likely, and not proven",
    "failed": "the rate was measured, and more than 1 % missed a limit",
    "undecided": "the windows that were measured don’t decide it",
    "no_rate": "no rate was found that keeps the limits",
}


@dataclass(frozen=True, slots=True)
class SearchView:
    """The section on the search."""

    title: str
    text: str
    rows: tuple[Row, ...]
    model: tuple[Row, ...]
    """What the twin is made of; empty where none was fitted."""


def search_view(run: Run, config: Config) -> SearchView | None:
    """Return what an adaptive search says of itself; None for a ladder."""
    search = run.search
    if search is None or search.strategy != "adaptive" or len(run.configs) > 1:
        return None
    return SearchView(
        _title(run, search),
        _meaning(run),
        tuple(row for row in _rows(search, config) if row.value),
        tuple(_model(search.model)) if search.model is not None else (),
    )


def _title(run: Run, search: Search) -> str:
    word = run.verdict.word.replace("_", " ") if run.verdict is not None else ""
    noise = _noise(search)
    return f"Search: {word}, {noise}" if noise else f"Search: {word}"


def _meaning(run: Run) -> str:
    if run.verdict is None:
        return ""
    said = run.verdict.text.strip().rstrip(".")
    meaning = f"{run.verdict.word.replace('_', ' ').capitalize()}: {MEANINGS[run.verdict.word]}."
    return f"{meaning} {said[:1].upper()}{said[1:]}." if said else meaning


def _noise(search: Search) -> str:
    """Return what the server's noise leaves unknown of the boundary: half its interval."""
    if search.interval_rps is None or not search.est_rps:
        return ""
    low, high = search.interval_rps
    half = 100 * (high - low) / 2 / search.est_rps
    return f"server noise limits this run to ±{units.NBSP}{units.number(half, 'pct')} %"


def _rows(search: Search, config: Config) -> list[Row]:
    return [
        Row("Reported rate", _reported(search, config)),
        Row("Boundary by the twin", _estimate(search)),
        Row("Mode", _mode(search)),
        Row("Windows", _windows(config)),
        Row("Rates tried in full windows", _tried(search)),
        Row("Drift", "the server’s speed changed while it was measured" if search.drift else ""),
        Row("Twin", search.twin or "", search.twin_reason or ""),
        Row("Correlation with the server", _value(search.corr, 2), "blocks of 30 s"),
        Row("Speed factor κ", _value(search.kappa, 3)),
        Row(
            "Unexplained",
            f"{_value(search.resid_se_pct, 2)} % of the latency" if search.resid_se_pct else "",
        ),
        Row("Balanced schedules", _balanced(search.balanced or ())),
    ]


def _reported(search: Search, config: Config) -> str:
    if config.rate_rps is None:
        return ""
    text = f"{units.number(config.rate_rps, 'rps')} requests/s"
    if not search.est_rps:
        return text
    below = 100 * (1 - config.rate_rps / search.est_rps)
    where = f"{units.number(abs(below), 'pct')} % {'below' if below >= 0 else 'above'}"
    return f"{text}, {where} the boundary by the twin"


def _estimate(search: Search) -> str:
    if search.est_rps is None:
        return ""
    text = f"{units.number(search.est_rps, 'rps')} requests/s"
    if search.interval_rps is not None:
        low, high = search.interval_rps
        text += f", 95 % interval {units.span(low, high, 'rps')}"
    bound = {"ttft": "TTFT", "tpot": "TPOT"}.get(search.bound_by or "")
    return f"{text}; {bound} sets it" if bound else text


def _mode(search: Search) -> str:
    text = search.mode or ""
    if search.overrides:
        text += f"; of its own: {', '.join(search.overrides)}"
    return text


def _windows(config: Config) -> str:
    every = [*(config.sweep or ()), *(config.windows or ())]
    phases = Counter(window.phase for window in every)
    parts = [units.plural(phases["search"], "search window")] if phases["search"] else []
    parts += [units.plural(phases["confirm"], "confirm window")] if phases["confirm"] else []
    given_up = sum(window.aborted for window in every)
    unsteady = sum(window.stationary is False for window in every)
    parts += [f"{given_up} given up early"] if given_up else []
    parts += [f"{unsteady} not steady"] if unsteady else []
    return ", ".join(parts)


def _tried(search: Search) -> str:
    if not search.candidates:
        return ""
    parts = [str(search.candidates)]
    for count, why in ((search.climbs, "for a higher rate"), (search.restarts, "for drift")):
        if count:
            parts.append(f"{count} given up {why}")
    return ", ".join(parts)


def _balanced(chosen: Sequence[BalancedSchedule]) -> str:
    if not chosen:
        return ""
    each = ", ".join(f"{one.taken + 1} for window {one.index}" for one in chosen)
    last = chosen[-1]
    share, long = (100 * float(part[-1]) for part in (last.shares, last.long_run))
    return (
        f"of {chosen[0].drawn} random ones, number {each}; the last misses "
        f"{units.number(share, 'share_pct')} % on the twin, the long run "
        f"{units.number(long, 'share_pct')} %"
    )


def _value(value: float | None, digits: int) -> str:
    return "" if value is None else units.fixed(float(value), digits)


def _model(model: TwinModel) -> list[Row]:
    limit = "none seen" if model.max_sequences is None else f"{model.max_sequences:,}"
    return [
        Row("A step", _ms(model.fixed_s)),
        Row("Each sequence that decodes", _ms(model.sequence_s)),
        Row("√ of their number", _ms(model.root_s)),
        Row("A step with prompts in it", _ms(model.prefill_s)),
        Row("Each prompt token", _ms(model.token_s)),
        Row("Each prompt token squared, half", _ms(model.square_s)),
        Row("Tokens of a step", f"{model.budget_tokens:,} at most"),
        Row("Sequences at once", limit),
    ]


def _ms(seconds: float) -> str:
    return f"{units.significant(1000 * float(seconds), 3)} ms"
