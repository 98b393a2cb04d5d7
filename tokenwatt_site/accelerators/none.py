"""No driver is asked: a run on CPUs, or on accelerators that can't be reached from here."""

from collections.abc import Sequence

from tokenwatt_site.accelerators.identity import Accelerators


def find_none(
    *, gpus: Sequence[int | str] | None, count: int, simulator_url: str | None
) -> Accelerators:
    """Return no accelerators: nothing is known of them, so nothing is said."""
    del gpus, count, simulator_url
    return Accelerators(vendor="", name="", count=0)
