"""What a decode step reads: the terms that memory bandwidth utilisation was made of."""

from tokenwatt_site import units
from tokenwatt_site.documents.mbu import MbuReport
from tokenwatt_site.documents.run import Config
from tokenwatt_site.publish.charts.cells import word
from tokenwatt_site.publish.charts.chart import Cell, Column, Table

_GB = 1e9
_COLUMNS = (
    Column("Read in a step", ""),
    Column("Data type", "", text=True),
    Column("How many", "", text=True),
    Column("Bytes", "GB"),
)


def bandwidth_table(config: Config) -> Table | None:
    """Return the terms of a configuration's bandwidth utilisation, None where it holds none."""
    report = config.mbu
    if report is None:
        return None
    rows = [
        (
            word(term.name),
            word(term.dtype),
            word(term.formula),
            _gigabytes(float(term.bytes)),
        )
        for term in report.terms
    ]
    total = float(report.weight_bytes + report.kv_bytes)
    rows.append((word("Bytes per step"), word(""), word(step_words(report)), _gigabytes(total)))
    caption = f"Terms of memory bandwidth utilisation, formula {report.formula}"
    return Table(caption, _COLUMNS, tuple(rows))


def _gigabytes(count: float) -> Cell:
    return Cell(units.fixed(count / _GB, 3), units.exact(count / _GB))


def step_words(report: MbuReport) -> str:
    """Return ``batch 32.0, context 2,154 tokens, 136 experts a layer``."""
    parts = [
        f"batch {units.number(float(report.batch), 'mean_count')}",
        f"context {units.fixed(float(report.ctx_tokens), 0)} tokens",
    ]
    if report.distinct_experts is not None:
        experts = units.number(float(report.distinct_experts), "mean_count")
        parts.append(f"{experts} experts a layer")
    return ", ".join(parts)
