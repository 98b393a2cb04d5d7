"""What requests look like: distributions of prompt and answer lengths, by name or from the spec."""

import math
import random
from dataclasses import dataclass, replace
from difflib import get_close_matches
from statistics import NormalDist
from typing import Literal, Protocol

from tokenwatt_site.documents.spec_workload import (
    EmpiricalLength,
    FixedLength,
    Length,
    SharedShare,
    SharedTokens,
    SpecWorkload,
)
from tokenwatt_site.documents.tracefile import is_path
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.empirical import Empirical
from tokenwatt_site.method.replay import Trace
from tokenwatt_site.method.rng import open_unit

_NORMAL = NormalDist()
_Z90 = _NORMAL.inv_cdf(0.9)
_CLAMP = 8
Arrivals = Literal["poisson", "rescaled", "kept"]


class LengthDist(Protocol):
    """A distribution of token counts."""

    def draw(self, source: random.Random) -> int:
        """Return one length, at least 1 token."""
        ...

    def mean(self) -> float:
        """Return the mean length in tokens."""
        ...

    def most(self) -> int:
        """Return the longest length in tokens."""
        ...

    def describe(self) -> str:
        """Return the distribution in words for readers."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every request has the same number of tokens."""

    tokens: int

    def draw(self, source: random.Random) -> int:
        """Return the length; nothing is drawn."""
        del source
        return self.tokens

    def mean(self) -> float:
        """Return the mean length in tokens."""
        return float(self.tokens)

    def most(self) -> int:
        """Return the longest length in tokens."""
        return self.tokens

    def describe(self) -> str:
        """Return the distribution in words for readers."""
        return f"fixed {self.tokens:,}"


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Lognormal lengths, cut at ``top``; ``median`` and ``p90`` in tokens, ``median < p90``."""

    median: float
    p90: float
    top: int

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm: ln(p90/median) over the normal 90 % quantile."""
        return math.log(self.p90 / self.median) / _Z90

    def draw(self, source: random.Random) -> int:
        """Return one length, by inversion, so that each request takes exactly one draw."""
        z = _NORMAL.inv_cdf(open_unit(source))
        return max(1, min(self.top, round(self.median * math.exp(self.sigma * z))))

    def mean(self) -> float:
        """Return the mean of the cut distribution in tokens (before rounding to whole tokens)."""
        sigma, cut = self.sigma, math.log(self.top / self.median)
        below = math.exp(sigma**2 / 2) * _NORMAL.cdf(cut / sigma - sigma)
        return self.median * below + self.top * _NORMAL.cdf(-cut / sigma)

    def most(self) -> int:
        """Return the longest length in tokens."""
        return self.top

    def describe(self) -> str:
        """Return the distribution in words for readers."""
        return f"median {self.median:,.10g} · p90 {self.p90:,.10g}"


@dataclass(frozen=True, slots=True)
class Workload:
    """What requests look like: their lengths, how they arrive, what their prompts share."""

    name: str
    input: LengthDist
    output: LengthDist
    arrivals: Arrivals = "poisson"
    trace: Trace | None = None
    """Where the lengths are from; a request then has both of one recorded request."""
    prefix: SharedTokens | SharedShare | None = None
    """What all prompts of a window begin with."""

    def draw(self, source: random.Random) -> tuple[int, int]:
        """Return prompt and answer length of one request, in tokens."""
        if self.trace is None:
            return self.input.draw(source), self.output.draw(source)
        row = int(open_unit(source) * len(self.trace))
        return self.trace.input_tokens[row], self.trace.output_tokens[row]

    def mean_input(self) -> float:
        """Return the mean prompt length in tokens."""
        return self.input.mean()

    def mean_output(self) -> float:
        """Return the mean answer length in tokens."""
        return self.output.mean()

    def describe(self) -> str:
        """Return the workload in words for readers."""
        return f"{self.name}: {self.input.describe()} in, {self.output.describe()} out"


