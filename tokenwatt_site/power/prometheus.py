"""Power and energy that a Prometheus server has scraped: DCGM's GPUs, or any query."""

from collections.abc import Mapping, Sequence

from tokenwatt_site.documents.spec import Scope, SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.meters import rate_hz
from tokenwatt_site.power.prometheus_api import Answer, PrometheusApi
from tokenwatt_site.power.prometheus_gpus import ENERGY, POWER, gpus_under_test
from tokenwatt_site.power.prometheus_meter import PrometheusMeter
from tokenwatt_site.power.prometheus_query import (
    Labels,
    Part,
    is_selector,
    labels_of,
    scrape_interval_s,
)
from tokenwatt_site.power.reading import Quantity, asked_for
from tokenwatt_site.power.web import UnansweredError

MOST_SERIES = 64
GPU_GAIN_PCT = 5.0
"""DCGM reads what NVML tells. Yang et al., "Part-time Power Measurements" (SC24)."""
_LONGEST_NAME = 100
_DCGM: dict[str, tuple[Quantity, float]] = {ENERGY: ("energy", 1e-3), POWER: ("power", 1.0)}
_WORDS = {"energy": "energy counter", "power": "power"}
_HINTS = {
    "timeout": "look whether the server is overloaded; ask it the query by hand",
    "unreachable": "check power.url, and power.verify_tls for a self-signed certificate",
    "unauthorized": "check power.username and the variable that power.password_env names",
    "redirected": "set power.url to where the server is; redirects are not followed",
    "bad_answer": "check that power.url is a Prometheus server's, and power.query its PromQL",
}


def open_prometheus(
    power: SpecPower, *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> PrometheusMeter:
    """Open the GPUs under test by DCGM's metrics, or the series of ``power.query``.

    Raises:
        RefusedError: the server, the metric or the right to ask isn't there.
        UsageError: the spec lacks what is needed, or the GPUs asked for aren't there.
    """
    del simulator_url
    api = PrometheusApi(power)
    try:
        if power.query is None:
            return _opened(api, power, *_gpus(api, power, gpus, count))
        return _opened(api, power, *_query(api, power))
    except UnansweredError as error:
        api.close()
        words = f": {error.words}" if error.words else ""
        raise RefusedError(
            f"power.source: prometheus: the server can't be asked ({error.code}{words})",
            _HINTS.get(error.code, "check power.url"),
        ) from None
    except BaseException:
        api.close()
        raise


def _opened(
    api: PrometheusApi,
    power: SpecPower,
    parts: Sequence[Part],
    devices: Mapping[str, Labels],
    scope: Scope,
) -> PrometheusMeter:
    interval_s = None if parts[0].selector is None else scrape_interval_s(api, parts[0].selector)
    hz = rate_hz(power)
    if interval_s is not None and interval_s * hz > 1.05:  # noqa: PLR2004 - scrapes aren't exact
        raise UsageError(
            f"power.sampling_hz: the server scrapes every {interval_s:.3g} s, which is too seldom "
            f"for {hz:g} readings a second",
            f"set power.sampling_hz: {0.9 / interval_s:.2g}, or scrape more often",
        )
    what = " and ".join(_WORDS[part.quantity] for part in parts)
    every = f"scraped every {interval_s:.3g} s" if interval_s else "at the times of its scrapes"
    if parts[0].selector is None:
        every = "age of a value unknown"
    source = f"Prometheus ({what} of {len(devices)} series of a query, {every})"
    if power.query is None:
        source = f"GPU {scope.replace('_', ' ')} power sum (DCGM by Prometheus: {what}, {every})"
    gain_pct = GPU_GAIN_PCT if power.query is None else None
    meter = PrometheusMeter(api, parts, devices, (source, scope, gain_pct), hz)
    meter.see_time()
    bad = next((s for s in meter.read() if s.power_w is None and s.energy_j is None), None)
    if bad is not None:
        raise RefusedError(
            f"power.source: prometheus: {bad.device} can't be read ({bad.error})",
            "look at the query's answer and at the server's page of targets: each must be up",
        )
    return meter


def _gpus(
    api: PrometheusApi, power: SpecPower, gpus: Sequence[int | str] | None, count: int
) -> tuple[list[Part], dict[str, Labels], Scope]:
    """Return DCGM's parts: one GPU once, whatever exporters and MIG instances repeat it."""
    uuids, metrics = gpus_under_test(api, power, gpus, count)
    parts: list[Part] = []
    for metric in sorted(metrics, key=[ENERGY, POWER].index):
        quantity, factor = _DCGM[metric]
        selector = f'{metric}{{UUID=~"{"|".join(uuids)}"}}'
        value, stamp = (
            f"max by (UUID) ({inner})" for inner in (selector, f"timestamp({selector})")
        )
        parts.append(Part(quantity, factor, value, stamp, selector))
    devices = {uuid: frozenset({("UUID", uuid)}) for uuid in uuids}
    return parts, devices, power.scope or "board"


def _query(api: PrometheusApi, power: SpecPower) -> tuple[list[Part], dict[str, Labels], Scope]:
    quantity, factor = asked_for(power)
    query = (power.query or "").strip()
    if power.scope is None:
        raise UsageError(
            "power.scope: what the query's figures include isn't known",
            "set power.scope to board, module, package, node_dc, node_ac or rack_ac",
        )
    if "last_over_time" in query:
        raise RefusedError(
            "power.query: with last_over_time a target that is dead still reads",
            "leave it out: the newest value is taken, with the time that it was scraped at",
        )
    answer = api.ask(query)
    if answer.kind == "scalar":
        part = Part(quantity, factor, f"vector({query}\n)", "vector(time())", None)
        return [part], {"query": frozenset()}, power.scope
    selector = query if is_selector(api, query) else None
    part = Part(quantity, factor, f"({query}\n)", f"timestamp({query}\n)", selector)
    return [part], _named(answer), power.scope


def _named(answer: Answer) -> dict[str, Labels]:
    """Return the series of an instant vector by a name: the labels that tell them apart."""
    every = [labels_of(series) for series in answer.series]
    if answer.kind != "vector" or not every:
        raise RefusedError(
            "power.query: the answer is empty: no such metric, or no target that is up"
            if answer.kind == "vector"
            else "power.query: the answer is a range, not the values of one instant",
            "try the query on the server's own page; it must give one scalar or one vector",
        )
    if len(every) > MOST_SERIES:
        raise RefusedError(
            f"power.query: the answer has {len(every):,} series, more than {MOST_SERIES}",
            "select those of the machine under test by their labels",
        )
    shared = every[0].intersection(*every)
    names = [_name(labels - shared) for labels in every]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names)]
    return dict(zip(names, every, strict=True))


def _name(labels: Labels) -> str:
    text = ", ".join(f"{name}={value}" for name, value in sorted(labels)) or "query"
    return "".join(char if char.isprintable() else " " for char in text)[:_LONGEST_NAME]
