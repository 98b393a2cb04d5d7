"""The numbers at the top of a run's page, each with unit, interval and scope."""

from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.method.derived import (
    Derived,
    Repeats,
    derived,
    hardware_of,
    repeats,
    window_j_per_token,
    window_tok_s_kw,
)
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.bandwidth import step_words

NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with what belongs to it."""

    key: str
    label: str
    value: units.Text | None
    notes: tuple[str, ...] = ()
    reason: str = ""
    """Why it isn't recorded."""


@dataclass(frozen=True, slots=True)
class Source:
    """A configuration of a document, with what is derived from it."""

    run: Run
    config: Config
    figures: Derived
    index: int = 0

    @classmethod
    def of(cls, run: Run, index: int = 0) -> "Source":
        """Return the configuration at ``index``."""
        config = run.configs[index]
        return cls(run, config, derived(run, config), index)

    def why(self, *keys: str) -> str:
        """Return the reason that the document gives for the first of these keys that lacks one."""
        missing = self.run.missing or {}
        found = [missing.get(f"/configs/{self.index}/{key}") for key in keys]
        return next((each.text for each in found if each is not None), "")

    @property
    def scope(self) -> str:
        """What the meter includes, in words."""
        return words.scope_words(self.figures.scope)


def headline(source: Source) -> tuple[Figure, ...]:
    """Return the headline figures; the first is the one that counts."""
    return (
        _energy(source),
        _goodput(source),
        _efficiency(source),
        _power(source),
        _kept(source),
        _throttled(source),
        _mbu(source),
    )


def interval_note(found: Repeats | None, quantity: str) -> str:
    """Return ``± 35, n = 5``, or the range under three repeats."""
    if found is None:
        return ""
    if found.half is not None:
        return f"{units.half_width(found.mean, found.half, quantity)}, n = {found.n}"
    if found.n > 1:
        return f"{units.span(found.low, found.high, quantity)}, n = {found.n}"
    return "n = 1"


def _text(value: float | None, quantity: str) -> units.Text | None:
    return None if value is None else units.fmt(value, quantity)


def _notes(*notes: str) -> tuple[str, ...]:
    return tuple(note for note in notes if note)


def _stated_band(source: Source) -> str:
    """The band of a document without windows, as its author gave it."""
    band = source.run.variance_band_pct
    if source.config.windows or band is None:
        return ""
    return f"band ± {units.significant(band)} % as stated, n = {source.config.repeats}"


def _energy(source: Source) -> Figure:
    f, config = source.figures, source.config
    interval = interval_note(repeats(config.windows, window_j_per_token), "j_per_token")
    gain = (config.energy.uncertainty or {}).get("gain_pct") if config.energy else None
    meter = f" · meter ± {units.significant(gain)} %" if gain else ""
    first = " · ".join(filter(None, [source.scope, (interval + meter) or _stated_band(source)]))
    notes = [first if f.j_per_token is not None else ""]
    if f.tokens == "goodput" and f.j_per_token is not None:
        notes.append("over the tokens within the SLO, the only ones in the document")
    if f.j_per_total_token is not None:
        both = units.number(f.j_per_total_token, "j_per_total_token")
        notes.append(f"{both} J per token of input and output together")
    if f.j_per_request is not None:
        notes.append(f"{units.number(f.j_per_request, 'j_per_request')} J per request")
    reason = source.why("node_power_kw", "goodput_tok_s")
    value = _text(f.j_per_token, "j_per_token")
    return Figure("j_per_token", "Energy per output token", value, _notes(*notes), reason)


def _goodput(source: Source) -> Figure:
    config, band = source.config, source.run.variance_band_pct
    note = interval_note(repeats(config.windows, lambda w: w.goodput_tok_s), "tok_s")
    if not note and config.goodput_tok_s is not None and band is not None:
        half = config.goodput_tok_s * band / 100
        note = f"{units.half_width(config.goodput_tok_s, half, 'tok_s')}, n = {config.repeats}"
    rate = f"{units.number(config.rate_rps, 'rps')} requests/s" if config.rate_rps else ""
    joined = " · ".join(filter(None, [note, rate])) if config.goodput_tok_s is not None else ""
    return Figure(
        "goodput_tok_s",
        "Goodput within the SLO",
        _text(config.goodput_tok_s, "tok_s"),
        _notes(joined),
        source.why("goodput_tok_s"),
    )


def _efficiency(source: Source) -> Figure:
    f = source.figures
    tokens = "output tokens" if f.tokens == "output" else "goodput"
    note = interval_note(repeats(source.config.windows, window_tok_s_kw), "tok_s_kw")
    if not note and f.j_per_token:
        note = f"1,000 ÷ {units.number(f.j_per_token, 'j_per_token')}"
    return Figure(
        "tok_s_kw",
        f"{tokens.capitalize()} per kilowatt",
        _text(f.tok_s_kw, "tok_s_kw"),
        _notes(f"{source.scope} · {note}") if f.tok_s_kw is not None else (),
        source.why("node_power_kw", "goodput_tok_s"),
    )


def _power(source: Source) -> Figure:
    f = source.figures
    count = hardware_of(source.run, source.config).count
    reason = source.why("node_power_kw")
    if f.w_per_gpu is None or f.scope not in {"board", "module", "shared_board"}:
        note = source.scope if f.power_w is not None else ""
        return Figure("power_w", "Mean power", _text(f.power_w, "w"), _notes(note), reason)
    whole = f"{units.number(f.power_w or 0, 'w')} W for {units.count_word(count)}"
    return Figure(
        "w_per_gpu",
        "Power of an accelerator",
        _text(f.w_per_gpu, "w"),
        (f"{whole} {'board' if count == 1 else 'boards'}",),
        reason,
    )


def _kept(source: Source) -> Figure:
    config, verdict = source.config, source.run.verdict
    value = units.Text(f"{config.slo_pass_count}/{config.repeats}", "", "")
    note = "p99 TTFT and p99 TPOT"
    if config.slo_attainment_pct is not None:
        misses = 100 - config.slo_attainment_pct
        note = f"{units.number(misses, 'share_pct')} % of requests missed a limit"
    word = f"{verdict.word}: {note}" if verdict and verdict.word in {"met", "proven"} else note
    if not config.repeats:
        return Figure(
            "slo_pass_count", "Windows within the SLO", None, (), source.why("goodput_tok_s")
        )
    return Figure("slo_pass_count", "Windows within the SLO", value, (word,))


def _throttled(source: Source) -> Figure:
    f, config = source.figures, source.config
    notes: list[str] = []
    if config.throttle_counts:
        notes.append(words.throttle_words(config))
    if f.throttle_samples is not None:
        hit, total = f.throttle_samples
        notes.append(f"{hit:,} of {total:,} device-samples")
    elif f.throttle_share_pct == 0:
        notes.append("no reason reported")
    reason = source.why("throttle_share_pct", "throttle_counts", "node_power_kw")
    value = _text(f.throttle_share_pct, "share_pct")
    return Figure("throttle_share_pct", "Time throttled", value, _notes(", ".join(notes)), reason)


def _mbu(source: Source) -> Figure:
    hardware = hardware_of(source.run, source.config)
    value = _text(source.config.mbu_pct, "pct")
    rated = hardware.rated_bw_tbs_per_gpu
    of = f", of {hardware.count} × {units.significant(rated)} TB/s" if rated else ""
    report = source.config.mbu
    said = f"MBU, {step_words(report)}" if report else "MBU as stated"
    notes = (f"{said}{of}",) if value is not None else ()
    return Figure("mbu_pct", "Memory bandwidth used", value, notes, source.why("mbu_pct"))
