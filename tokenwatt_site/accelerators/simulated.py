"""The accelerators that the embedded engine plays."""

from collections.abc import Sequence

from tokenwatt_site.accelerators.identity import Accelerators, one_kind
from tokenwatt_site.drivers.choice import choose
from tokenwatt_site.drivers.power_page import PowerPage
from tokenwatt_site.errors import RefusedError, UsageError


def find_simulated(
    *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> Accelerators:
    """Return the accelerators of the embedded engine at ``simulator_url``.

    Raises:
        RefusedError: the server under test isn't the embedded engine.
        UsageError: the accelerators aren't there, or not as many.
    """
    page = PowerPage(simulator_url or "")
    found, code = page.read()
    page.close()
    if code is not None:
        raise RefusedError(
            f"hardware.adapter: simulated is of the embedded engine, and the server has no "
            f"accelerators at /power ({code})",
            "set engine.endpoint to `simulator:`, or hardware.adapter to `nvidia` or `none`",
        )
    if gpus is None and count != len(found):
        raise UsageError(
            f"the embedded engine has {len(found)} accelerators, the model is on {count} "
            "(replicas × tensor_parallel × pipeline_parallel)",
            f"set model.tensor_parallel to {len(found)}",
        )
    uuids = choose([device.uuid for device in found], gpus, count)
    chosen = [device for device in found if device.uuid in uuids]
    limits_w = [device.limit_w for device in chosen if device.limit_w]
    return Accelerators(
        vendor="simulated",
        name=one_kind([device.name for device in chosen]),
        count=len(uuids),
        uuids=tuple(uuids),
        power_limit_w=max(limits_w, default=None),
        rated_bw_tbs_per_gpu=chosen[0].rated_bw_tbs,
    )