WORKLOADS: dict[str, Workload] = {
    "chat-mix-v1": Workload(
        "chat-mix-v1",
        Lognormal(1024, 4096, _CLAMP * 1024),
        Lognormal(256, 1024, _CLAMP * 256),
    ),
}


def workload_of(spec: SpecWorkload, trace: Trace | None = None) -> Workload:
    """Return the workload that the spec asks for.

    Args:
        spec: what is asked.
        trace: the recorded trace that it names, read by ``documents.tracefile``.

    Raises:
        UsageError: an unknown name, or keys that don't define a workload.
    """
    given = spec.input_tokens is not None or spec.output_tokens is not None
    if spec.timestamps != "poisson" and not is_path(spec.trace):
        raise UsageError(
            f"spec field workload.timestamps is {spec.timestamps} and no recorded trace is named",
            "set workload.trace to a trace file, or remove workload.timestamps",
        )
    if spec.trace is not None:
        if given:
            raise UsageError(
                f"spec field workload.trace is {spec.trace!r} and lengths are given too",
                "set workload.trace to null to use input_tokens and output_tokens",
            )
        return _recorded(spec, trace) if is_path(spec.trace) else _named(spec)
    if spec.input_tokens is None or spec.output_tokens is None:
        raise UsageError(
            "spec field workload.trace is null and a length is missing",
            "give workload.input_tokens and workload.output_tokens, each {fixed: n},"
            " {median: n, p90: n} or {values: [n, …]}",
        )
    return Workload(
        "custom",
        _length(spec.input_tokens, "input_tokens"),
        _length(spec.output_tokens, "output_tokens"),
        prefix=spec.shared_prefix,
    )


def workload_of_trace(trace: Trace) -> Workload:
    """Return the lengths of a recorded trace, drawn in pairs."""
    words = f"of {len(trace):,} recorded requests"
    return Workload(
        trace.name,
        Empirical.of(trace.input_tokens, words=words),
        Empirical.of(trace.output_tokens, words=words),
        trace=trace,
    )


def _recorded(spec: SpecWorkload, trace: Trace | None) -> Workload:
    if trace is None:
        raise UsageError(
            f"workload.trace {spec.trace!r} is a file, which isn't read here",
            "measure with the spec, or name a workload",
        )
    if spec.shared_prefix is not None and trace.blocks and spec.timestamps != "poisson":
        raise UsageError(
            f"spec field workload.shared_prefix is given and {trace.name} says itself what its"
            " prompts share",
            "remove workload.shared_prefix, or set workload.timestamps to poisson",
        )
    workload = workload_of_trace(trace)
    return replace(workload, arrivals=spec.timestamps, prefix=spec.shared_prefix)


def _named(spec: SpecWorkload) -> Workload:
    name = spec.trace or ""
    if name in WORKLOADS:
        return replace(WORKLOADS[name], prefix=spec.shared_prefix)
    near = get_close_matches(name, WORKLOADS, 1)
    raise UsageError(
        f"unknown workload {name!r} in spec field workload.trace",
        f"did you mean {near[0]}?" if near else f"known workloads: {', '.join(WORKLOADS)}",
    )


def _length(length: Length, field: str) -> LengthDist:
    if isinstance(length, FixedLength):
        return Fixed(length.fixed)
    if isinstance(length, EmpiricalLength):
        if length.weights is not None and len(length.weights) != len(length.values):
            raise UsageError(
                f"spec field workload.{field}: {len(length.weights)} weights for"
                f" {len(length.values)} values",
                "give as many weights as values, or none",
            )
        return Empirical.of(length.values, length.weights)
    top = math.floor(_CLAMP * length.median) if length.max is None else length.max
    if not length.median < length.p90:
        raise UsageError(
            f"spec field workload.{field}: p90 {length.p90:g} is not above the median"
            f" {length.median:g}",
            "give a p90 above the median, or {fixed: n} for equal lengths",
        )
    return Lognormal(length.median, length.p90, max(1, top))
