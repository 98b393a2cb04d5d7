"""The figures of a document as CSV: exact values, units, intervals, one line a figure."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.window import WindowRecord
from tokenwatt_site.method.derived import (
    Repeats,
    repeats,
    window_j_per_token,
    window_power_w,
    window_tok_s_kw,
)
from tokenwatt_site.publish.charts.explore import guarded
from tokenwatt_site.publish.views.headline import Source

Value = Callable[[WindowRecord], float | None]
HEAD = ("config", "quantity", "value", "unit", "half_width_95", "n", "scope")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure."""

    quantity: str
    value: float | None
    unit: str
    found: Repeats | None = None
    scope: str = ""


def figures_csv(run: Run) -> bytes:
    """Return the figures of all configurations; what is missing has an empty value."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for index, config in enumerate(run.configs):
        for line in _lines(Source.of(run, index)):
            half = units.exact(line.found.half) if line.found else ""
            n = str(line.found.n if line.found else config.repeats)
            row = [config.key, line.quantity, units.exact(line.value), line.unit, half, n]
            writer.writerow([guarded(text) for text in [*row, line.scope]])
    return out.getvalue().encode()


def _lines(source: Source) -> Iterator[Line]:
    config, f = source.config, source.figures
    scope = f.scope or ""

    def over(value: Value) -> Repeats | None:
        return repeats(config.windows, value)

    yield Line("j_per_output_token", f.j_per_token, "J/token", over(window_j_per_token), scope)
    yield Line("tok_s_per_kw", f.tok_s_kw, "tok/s/kW", over(window_tok_s_kw), scope)
    yield Line("power", f.power_w, "W", over(window_power_w), scope)
    yield Line("j_per_total_token", f.j_per_total_token, "J/token", scope=scope)
    yield Line("j_per_request", f.j_per_request, "J", scope=scope)
    yield Line("energy_per_million_tokens", f.kwh_mtok, "kWh/Mtok", scope=scope)
    yield Line("goodput", config.goodput_tok_s, "tok/s", over(lambda w: w.goodput_tok_s))
    yield Line("output", config.output_tok_s, "tok/s", over(lambda w: w.output_tok_s))
    yield Line("input", config.input_tok_s, "tok/s", over(lambda w: w.input_tok_s))
    yield Line("rate", config.rate_rps, "requests/s")
    yield Line("ttft_p99", config.ttft_p99_ms, "ms", over(lambda w: w.ttft_p99_ms))
    yield Line("tpot_p99", config.tpot_p99_ms, "ms", over(lambda w: w.tpot_p99_ms))
    yield Line("windows_within_slo", config.slo_pass_count, "")
    yield Line("slo_attainment", config.slo_attainment_pct, "%")
    yield Line("throttled", f.throttle_share_pct, "%")
    yield Line("mbu", config.mbu_pct, "%")
    yield Line("accuracy", config.accuracy.score if config.accuracy else None, "%")
