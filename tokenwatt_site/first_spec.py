"""What this machine and a server can be measured with, written down as a spec."""

from typing import Any

from tokenwatt_site import accelerators, power
from tokenwatt_site.documents.doors import dump, load_spec, parse_spec
from tokenwatt_site.documents.spec import Spec, SpecPower
from tokenwatt_site.documents.specfile import commented
from tokenwatt_site.errors import TokenwattError
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.preflight import preflight
from tokenwatt_site.method.prose import slug
from tokenwatt_site.method.workloads import WORKLOADS
from tokenwatt_site.resources import resource

SIMULATOR = "simulator:"
_VENDORS = ("nvidia", "amd")

MOST_MINUTES = 90
"""Bound of a search that a new spec sets: three times what one takes as a rule."""

HEADER = """\
What it measures: {model}
  the highest rate at which it keeps the latency limits below, and the energy of a token there.
How long it takes: `tokenwatt-site measure FILE --dry-run` says so.
Look at slo, workload and sweep first; every key is explained in docs/spec.md."""


def new_spec(
    *,
    endpoint: str,
    model: str,
    api: str,
    api_key_env: str | None,
    name: str,
    ca_file: str | None = None,
) -> tuple[str, list[str]]:
    """Ask the server, the accelerators and the meters; return a spec file and what was found.

    Args:
        endpoint: base URL with /v1, or ``simulator:``.
        model: the model's name in the API; empty takes the only one.
        api: the dialect: completions, chat or responses.
        api_key_env: name of the environment variable with the key.
        name: the spec's name; empty makes one.
        ca_file: PEM file of the authorities to trust; None means the system's.

    Raises:
        ServerError: the server can't be measured.
        UsageError: an argument can't be used.
    """
    values: dict[str, Any] = {
        "name": name or "new",
        "hardware": {"adapter": "none"},
        "engine": {
            "endpoint": endpoint,
            "api": api,
            "model": model,
            "api_key_env": api_key_env,
            "ca_file": ca_file,
        },
        "model": {"name": model or "model"},
    }
    if endpoint == SIMULATOR:
        _of_simulator(values)
        notes = ["the embedded engine is simulated; its documents are demos"]
    else:
        facts = _of_server(values)
        notes = [*_said(facts), *_of_machine(values)]
        values |= _asked(facts.max_context)
    values["name"] = name or slug(values["engine"]["name"], values["model"]["name"])
    parse_spec(values)  # what is written is a spec
    return commented(values, HEADER.format(model=values["model"]["name"])), notes


def _of_simulator(values: dict[str, Any]) -> None:
    """Take the ready spec of the embedded engine, whose lengths and rates fit it."""
    ready = dump(load_spec(resource("specs") / "demo.spec.yaml"))
    ready["engine"]["api"] = values["engine"]["api"]
    values |= ready


def _of_server(values: dict[str, Any]) -> ServerFacts:
    """Fill in what the server says; its vocabulary, where it tells it, allows exact prompts."""
    spec = parse_spec(values)
    facts = preflight(spec, spec.engine.endpoint)
    if facts.vocab_size and spec.engine.api == "completions":
        values["model"]["vocab_size"] = facts.vocab_size
        spec = parse_spec(values)
        facts = preflight(spec, spec.engine.endpoint)
    engine = values["engine"]
    values["engine"] = {
        "endpoint": engine["endpoint"],
        "name": _engine_name(facts),
        "version": facts.engine_version,
        "kernels": "",
        "api": engine["api"],
        "model": facts.model,
        "ignore_eos": facts.ignore_eos_ok,
        "api_key_env": engine["api_key_env"],
        **({"ca_file": engine["ca_file"]} if engine["ca_file"] else {}),
    }
    values["model"] = {
        "name": facts.model.rsplit("/", 1)[-1],
        "weight_dtype": "",
        "kv_dtype": "",
        "replicas": 1,
        "tensor_parallel": 1,
        "vocab_size": facts.vocab_size if facts.ids_ok else None,
    }
    return facts


def _said(facts: ServerFacts) -> list[str]:
    context = f", context {facts.max_context:,} tokens" if facts.max_context else ""
    notes = [note for note in facts.notes if "longest requests" not in note]
    return [f"server: {facts.model} {facts.engine_version}{context}", *notes]


def _engine_name(facts: ServerFacts) -> str:
    """Guess the engine where its notes name it; readers can correct it."""
    return "llama.cpp" if any("llama.cpp" in note for note in facts.notes) else "engine"


def _of_machine(values: dict[str, Any]) -> list[str]:
    """Fill in the accelerators and the board meter of this machine, if it has them."""
    refused: list[str] = []
    for adapter in _VENDORS:
        values["hardware"] = {"adapter": adapter}
        spec = parse_spec(values)
        try:
            found = accelerators.identify(spec.hardware, spec.model)
        except TokenwattError as error:
            refused.append(error.what)
            continue
        values["hardware"] = {"adapter": adapter, "gpus": None, "host": ""}
        driver = f", driver {found.driver}" if found.driver else ""
        notes = [f"accelerators: {found.name}{driver}; set model.tensor_parallel"]
        return [*notes, *_of_boards(values, adapter, found.count)]
    values["hardware"] = {"adapter": "none", "host": ""}
    values["power"] = {"source": "none"}
    return [
        f"accelerators: none found ({'; '.join(refused)})",
        "power: no meter; `tokenwatt-site doctor` says which others there may be",
    ]


def _of_boards(values: dict[str, Any], adapter: str, count: int) -> list[str]:
    source = "amd" if adapter == "amd" else "board"
    try:
        meter = power.open_meter(
            SpecPower.model_validate({"source": source}), gpus=None, count=count, simulator_url=None
        )
    except TokenwattError as error:
        values["power"] = {"source": "none"}
        return [f"power: no meter ({error.what})"]
    reading = meter.read()
    meter.close()
    watts = sum(sample.power_w or 0 for sample in reading)
    values["power"] = {"source": "board", "sampling_hz": 10}
    return [f"power: {meter.source}, now {watts:.0f} W"]


def _lengths(max_context: int | None) -> dict[str, Any]:
    """Return chat-mix-v1, or its shape made small enough for a short context."""
    mix = WORKLOADS["chat-mix-v1"]
    longest = mix.input.most() + mix.output.most()
    if max_context is None or max_context >= longest:
        return {"trace": mix.name, "seed": 0}
    part = max_context // 16
    return {
        "trace": None,
        "input_tokens": {"median": part, "p90": 4 * part, "max": 8 * part},
        "output_tokens": {"median": max(1, part // 4), "p90": part, "max": 2 * part},
        "seed": 0,
    }


def _asked(max_context: int | None) -> dict[str, Any]:
    """Return the promise, the load and the search that a first run starts from."""
    defaults = Spec.model_validate(
        {"name": "x", "engine": {"endpoint": SIMULATOR}, "model": {"name": "x"}}
    )
    measurement = defaults.measurement.model_dump(mode="json")
    sweep = defaults.sweep.model_dump(mode="json")
    return {
        "slo": defaults.slo.model_dump(mode="json"),
        "workload": _lengths(max_context),
        "measurement": {key: measurement[key] for key in ("request_timeout_s", "max_concurrency")},
        "sweep": {
            "strategy": "adaptive",
            "mode": "standard",
            "start_rps": sweep["start_rps"],
            "max_rps": sweep["max_rps"],
            "max_minutes": MOST_MINUTES,
        },
        "not_covered": dump(defaults).get("not_covered", []),
    }
