"""The sentences, provenance and downloads of a run's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from tokenwatt_site import units
from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.documents.window import Dist
from tokenwatt_site.method.derived import spec_of
from tokenwatt_site.publish.charts.load import Load
from tokenwatt_site.publish.model import RunEntry, ShownFinding
from tokenwatt_site.publish.views.headline import NOT_RECORDED
from tokenwatt_site.publish.views.power import Row
from tokenwatt_site.publish.views.windows import Number

CSV_NAME = "figures.csv"


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """A latency and its percentiles."""

    name: str
    cells: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Download:
    """A file beside the page; without an address it isn't published."""

    name: str
    size: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class RunTexts:
    """What stands between the numbers."""

    sweep_title: str
    sweep: str
    latency: str
    windows: str
    checks: str


def run_texts(run: Run, config: Config, load: Load, findings: Sequence[ShownFinding]) -> RunTexts:
    """Return the sentences of the page's sections."""
    return RunTexts(
        sweep_title(load),
        _sweep(run, config, load),
        _latency(config),
        _windows(config),
        _checks(findings),
    )


def sweep_title(load: Load) -> str:
    """Return where the boundary lies, as far as it was found."""
    if load.at_rps is None:
        passed = any(point.passed for point in load.points)
        return "No rate is confirmed" if passed else "No rate kept the limits"
    at = units.number(load.at_rps, "rps")
    if load.is_boundary and load.estimate_rps is not None:
        est = units.number(load.estimate_rps, "rps")
        return f"The limit lies near {est} requests/s; {at} is confirmed"
    if not load.is_boundary:
        return f"Rates around {at} requests/s"
    if load.fails_at_rps is None:
        return f"{at} requests/s kept the limits, and no higher rate was seen to fail"
    fails = units.number(load.fails_at_rps, "rps")
    return f"The limit lies between {at} and {fails} requests/s"


def _sweep(run: Run, config: Config, load: Load) -> str:
    sweep = spec_of(run, config).sweep
    how = "Measured at given rates."
    start = units.number(float(sweep.start_rps), "rps")
    grey = " Grey: the interval that holds the boundary." if load.fails_at_rps else ""
    if sweep.strategy == "adaptive":
        how = f"Short rungs from {start} requests/s, then windows near the boundary."
        grey = " Dashed: the boundary by the twin." if load.estimate_rps is not None else ""
        grey += " Grey: its 95 % interval." if load.interval_rps is not None else ""
    elif sweep.rates is None:
        how = (
            f"Rate × {units.significant(sweep.growth)} from {start} requests/s until the "
            f"first failure, then {units.plural(sweep.bisect_steps, 'bisection')}."
        )
    censored = any(p.ttft_p99_ms is None or p.tpot_p99_ms is None for p in load.points)
    missing = " Rates whose p99 has no bound stand in the table only." if censored else ""
    return how + grey + missing


def _latency(config: Config) -> str:
    sent = config.counts.sent if config.counts else None
    rate = f"{units.number(config.rate_rps, 'rps')} requests/s" if config.rate_rps else "this rate"
    windows = f"{units.count_word(config.repeats)} window{'' if config.repeats == 1 else 's'}"
    if sent is None:
        return f"Requests of {windows} at {rate}."
    text = f"All {sent:,} requests of {windows} at {rate}."
    failed = config.counts.failed + config.counts.unfinished if config.counts else 0
    if not failed:
        return f"{text} No request failed."
    count = "it counts as a miss" if failed == 1 else "they count as misses"
    return f"{text} {failed:,} failed or didn’t end in time; {count}."


def _windows(config: Config) -> str:
    windows = config.windows or []
    if not windows or config.rate_rps is None:
        return "No window at a confirmed rate."
    lengths = sorted({float(w.window_s) for w in windows})
    span = f"{units.significant(lengths[0])}"
    if len(lengths) > 1:
        span += f" to {units.significant(lengths[-1])}"
    number = units.count_word(len(windows)).capitalize()
    plural = "" if len(windows) == 1 else "s"
    rate = units.number(config.rate_rps, "rps")
    t = " Intervals are 95 %, Student’s t." if len(windows) > 2 else ""  # noqa: PLR2004
    return (
        f"{number} confirming window{plural} of {span} s at {rate} requests/s, each with fresh "
        f"prompts.{t}"
    )


