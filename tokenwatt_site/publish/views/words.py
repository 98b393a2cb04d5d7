"""The words of pages for what documents hold as codes."""

from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method import prose
from tokenwatt_site.method.derived import hardware_of, software_of

SCOPES = {
    "board": "GPU boards",
    "module": "accelerator modules",
    "package": "CPU package",
    "node": "whole node",
    "node_dc": "whole node, DC",
    "node_ac": "whole node, AC",
    "rack": "whole rack",
    "rack_ac": "whole rack, AC",
    "shared_board": "shared boards",
}
THROTTLE_REASONS = {
    "sw_power_cap": "software power cap",
    "hw_slowdown": "hardware slowdown",
    "hw_thermal_slowdown": "hardware thermal slowdown",
    "sw_thermal_slowdown": "software thermal slowdown",
    "hw_power_brake_slowdown": "power brake",
    "sync_boost": "sync boost",
    "sw_thermal": "software thermal slowdown",
    "hw_thermal": "hardware thermal slowdown",
    "hw_power_brake": "power brake",
    "thermal": "thermal slowdown",
    "vr_thermal": "hot voltage regulators",
    "hbm_thermal": "hot memory",
    "prochot": "processor hot",
}


def scope_words(scope: str | None) -> str:
    """Return a power scope in words."""
    return SCOPES.get(scope, scope) if scope else "no meter"


def throttle_words(config: Config) -> str:
    """Return the reasons that were counted, in words."""
    return ", ".join(THROTTLE_REASONS.get(code, code) for code in sorted(config.throttle_counts))


def machine(run: Run, config: Config) -> str:
    """Return ``4 × H200``, or the host where there is no accelerator."""
    return prose.machine(hardware_of(run, config)).replace("× ", " × ")


def engine(run: Run, config: Config) -> str:
    """Return ``vLLM 0.32.0``."""
    software = software_of(run, config)
    return f"{software.engine} {software.engine_version}".strip() or "unnamed engine"


def precision(spec: Spec) -> str:
    """Return the data type of the weights, or nothing."""
    return prose.precision(spec.model.weight_dtype) if spec.model.weight_dtype else ""


def promise(run: Run) -> str:
    """Return ``p99 TTFT ≤ 2 s and p99 TPOT ≤ 50 ms``."""
    slo = run.slo
    ttft, tpot = prose.limit(slo.ttft_p99_ms), prose.limit(slo.tpot_p99_ms)
    return f"p99 TTFT ≤ {ttft} and p99 TPOT ≤ {tpot}"
