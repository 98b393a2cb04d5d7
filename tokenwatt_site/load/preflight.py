"""Asks a server, before any load, what it is and which form of request it takes.

One clear error for each thing that can be wrong, with the next step; what merely differs from the
wish is a note. This is the control plane: a general HTTP client, nothing is timed.
"""

import os
from collections.abc import Mapping
from typing import Any

import httpx

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import ServerError, UsageError
from tokenwatt_site.load.address import Address
from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.api.chunk import is_dict
from tokenwatt_site.load.control import Control
from tokenwatt_site.load.facts import ServerFacts
from tokenwatt_site.load.probe import find_form
from tokenwatt_site.load.target import Target, checked_extra, key_headers
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.workloads import Workload, workload_of

_VERSIONS = (
    ("/version", "version"),  # vLLM
    ("/props", "build_info"),  # llama.cpp
    ("/get_server_info", "version"),  # SGLang
    ("/info", "version"),  # text-generation-inference
)
_SHOWN_MODELS = 10


def preflight(
    spec: Spec,
    url: str,
    *,
    environ: Mapping[str, str] = os.environ,
    transport: httpx.BaseTransport | None = None,
    trace: Trace | None = None,
) -> ServerFacts:
    """Return what the server at ``url`` is and takes; sends it up to six short requests.

    Args:
        spec: what is asked.
        url: base URL of the API.
        environ: where the API key is looked up.
        transport: replaces the network in tests.
        trace: the recorded trace that the spec names.

    ::

        facts = preflight(spec, "http://127.0.0.1:8000/v1")
        target = Target.of(spec, url, facts)

    Raises:
        ServerError: dead, no OpenAI API, refusing, redirecting, or without the model.
        UsageError: the spec contradicts itself or the server.
    """
    address = Address.of(url)
    dialect(spec.engine.api)
    extra_body = checked_extra(spec.engine.extra_body)
    headers = key_headers(spec.engine.api_key_env, environ)
    notes = _proxies(address)
    with Control(address, headers, transport, ca_file=spec.engine.ca_file) as control:
        entry = _model(control, spec.engine.model, notes)
        model = str(entry["id"])
        version = _version(control)
        max_context = _context(entry)
        _check_lengths(spec, entry, workload_of(spec.workload, trace), notes)
        target = Target(
            address.url,
            spec.engine.api,
            model,
            headers,
            ignore_eos=spec.engine.ignore_eos,
            extra_body=extra_body,
        )
        form = find_form(control, target, spec.model.vocab_size, max_context, notes)
    return ServerFacts(
        model=model,
        engine_version=version,
        max_context=max_context,
        vocab_size=_vocabulary(entry),
        ids_ok=form.ids_ok,
        ignore_eos_ok=form.ignore_eos_ok,
        lengths_ok=form.lengths_ok,
        usage_ok=form.usage_ok,
        calibration=form.calibration,
        notes=tuple(notes),
    )


def _proxies(address: Address) -> list[str]:
    """Refuse a proxy on the way to another machine; on this one it is passed by, and noted."""
    variable = address.proxy_variable()
    if variable is None:
        return []
    if address.loopback:
        return [f"{variable} is set and not used: requests go straight to {address.authority}"]
    raise UsageError(
        f"{variable} puts a proxy before {address.host}, which would change its latencies",
        f"add {address.host} to NO_PROXY, or unset {variable}",
    )


def _model(control: Control, wanted: str, notes: list[str]) -> dict[str, Any]:
    """Return the server's entry of the wanted model, or of its only one."""
    listed = control.models()
    if listed is None:
        if not wanted:
            raise ServerError(
                f"{control.url}/models lists no models, and the spec names none",
                "check the path of engine.endpoint, or set engine.model to the served model's name",
            )
        notes.append("the server lists no models; the spec's name is used unchecked")
        return {"id": wanted}
    names = [entry["id"] for entry in listed]
    if not wanted and len(listed) == 1:
        return _noted(listed[0], notes)
    for entry in listed:
        aliases = entry.get("aliases")
        if wanted == entry["id"] or (isinstance(aliases, list) and wanted in aliases):
            return _noted(entry | {"id": wanted}, notes)
    shown = ", ".join(names[:_SHOWN_MODELS]) + (" …" if len(names) > _SHOWN_MODELS else "")
    if not wanted:
        raise ServerError(
            f"the server at {control.url} has {len(names)} models: {shown or 'none'}",
            "set engine.model to one of them",
        )
    raise ServerError(
        f"the server at {control.url} has no model {wanted!r}; it has: {shown or 'none'}",
        f"set engine.model to {names[0]!r}" if names else "load a model into the server",
    )


def _noted(entry: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    if entry.get("owned_by") == "llamacpp":
        notes.append("llama.cpp answers to any model name; the one it lists is used")
    return entry


def _version(control: Control) -> str:
    """Return the version by the first of the engines' own ways that answers, else nothing."""
    for path, key in _VERSIONS:
        version = control.root_json(path).get(key)
        if isinstance(version, str) and version.isprintable():
            return version[:64]
    return ""


def _context(entry: dict[str, Any]) -> int | None:
    meta = entry.get("meta")
    told = (
        entry.get("max_model_len"),
        meta.get("n_ctx") if is_dict(meta) else None,
        entry.get("context_length"),
    )
    return next((value for value in told if type(value) is int and value > 0), None)


def _vocabulary(entry: dict[str, Any]) -> int | None:
    meta = entry.get("meta")
    told = (entry.get("vocab_size"), meta.get("n_vocab") if is_dict(meta) else None)
    return next((value for value in told if type(value) is int and value > 0), None)


def _check_lengths(spec: Spec, entry: dict[str, Any], workload: Workload, notes: list[str]) -> None:
    """Hold the spec's vocabulary and lengths against what the server says of itself."""
    vocabulary = _vocabulary(entry)
    asked = spec.model.vocab_size
    if asked and vocabulary and asked > vocabulary:
        raise UsageError(
            f"model.vocab_size is {asked:,}; the server's vocabulary has {vocabulary:,} tokens",
            f"set model.vocab_size to {vocabulary}",
        )
    max_context = _context(entry)
    longest = workload.input.most() + workload.output.most()
    if max_context is not None and longest > max_context:
        notes.append(
            f"the longest requests of the workload ({longest:,} tokens) don't fit into the "
            f"server's context of {max_context:,}: they fail"
        )
