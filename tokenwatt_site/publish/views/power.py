"""Power and energy of a run: throttling, what the meter sees, what checks it."""

from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config
from tokenwatt_site.documents.window import Energy
from tokenwatt_site.method.derived import hardware_of, power_of
from tokenwatt_site.publish.charts.chart import Table
from tokenwatt_site.publish.views import words
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.meters import meter_table
from tokenwatt_site.publish.views.slo import Bar

_NOTABLE_PCT = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a list of facts; without a value it reads *not recorded*, with the reason."""

    name: str
    value: str = ""
    note: str = ""
    code: bool = False


@dataclass(frozen=True, slots=True)
class PowerView:
    """The section on power and energy."""

    title: str
    text: str
    bars: tuple[Bar, ...]
    rows: tuple[Row, ...]
    meters: Table | None = None
    """All meters, where there are several."""


def power_view(source: Source) -> PowerView:
    """Return what the document says of power, throttling and the meter."""
    share = source.figures.throttle_share_pct
    bars = (_throttle_bar(source.config, share),) if share is not None else ()
    power = power_of(source.run, source.config)
    meters = meter_table(source.config, power.source, power.sampling_hz)
    return PowerView(_title(source), _text(source), bars, tuple(_rows(source)), meters)


def _title(source: Source) -> str:
    f = source.figures
    share, reasons = f.throttle_share_pct, words.throttle_words(source.config)
    if f.power_w is None:
        searched = any(window.energy for window in source.config.sweep or ())
        return "Power and energy of the search" if searched else "Power and energy: not measured"
    if share is not None and share > _NOTABLE_PCT:
        return f"Throttled for {units.number(share, 'share_pct')} % of the time: {reasons}"
    power = f"{units.number(f.power_w, 'w')} W"
    if f.j_per_token:
        power = f"{units.number(f.j_per_token, 'j_per_token')} J a token at {power}"
    return power + (", never throttled" if share == 0 else "")


def _text(source: Source) -> str:
    f, config = source.figures, source.config
    parts: list[str] = []
    if f.throttle_samples is not None:
        hit, total = f.throttle_samples
        hz = power_of(source.run, config).sampling_hz
        count = hardware_of(source.run, config).count
        rate = f"{count} devices sampled at {units.significant(hz)} Hz" if hz else "device-samples"
        codes = ", ".join(sorted(config.throttle_counts))
        parts.append(
            f"The driver reported {codes} in {hit:,} of {total:,} device-samples ({rate}). "
            "A node with a higher limit may be faster; this one was at its limit."
        )
    if config.energy is not None and config.energy.check is not None:
        check = config.energy.check
        verdict = {"agree": "agree", "warn": "differ", "disagree": "disagree"}[check.verdict]
        difference = units.number(abs(check.difference_pct), "pct")
        pair = "Counter and samples" if config.energy.method == "counter" else "Two readings"
        parts.append(f"{pair} {verdict}: {difference} % apart.")
    if config.energy is not None and not config.energy.valid:
        parts.append(f"The meter’s reading is invalid: {', '.join(config.energy.reasons)}.")
    return " ".join(parts)


def _throttle_bar(config: Config, share: float) -> Bar:
    shown = f"{units.number(share, 'share_pct')} %"
    reasons = words.throttle_words(config) or "no reason reported"
    text = f"{shown} of device-time throttled: {reasons}"
    return Bar("Time throttled", shown, text, reasons, 2, share)


def _rows(source: Source) -> list[Row]:
    run, config, f = source.run, source.config, source.figures
    power, energy = power_of(run, config), config.energy
    limit_w = config.power_limit_w or hardware_of(run, config).power_limit_w
    hz = f"{units.significant(power.sampling_hz)} Hz" if power.sampling_hz else ""
    rows = [
        Row("Scope", source.scope, _scope_note(source)),
        Row("Source", power.source if power.source != "none" else "no meter"),
        Row("Sampling", ", ".join(filter(None, [hz, power.window if f.power_w else ""]))),
        Row("Mean power", _w(f.power_w), source.why("node_power_kw")),
        Row("Power limit", f"{units.significant(limit_w)} W each" if limit_w else ""),
        Row("Idle power", _w(energy.idle_w if energy else None), _idle_note(energy)),
    ]
    if energy is not None:
        rows += _energy_rows(energy)
    return rows


def _w(value: float | None) -> str:
    return "" if value is None else f"{units.number(value, 'w')} W"


def _idle_note(energy: Energy | None) -> str:
    """Say how idle power was read, and whether it moved."""
    if energy is None or energy.idle_s is None:
        return ""
    note = f"{units.duration_text(energy.idle_s)} without load"
    if energy.idle_drift_w is not None:
        drift = units.fixed(float(energy.idle_drift_w), 0, signed=True)
        return f"{note}, before and after: {drift} W between them"
    return note


def _scope_note(source: Source) -> str:
    """The seed's key is named after a node whatever the meter includes."""
    stated = source.config.energy is not None or source.figures.power_w is None
    return "" if stated else "the document names it node_power_kw"


def _energy_rows(energy: Energy) -> list[Row]:
    how = {"counter": "energy counter", "sampled": "integrated samples"}[energy.method]
    rows = [Row("Method", how)]
    if energy.joules is not None:
        shown = f"{units.number(energy.joules, 'j')} J in {units.duration_text(energy.seconds)}"
        rows.append(Row("Energy", shown))
    if energy.net_j_per_output_token is not None:
        net = units.number(energy.net_j_per_output_token, "j_per_token")
        rows.append(Row("Above idle", f"{net} J/token", "ranked is the gross figure"))
    if energy.samples is not None:
        gaps = f", {energy.gaps:,} gaps" if energy.gaps else ", no gaps" if energy.gaps == 0 else ""
        rows.append(Row("Samples", f"{energy.samples:,}{gaps}"))
    if energy.check is not None:
        off = units.fixed(float(energy.check.difference_pct), 2, signed=True)
        rows.append(
            Row("Second reading", f"{energy.check.method}: {off} %, {energy.check.verdict}")
        )
    if energy.node_minus_boards_w is not None:
        rows.append(Row("Node minus boards", _w(float(energy.node_minus_boards_w))))
    rows += _host_rows(energy)
    if energy.uncertainty:
        parts = [
            f"{name.removesuffix('_pct')} ± {units.number(float(value), 'pct')} %"
            for name, value in sorted(energy.uncertainty.items())
        ]
        rows.append(Row("Uncertainty of J/token", ", ".join(parts)))
    return rows


def _host_rows(energy: Energy) -> list[Row]:
    """Return one row a host, with how well its clock is known, and one a role."""
    rows: list[Row] = []
    for host in energy.hosts or ():
        note = host.role
        if host.clock_error_ms is not None:
            clock = f"its times are right within {units.significant(host.clock_error_ms, 2)} ms"
            note = ", ".join(filter(None, [note, clock]))
        power_w = None if host.joules is None else host.joules / energy.seconds
        rows.append(Row(f"Host {host.name}", _w(power_w), note))
    for role, joules in sorted((energy.roles or {}).items()):
        rows.append(Row(f"All of {role}", _w(joules / energy.seconds)))
    return rows
