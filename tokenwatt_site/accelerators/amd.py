"""AMD GPUs by the word of their driver."""

from collections.abc import Sequence

from tokenwatt_site.accelerators.identity import Accelerators, limits_note, one_kind
from tokenwatt_site.drivers.amd import Amd
from tokenwatt_site.drivers.choice import choose


def find_amd(
    *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> Accelerators:
    """Return the GPUs under test: ``gpus`` by amd-smi's index or UUID, else the first ``count``.

    The two dies of an MI250 are two GPUs here, as they are to HIP; a power limit is a board's.

    Raises:
        RefusedError: no package, no driver, or a GPU that doesn't answer.
        UsageError: the GPUs aren't there, or not as many, or of several kinds.
    """
    del simulator_url
    amd = Amd()
    try:
        uuids = choose(amd.uuids(), gpus, count)
        limits_w = [limit_w for uuid in uuids if (limit_w := amd.limit_w(amd.handle(uuid)))]
        return Accelerators(
            vendor="AMD",
            name=one_kind([amd.name(uuid) for uuid in uuids]),
            count=len(uuids),
            driver=amd.driver(uuids[0]),
            uuids=tuple(uuids),
            power_limit_w=max(limits_w, default=None),
            notes=limits_note(limits_w),
        )
    finally:
        amd.close()
