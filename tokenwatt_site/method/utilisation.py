"""Bandwidth utilisation of a measured configuration, or why there is none."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.method.decoding import Decoding
from tokenwatt_site.method.mbu import Machine, Step, block, mbu
from tokenwatt_site.method.models.model import Model, Served, model
from tokenwatt_site.method.window import WindowStats


@dataclass(frozen=True, slots=True)
class Utilisation:
    """The figure, what it was made of, and why it is missing."""

    pct: float | None = None
    block: dict[str, Any] | None = None
    """Keys of ``documents.run.MbuReport``; also of a figure that was refused."""
    missing: tuple[str, str] | None = None
    """Code and text; None where there is a figure."""


def served_model(spec: Spec, files: ModelConfig) -> Model:
    """Return the model as the spec says it is served.

    Raises:
        UsageError: naming the key of the config that isn't understood.
    """
    asked = spec.model
    return model(files, Served(asked.weight_dtype, asked.kv_dtype, asked.geometry))


def utilisation(
    spec: Spec,
    files: ModelConfig | None,
    peak_tbs: float | None,
    windows: Sequence[WindowStats],
) -> Utilisation:
    """Return the bandwidth utilisation of the windows at the reported rate.

    Args:
        spec: how the model is served.
        files: the model's config; None where the spec names none.
        peak_tbs: rated bandwidth of one accelerator, TB/s.
        windows: empty where no rate was confirmed.
    """
    if files is None:
        return _missing("NO_CONFIG", "the spec names no model.config")
    if peak_tbs is None:
        return _missing("NO_BANDWIDTH", "the accelerator's rated bandwidth isn't known")
    if not windows:
        return _missing("NO_CONFIRMED_RATE", "no window at a confirmed rate was measured")
    known = served_model(spec, files)
    step = _step(known, spec.model.replicas, windows)
    if step is None:
        return _missing("NO_TPOT", "no finished request has a time per output token")
    asked = spec.model
    parallel = (asked.replicas, asked.tensor_parallel, asked.pipeline_parallel)
    result = mbu(known, step, Machine(peak_tbs, *parallel))
    found = block(result, files.sha256)
    if not result.possible:
        text = f"{result.pct:.3g} % of the rated bandwidth can't be read: an input is wrong"
        return Utilisation(None, found, ("MBU_IMPOSSIBLE", text))
    return Utilisation(result.pct, found)


def _step(known: Model, replicas: int, windows: Sequence[WindowStats]) -> Step | None:
    """Return the mean decode step of one replica.

    B by Little's law. Of the steps, rate x step's time begin a prompt, which is one step's work as
    a rule; where that is more than one, each step has several.
    """
    decoding = Decoding.together(each.decoding for each in windows)
    tpot_ms, ctx, prompt = decoding.tpot_ms, decoding.ctx_tokens, decoding.mean_input_tokens
    if tpot_ms is None or ctx is None or prompt is None:
        return None
    seconds = math.fsum(each.window.length_s for each in windows)
    tokens = math.fsum(each.output_tok_s * each.window.length_s for each in windows)
    begun = windows[0].window.rate_rps * tpot_ms / 1000 * known.accepted / replicas
    return Step(
        batch=tokens / seconds * tpot_ms / 1000 / replicas,
        ctx_tokens=ctx,
        tpot_ms=tpot_ms,
        verified=known.verified,
        accepted=known.accepted,
        prefill_tokens=prompt * max(1.0, begun),
        prefill_share=min(1.0, begun),
    )


def _missing(code: str, text: str) -> Utilisation:
    return Utilisation(missing=(code, text))