def _checks(findings: Sequence[ShownFinding]) -> str:
    errors = [f for f in findings if f.severity == "error"]
    warnings = len(findings) - len(errors)
    waived = sum(f.waiver is not None for f in errors)
    if not findings:
        return "No errors and no warnings."
    parts: list[str] = []
    if errors:
        named = ", each waived by name" if waived == len(errors) else f", {waived} waived by name"
        parts.append(units.plural(len(errors), "error") + (named if waived else ""))
    else:
        parts.append("No errors")
    parts.append(units.plural(warnings, "warning") if warnings else "no warnings")
    return ", and ".join(parts) + "."


def percentiles(config: Config) -> tuple[PercentileRow, ...]:
    """Return the percentiles of every latency that the document carries."""
    named = (
        ("Time to first token", config.ttft_ms),
        ("Time per output token", config.tpot_ms),
        ("Gap between tokens", config.itl_ms),
        ("Whole request", config.e2e_ms),
    )
    return tuple(_percentile_row(name, dist) for name, dist in named if dist is not None)


def _percentile_row(name: str, dist: Dist) -> PercentileRow:
    cells = [_ms(value) for value in (dist.p50, dist.p90, dist.p95)]
    cells.append(_p99(dist))
    cells.append(_ms(dist.mean))
    span = "–"
    if dist.interval:
        span = units.span(float(dist.interval[0]), float(dist.interval[-1]), "ms")
    return PercentileRow(name, (*cells, Number(span), Number(f"{dist.n:,}", str(dist.n))))


def _ms(value: float | None) -> Number:
    if value is None:
        return Number(NOT_RECORDED)
    return Number(units.number(value, "ms"), units.exact(value))


def _p99(dist: Dist) -> Number:
    if dist.p99 is None and dist.censored_over is not None:
        return Number(f"> {units.number(dist.censored_over, 'ms')}")
    return _ms(dist.p99)


def provenance(entry: RunEntry) -> tuple[Row, ...]:
    """Return what ties the page to its document, its tool and its evidence."""
    run = entry.run
    tool = f"{run.tool.name} {run.tool.version}" if run.tool else ""
    rows = [
        Row("Document", f"sha256 {entry.sha256}", code=True),
        Row("Specification", f"sha256 {entry.spec_sha256}", code=True),
        Row("Tool", tool),
        Row("Method version", run.method_version or ""),
        Row("Run", run.run_id or ""),
        Row("Start and end", _times(run)),
        Row("Evidence", _evidence(entry)),
    ]
    rows += [
        Row(f"Source of {config.key}", f"sha256 {config.source_sha256}", code=True)
        for config in run.configs
        if config.source_sha256
    ]
    return tuple(rows)


def _times(run: Run) -> str:
    if not run.started:
        return ""
    start = f"{run.started[:10]} {run.started[11:19]} UTC"
    times = f"{start} to {run.finished[:10]} {run.finished[11:19]} UTC" if run.finished else start
    resumed = units.plural(len(run.resumed or ()), "interruption")
    return f"{times}, gone on with after {resumed}" if run.resumed else times


def _evidence(entry: RunEntry) -> str:
    if entry.evidence:
        return f"{units.plural(len(entry.evidence), 'file')}, held against their sha256"
    return "not published: figures can’t be recomputed"


def downloads(entry: RunEntry, csv_bytes: int) -> tuple[Download, ...]:
    """Return the files beside the page."""
    spec_size = units.bytes_text(len(entry.spec_yaml.encode()))
    files = [
        Download("Run document, JSON", units.bytes_text(len(entry.raw)), f"{entry.run.id}.json"),
        Download("Figures, CSV", units.bytes_text(csv_bytes), CSV_NAME),
        Download("Specification, YAML", spec_size, spec_file(entry)),
    ]
    files += [
        Download(f"Evidence: {e.name}", units.bytes_text(e.size_bytes), f"evidence/{quote(e.name)}")
        for e in entry.evidence
    ]
    if not entry.evidence:
        files.append(Download("Evidence (requests, power samples)", "not published"))
    return tuple(files)


def spec_file(entry: RunEntry) -> str:
    """Return the name of the spec's file beside the page."""
    return f"{entry.run.id}.spec.yaml"
