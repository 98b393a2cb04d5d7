"""What was asked and what ran: two lists of facts and the engine's arguments."""

from dataclasses import dataclass

from tokenwatt_site import units
from tokenwatt_site.documents.run import Lengths, Realised
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.derived import hardware_of, software_of, spec_of
from tokenwatt_site.publish.charts.chart import Table
from tokenwatt_site.publish.views.bandwidth import bandwidth_table
from tokenwatt_site.publish.views.headline import Source
from tokenwatt_site.publish.views.power import Row


@dataclass(frozen=True, slots=True)
class SetupView:
    """The section on the configuration."""

    ran: tuple[Row, ...]
    asked: tuple[Row, ...]
    kernels: str
    summary: str
    bandwidth: Table | None = None
    """What a decode step reads, where the document says."""


def setup_view(source: Source) -> SetupView:
    """Return the configuration's facts."""
    kernels = software_of(source.run, source.config).kernels
    return SetupView(
        tuple(_ran(source)),
        tuple(_asked(source)),
        kernels,
        source.run.summary.strip(),
        bandwidth_table(source.config),
    )


def _ran(source: Source) -> list[Row]:
    run, config = source.run, source.config
    hardware, software = hardware_of(run, config), software_of(run, config)
    model = config.model or run.model
    accelerator = hardware.accelerator
    if hardware.count:
        accelerator = f"{hardware.count} × {hardware.accelerator}"
    if hardware.rated_bw_tbs_per_gpu:
        accelerator += f", {units.significant(hardware.rated_bw_tbs_per_gpu)} TB/s each"
    rows = [
        Row("Accelerator", accelerator),
        Row("Driver", hardware.driver),
        Row("Host", hardware.host.rstrip(" ,;:-–")),
        Row("Engine", f"{software.engine} {software.engine_version}".strip()),
        Row("Model", ", ".join(filter(None, [model.name, model.shape]))),
        Row("Precision", model.quantization),
        Row("Parallelism", model.parallelism),
    ]
    if config.tokens is not None:
        rows.append(Row("Mean tokens", _tokens(source)))
    if config.mean_concurrency is not None:
        rows.append(
            Row("Mean in flight", units.number(float(config.mean_concurrency), "mean_count"))
        )
    if config.client is not None:
        rows.append(Row("Load generator", _client(source)))
    return rows


def _tokens(source: Source) -> str:
    tokens = source.config.tokens
    if tokens is None:
        return ""
    pairs = (("in", tokens.input), ("out", tokens.output))
    known = [f"{units.fixed(float(v), 0)} {name}" for name, v in pairs if v is not None]
    return ", ".join([*known, *([f"counted from {tokens.source}"] if tokens.source else [])])


def _client(source: Source) -> str:
    client = source.config.client
    if client is None:
        return ""
    parts: list[str] = []
    if client.lag_p99_ms is not None:
        parts.append(f"send lag p99 {units.number(float(client.lag_p99_ms), 'ms')} ms")
    if client.gap_cv is not None:
        parts.append(f"gap CV {units.significant(client.gap_cv, 3)}")
    if client.dispersion is not None:
        parts.append(f"dispersion {units.significant(client.dispersion, 3)}")
    if client.cpu_share is not None:
        parts.append(f"{units.number(100 * client.cpu_share, 'pct')} % CPU")
    return ", ".join(parts)


def _asked(source: Source) -> list[Row]:
    run, spec = source.run, spec_of(source.run, source.config)
    seed = f", seed {spec.workload.seed}" if run.workload.trace else f"seed {spec.workload.seed}"
    rows = [
        Row("Trace", f"{run.workload.trace or ''}{seed}"),
        Row("Input tokens", run.workload.input_tokens),
        Row("Output tokens", run.workload.output_tokens),
        *_drawn(source),
        Row("Arrival", run.workload.arrival),
        Row("Sweep", _sweep(spec)),
        Row("Confirm", _confirm(source, spec)),
    ]
    if spec.accuracy is not None:
        name = run.accuracy.suite if run.accuracy else spec.accuracy.name
        questions = f"{spec.accuracy.limit} questions" if spec.accuracy.limit else "all questions"
        rows.append(Row("Accuracy", f"{name}, {questions}, {spec.accuracy.scorer}"))
    return rows


def _drawn(source: Source) -> list[Row]:
    """Return what was drawn beside what the distributions say, their cut and what is shared."""
    workload, realised = source.run.workload, source.config.realised
    rows: list[Row] = []
    if workload.nominal is not None:
        text = f"{_pair(workload.nominal)} by the workload"
        if realised is not None and realised.n:
            text += f"; {_pair(realised)} drawn, of {realised.n:,} requests"
        rows.append(Row("Mean asked", text))
    if workload.clamp is not None:
        rows.append(Row("Longest", _pair(workload.clamp)))
    if workload.sha256 is not None:
        rows.append(Row("Trace SHA-256", workload.sha256))
    if realised is not None and realised.planned_cached_pct:
        rows.append(Row("Shared prompts", _shared(realised.planned_cached_pct, source)))
    return rows


def _shared(planned_pct: float, source: Source) -> str:
    client = source.config.client
    cached_pct = client.cached_pct if client is not None else None
    planned = f"{units.number(float(planned_pct), 'pct')} % of the prompt tokens by plan"
    if cached_pct is None:
        return f"{planned}; the server doesn’t say what it cached"
    return f"{planned}, {units.number(float(cached_pct), 'pct')} % cached at most"


def _pair(lengths: Lengths | Realised) -> str:
    pairs = (("in", lengths.input_tokens), ("out", lengths.output_tokens))
    return ", ".join(f"{units.fixed(float(v), 0)} {name}" for name, v in pairs if v is not None)


def _sweep(spec: Spec) -> str:
    sweep = spec.sweep
    if sweep.rates:
        return "at " + ", ".join(units.significant(rate) for rate in sweep.rates) + " requests/s"
    start = units.number(float(sweep.start_rps), "rps")
    if sweep.strategy == "adaptive":
        return f"adaptive, {sweep.mode or 'standard'}, from {start} requests/s"
    window = units.duration_text(float(spec.measurement.search_window_s))
    return (
        f"from {start} requests/s, × {units.significant(sweep.growth)}, "
        f"{units.plural(sweep.bisect_steps, 'bisection')} of {window}"
    )


def _confirm(source: Source, spec: Spec) -> str:
    m = spec.measurement
    if spec.sweep.strategy == "adaptive":
        return _confirmed(source)
    window = f"{units.significant(m.window_s)} s"
    return f"{m.repeats} × {window} after {units.significant(m.warmup_s)} s of warm-up"


def _confirmed(source: Source) -> str:
    """Return the confirm windows that an adaptive search came to."""
    windows = source.config.windows
    if not windows:
        return "as the search’s mode says"
    first = windows[0]
    length, warmup = units.significant(first.window_s), units.significant(first.warmup_s)
    return f"{len(windows)} × {length} s after {warmup} s of warm-up, stationary start"
