"""What requests look like: distributions of prompt and answer lengths, by name or from the spec."""

import math
import random
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import NormalDist
from typing import Protocol

from tokenwatt_site.documents.spec import FixedLength, Length, SpecWorkload
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.method.rng import open_unit

_NORMAL = NormalDist()
_Z90 = _NORMAL.inv_cdf(0.9)
_CLAMP = 8
_FILES = (".csv", ".json", ".jsonl", ".gz")


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
    """Prompt and answer lengths of a request, drawn independently."""

    name: str
    input: LengthDist
    output: LengthDist

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


def workload_of(spec: SpecWorkload) -> Workload:
    """Return the workload that the spec asks for.

    Raises:
        UsageError: an unknown name, or lengths that don't define a workload.
        RefusedError: a recorded trace by path.
    """
    given = spec.input_tokens is not None or spec.output_tokens is not None
    if spec.trace is not None:
        if given:
            raise UsageError(
                f"spec field workload.trace is {spec.trace!r} and lengths are given too",
                "set workload.trace to null to use input_tokens and output_tokens",
            )
        return _named(spec.trace)
    if spec.input_tokens is None or spec.output_tokens is None:
        raise UsageError(
            "spec field workload.trace is null and a length is missing",
            "give workload.input_tokens and workload.output_tokens, each {fixed: n} or"
            " {median: n, p90: n}",
        )
    return Workload(
        "custom",
        _length(spec.input_tokens, "input_tokens"),
        _length(spec.output_tokens, "output_tokens"),
    )


def _named(name: str) -> Workload:
    if name in WORKLOADS:
        return WORKLOADS[name]
    known = ", ".join(WORKLOADS)
    if "/" in name or name.endswith(_FILES):
        raise RefusedError(
            f"workload.trace {name!r}: replaying a recorded trace is not in this version",
            f"use one of {known}, or trace: null with input_tokens and output_tokens",
        )
    near = get_close_matches(name, WORKLOADS, 1)
    raise UsageError(
        f"unknown workload {name!r} in spec field workload.trace",
        f"did you mean {near[0]}?" if near else f"known workloads: {known}",
    )


def _length(length: Length, field: str) -> LengthDist:
    if isinstance(length, FixedLength):
        return Fixed(length.fixed)
    top = math.floor(_CLAMP * length.median) if length.max is None else length.max
    if not length.median < length.p90:
        raise UsageError(
            f"spec field workload.{field}: p90 {length.p90:g} is not above the median"
            f" {length.median:g}",
            "give a p90 above the median, or {fixed: n} for equal lengths",
        )
    return Lognormal(length.median, length.p90, max(1, top))
