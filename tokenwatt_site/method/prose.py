"""The human strings of a run document, made from spec and measurement.

Each can be overridden in the spec's ``text`` section and none is required.
"""

import re
import shlex
from dataclasses import dataclass

from tokenwatt_site.documents.run import Hardware
from tokenwatt_site.documents.spec import Spec

MS = 1000
_VENDORS = ("NVIDIA ", "AMD ", "Intel ", "Google ")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, slots=True)
class Origin:
    """How a run was asked for on the command line."""

    spec_file: str
    label: str
    role: str
    out: str


def precision(dtype: str) -> str:
    """Return a data type as people write it: FP8, BF16, MXFP4, INT8; unknown words as they are."""
    return dtype.upper() if re.fullmatch(r"(mx|nv)?(bf|fp|int)\d+(_\w+)?", dtype) else dtype


def short_accelerator(name: str) -> str:
    """Return the accelerator without its vendor: ``H200``."""
    for vendor in _VENDORS:
        name = name.removeprefix(vendor)
    return name


def quantization(spec: Spec) -> str:
    """Return ``FP8 weights, FP8 KV cache``, as far as the data types are known."""
    if spec.text.quantization or spec.model.quantization:
        return spec.text.quantization or spec.model.quantization
    parts: list[str] = []
    if spec.model.weight_dtype:
        parts.append(f"{precision(spec.model.weight_dtype)} weights")
    if spec.model.kv_dtype:
        parts.append(f"{precision(spec.model.kv_dtype)} KV cache")
    return ", ".join(parts)


def parallelism(spec: Spec) -> str:
    """Return ``1 replica × TP4``."""
    if spec.text.parallelism:
        return spec.text.parallelism
    replicas = spec.model.replicas
    parts = [f"{replicas} replica{'s' if replicas > 1 else ''}", f"TP{spec.model.tensor_parallel}"]
    if spec.model.pipeline_parallel > 1:
        parts.append(f"PP{spec.model.pipeline_parallel}")
    return " × ".join(parts)


def machine(hardware: Hardware) -> str:
    """Return ``4× H200``, or the host where there is no accelerator."""
    if hardware.count:
        return f"{hardware.count}× {short_accelerator(hardware.accelerator)}"
    return hardware.accelerator or hardware.host or "CPU"


def engine(spec: Spec, version: str) -> str:
    """Return ``vLLM 0.32.0``."""
    return f"{spec.engine.name or 'unnamed engine'} {version}".strip()


def engine_line(spec: Spec, version: str) -> str:
    """Return ``vLLM 0.32.0 · KV FP8``."""
    if spec.text.engine:
        return spec.text.engine
    kv = f" · KV {precision(spec.model.kv_dtype)}" if spec.model.kv_dtype else ""
    return engine(spec, version) + kv


def title(spec: Spec, hardware: Hardware, version: str) -> str:
    """Return ``DeepSeek-V4.1-Flash on 4× H200 with vLLM 0.32.0 (TP4, FP8 KV cache)``."""
    if spec.text.title:
        return spec.text.title
    notes = [f"TP{spec.model.tensor_parallel}"] if spec.model.tensor_parallel > 1 else []
    if spec.model.kv_dtype:
        notes.append(f"{precision(spec.model.kv_dtype)} KV cache")
    tail = f" ({', '.join(notes)})" if notes else ""
    return f"{spec.model.name} on {machine(hardware)} with {engine(spec, version)}{tail}"


def label(spec: Spec, hardware: Hardware, version: str) -> str:
    """Return ``DeepSeek-V4.1-Flash · 4× H200 · TP4 · vLLM 0.32.0``."""
    if spec.text.label:
        return spec.text.label
    parts = [spec.model.name, machine(hardware)]
    if spec.model.tensor_parallel > 1:
        parts.append(f"TP{spec.model.tensor_parallel}")
    return " · ".join([*parts, engine(spec, version)])


def arrival(spec: Spec) -> str:
    """Return the arrival process in words."""
    if spec.text.arrival:
        return spec.text.arrival
    if spec.workload.timestamps == "kept":
        return "As recorded, at the recorded times"
    kind = "As recorded, time rescaled" if spec.workload.timestamps == "rescaled" else "Poisson"
    return f"{kind}, at given rates" if spec.sweep.rates else f"{kind}, rate swept to SLO boundary"


def reproduce(spec: Spec, origin: Origin, document_title: str) -> str:
    """Return the commands that repeat the run; every argument is quoted for a shell."""
    if spec.text.reproduce:
        return spec.text.reproduce
    run = ["tokenwatt", "run", "--spec", origin.spec_file]
    if origin.label:
        run += ["--label", origin.label]
    run += ["--role", origin.role, "--out", origin.out]
    report = ["tokenwatt", "report", origin.out, "--title", document_title]
    return f"{shlex.join(run)}\n\n{shlex.join(report)}"


def limit(ms: float) -> str:
    """Return a limit as ``2 s`` or ``50 ms``."""
    return f"{ms / MS:g} s" if ms >= MS else f"{ms:g} ms"


def seconds(value_s: float) -> str:
    """Return a window's length as ``120 s`` or ``34.7 s``."""
    return f"{round(value_s, 1):,.10g} s"


def promise(spec: Spec) -> str:
    """Return ``p99 TTFT ≤ 2 s and p99 TPOT ≤ 50 ms``."""
    return f"p99 TTFT ≤ {limit(spec.slo.ttft_p99_ms)} and p99 TPOT ≤ {limit(spec.slo.tpot_p99_ms)}"


def day(stamp: str) -> str:
    """Return ``October 27, 2026`` of an ISO stamp."""
    year, month, number = stamp[:10].split("-")
    return f"{_MONTHS[int(month) - 1]} {int(number)}, {year}"


def slug(*parts: str) -> str:
    """Return the parts as one id: lower case, digits, dots, single hyphens, ≤ 100 characters."""
    text = "-".join(part for part in parts if part).lower()
    text = re.sub(r"[^a-z0-9.]+", "-", text)
    text = re.sub(r"[.-]*-[.-]*|\.{2,}", "-", text)
    return text.strip(".-")[:100].strip(".-") or "run"


def document_id(spec: Spec, hardware: Hardware) -> str:
    """Return ``h200x4-deepseek-v4.1-flash-fp8-vllm``."""
    name = short_accelerator(hardware.accelerator) if hardware.count else "cpu"
    count = f"x{hardware.count}" if hardware.count else ""
    return slug(name + count, spec.model.name, spec.model.weight_dtype, spec.engine.name)
