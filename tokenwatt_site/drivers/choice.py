"""Which of a machine's accelerators a measurement is about."""

from collections.abc import Sequence

from tokenwatt_site.errors import UsageError

EVERY = -1
"""As ``count``: all that answer."""


def choose(found: Sequence[str | None], gpus: Sequence[int | str] | None, count: int) -> list[str]:
    """Return the UUIDs of the accelerators under test, in the order asked for.

    Args:
        found: UUIDs by index, in the driver's order; None for one that doesn't answer.
        gpus: ``hardware.gpus`` of the spec: indices or UUIDs; None takes the first ``count``.
        count: how many the engine uses, replicas × TP × PP; 0 where it isn't known, EVERY for all.

    Raises:
        UsageError: one that isn't there, doesn't answer or is named twice; not ``count`` of them.
    """
    if gpus is None and count == EVERY:
        answering = [uuid for uuid in found if uuid is not None]
        if not answering:
            raise UsageError("the driver shows no accelerator", "its own tool must show one first")
        return answering
    if gpus is None and count == 0:
        raise UsageError(
            "which accelerators to read isn't known",
            "set hardware.adapter to their driver, or name them in hardware.gpus",
        )
    if gpus is not None and count not in {0, len(gpus)}:
        raise UsageError(
            f"hardware.gpus names {len(gpus)} accelerators, the model needs {count} "
            "(replicas × tensor_parallel × pipeline_parallel)",
            "make the two agree",
        )
    if gpus is None and count > len(found):
        raise UsageError(
            f"the model needs {count} accelerators (replicas × tensor_parallel × "
            f"pipeline_parallel), this machine shows {len(found)}",
            "correct model.replicas, tensor_parallel and pipeline_parallel, or measure where the "
            "accelerators are",
        )
    chosen = [_one(found, asked) for asked in (range(count) if gpus is None else gpus)]
    if len(set(chosen)) < len(chosen):
        raise UsageError("hardware.gpus names an accelerator twice", "name each once")
    return chosen


def _one(found: Sequence[str | None], asked: int | str) -> str:
    known = ", ".join(f"{index}: {uuid or 'no answer'}" for index, uuid in enumerate(found))
    hint = f"this machine shows {known or 'none'}"
    if isinstance(asked, str):
        if asked not in found:
            raise UsageError(f"hardware.gpus: there is no accelerator {asked}", hint)
        return asked
    uuid = found[asked] if 0 <= asked < len(found) else None
    if uuid is None:
        raise UsageError(f"hardware.gpus: accelerator {asked} isn't there or doesn't answer", hint)
    return uuid
