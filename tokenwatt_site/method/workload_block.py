"""The workload of a run document: what was asked in words and numbers, down to the trace's hash."""

from typing import Any

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method import prose
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.workloads import workload_of


def workload_block(spec: Spec, trace: Trace | None = None) -> dict[str, Any]:
    """Return the workload as ``documents.run.Workload`` holds it."""
    workload = workload_of(spec.workload, trace)
    block: dict[str, Any] = {
        "trace": spec.workload.trace if trace is None else trace.name,
        "input_tokens": spec.text.input_tokens or workload.input.describe(),
        "output_tokens": spec.text.output_tokens or workload.output.describe(),
        "arrival": prose.arrival(spec),
        "seed": spec.workload.seed,
        "nominal": {
            "input_tokens": workload.mean_input(),
            "output_tokens": workload.mean_output(),
        },
        "clamp": {
            "input_tokens": workload.input.most(),
            "output_tokens": workload.output.most(),
        },
    }
    if trace is not None:
        block |= {"timestamps": workload.arrivals, "sha256": trace.sha256}
    return block
