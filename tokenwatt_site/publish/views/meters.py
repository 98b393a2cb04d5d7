"""Every meter of a run side by side: what each includes and what it says of the same windows."""

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config
from tokenwatt_site.documents.window import Energy
from tokenwatt_site.publish.charts.cells import cell, word
from tokenwatt_site.publish.charts.chart import Cell, Column, Table
from tokenwatt_site.publish.views import words

_COLUMNS = (
    Column("Meter", ""),
    Column("Includes", "", text=True),
    Column("Read", "Hz"),
    Column("Mean power", "W"),
    Column("Energy", "J/token"),
    Column("Idle", "W"),
    Column("Gaps", "of readings"),
    Column("Verdict", "", text=True),
)
_VERDICTS = {"agree": "agrees", "warn": "differs", "disagree": "disagrees"}


def meter_table(config: Config, source: str, hz: float | None) -> Table | None:
    """Return the table of a configuration's meters, None where there is one or none.

    Args:
        config: the configuration.
        source: the primary meter in words.
        hz: how often it was read.
    """
    if config.energy is None or not config.meters:
        return None
    rows = [_row(source, hz, config.energy, _own(config.energy, "primary"))]
    for meter in config.meters:
        verdict = "another scope"
        if meter.verdict is not None and meter.difference_pct is not None:
            off = units.fixed(float(meter.difference_pct), 2, signed=True)
            verdict = f"{_VERDICTS[meter.verdict]} with the primary: {off} %"
        rows.append(
            _row(meter.source, meter.sampling_hz, meter.energy, _own(meter.energy, verdict))
        )
    caption = "Every meter over the same windows; figures of two scopes are never ranked together"
    return Table(caption, _COLUMNS, tuple(rows))


def _own(energy: Energy, verdict: str) -> str:
    return verdict if energy.valid else f"invalid: {', '.join(energy.reasons)}"


def _row(source: str, hz: float | None, energy: Energy, verdict: str) -> tuple[Cell, ...]:
    power_w = energy.joules / energy.seconds if energy.joules is not None else None
    lost = "" if energy.samples is None else f"{energy.gaps or 0:,} / {energy.samples:,}"
    return (
        word(source),
        word(words.scope_words(energy.scope)),
        word(units.significant(hz) if hz else ""),
        cell(power_w, "w"),
        cell(energy.j_per_output_token, "j_per_token"),
        cell(energy.idle_w, "w"),
        word(lost),
        word(verdict),
    )
