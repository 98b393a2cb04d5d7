"""The twin of a measured server: fitted, set to its speed, and compared with it request by request.

A window's slow requests are mostly the luck of its schedule: which requests came close together.
The client knows the schedule, so a crude twin that plays the same one has the same luck, and what
is left between the two is the server. See ``twin_error`` for how large that is.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from tokenwatt_site.method.probe import Measured
from tokenwatt_site.method.twin_fit import fit
from tokenwatt_site.method.twin_player import Played, Player, TwinParams
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits, cohort, log_quantiles
from tokenwatt_site.method.twin_stream import Boundary, Stream

Columns = tuple["array[float]", "array[int]", "array[int]"]
"""A schedule: arrivals, prompt tokens, output tokens."""
_STEPS = 8
_CLOSE = 1e-3
_SENSITIVITY = 1.5
"""First guess of d ln(score)/d ln(kappa)."""
_SENSITIVITY_LEAST = 0.1
_CLOSE_GAP = 0.02
"""Where a score jumps with the speed, so that no step is small, a gap this small is at rest too."""
_REACH = math.log(2)


@dataclass(frozen=True, slots=True)
class Pair:
    """One request of a cohort: when it came, from the start of its load, and its two scores."""

    arrival_s: float
    seen: float
    twin: float


@dataclass(frozen=True, slots=True)
class Replay:
    """A window as it was sent, and what was seen; requests that failed are left out."""

    measured: Measured
    columns: Columns
    cohort: Sequence[int]
    seen: tuple[Sequence[float], Sequence[float]]
    """Scores of the cohort: TTFT, TPOT."""

    @classmethod
    def of(cls, measured: Measured, limits: Limits) -> "Replay":
        """Take what a play needs from the records."""
        counted = set(cohort(measured))
        kept = [(i in counted, r) for i, r in enumerate(measured.records) if not r.failed]
        ours = [record for counts, record in kept if counts]
        return cls(
            measured,
            (
                array("d", [record.arrival_s for _, record in kept]),
                array("q", [record.input_tokens for _, record in kept]),
                array("q", [record.output_tokens for _, record in kept]),
            ),
            [i for i, (counts, _) in enumerate(kept) if counts],
            (
                [limits.seen(record, TTFT, measured.look_s) for record in ours],
                [limits.seen(record, TPOT, measured.look_s) for record in ours],
            ),
        )


@dataclass(frozen=True, slots=True)
class Mirror:
    """How a replay is played: by whom, on how many replicas, against which limits."""

    player: Player
    limits: Limits
    budget_tokens: int = 8192
    replicas: int = 1

    def scores(self, params: TwinParams, replay: Replay, kind: int) -> list[float]:
        """Return the twin's scores of a replay's cohort."""
        scores = self.play(params, replay.columns, replay.measured.look_s, kind)
        return [scores[i] for i in replay.cohort]

    def play(
        self, params: TwinParams, columns: Columns, look_s: float, kind: int
    ) -> "array[float]":
        """Return the twin's scores of all requests of a schedule, as they stand at ``look_s``."""
        played = self._play(params, columns, look_s)
        return self.limits.played(played, columns[0], kind, look_s)

    def pairs(self, params: TwinParams, replay: Replay, kind: int) -> list[Pair]:
        """Return the cohort with both scores of each request."""
        twin = self.scores(params, replay, kind)
        arrivals = replay.columns[0]
        return [
            Pair(arrivals[i], seen, played)
            for i, seen, played in zip(replay.cohort, replay.seen[kind], twin, strict=True)
        ]

    def gap(self, params: TwinParams, replays: Sequence[Replay], kind: int) -> float | None:
        """Return by how much the seen scores are above the twin's: mean ln over the quantiles.

        Windows weigh by their requests. None if there are none.
        """
        total, requests = 0.0, 0
        for replay in replays:
            if replay.cohort:
                seen = log_quantiles(replay.seen[kind])
                twin = log_quantiles(self.scores(params, replay, kind))
                mean = math.fsum(seen) / len(seen) - math.fsum(twin) / len(twin)
                total += len(replay.cohort) * mean
                requests += len(replay.cohort)
        return total / requests if requests else None

    def _play(self, params: TwinParams, columns: Columns, until_s: float) -> Played:
        arrival_s, inputs, outputs = columns
        if self.replicas == 1:
            return self.player(params, arrival_s, inputs, outputs, until_s)
        n = len(arrival_s)
        whole = Played(array("d", bytes(8 * n)), array("d", bytes(8 * n)), array("q", bytes(8 * n)))
        for number in range(self.replicas):
            share = slice(number, None, self.replicas)
            part = self.player(params, arrival_s[share], inputs[share], outputs[share], until_s)
            whole.first_s[share], whole.last_s[share], whole.tokens[share] = part
        return whole


@dataclass(frozen=True, slots=True)
class Speed:
    """The factor that sets a twin to the server's speed."""

    kappa: float
    settled: bool
    """The search for it came to rest."""


def speed(mirror: Mirror, params: TwinParams, replays: Sequence[Replay], kind: int) -> Speed:
    """Return the factor at which a twin's scores are as high as those seen: by secants."""
    log_kappa, last, best = 0.0, None, (math.inf, 0.0)
    for _ in range(_STEPS):
        gap = mirror.gap(params.scaled(math.exp(log_kappa)), replays, kind)
        if gap is None:
            break
        best = min(best, (abs(gap), log_kappa))
        rise = _SENSITIVITY
        if last is not None and last[0] != log_kappa:
            rise = max((last[1] - gap) / (log_kappa - last[0]), _SENSITIVITY_LEAST)
        step = max(-_REACH, min(_REACH, gap / rise))
        last = (log_kappa, gap)
        log_kappa += step
        if abs(step) < _CLOSE:
            return Speed(math.exp(log_kappa), settled=True)
    return Speed(math.exp(best[1]), settled=best[0] < _CLOSE_GAP)


@dataclass(frozen=True, slots=True)
class Twin:
    """A twin that was fitted to some windows."""

    raw: TwinParams
    """As fitted."""
    speed: Speed
    boundary: Boundary
    replays: tuple[Replay, ...]
    """The windows."""

    @property
    def params(self) -> TwinParams:
        """The twin at the server's speed."""
        return self.raw.scaled(self.speed.kappa)


@dataclass(frozen=True, slots=True)
class Guess:
    """Where a boundary may be."""

    rate_rps: float
    rough: bool = False
    """Whether the first part of the stream is enough to find it."""


def twin_of(
    windows: Sequence[Measured],
    mirror: Mirror,
    stream: Stream,
    before: Twin | None,
    guess: Guess,
) -> Twin | None:
    """Fit a twin to windows and find its boundary.

    Args:
        windows: what was measured near the boundary.
        mirror: how windows are replayed.
        stream: the long run.
        before: the twin of fewer windows: with too few requests, only its speed is set anew.
        guess: where the boundary may be, and whether a rough look is enough.

    Returns:
        None where there are too few requests to fit one and none before.
    """
    raw = fit(windows, mirror.budget_tokens, mirror.replicas)
    if raw is None and before is not None:
        raw = before.raw
    replays = tuple(Replay.of(measured, mirror.limits) for measured in windows)
    if raw is None or not any(replay.cohort for replay in replays):
        return None
    known = before.boundary if before is not None else None
    kind = known.kind if known is not None else TPOT
    found = speed(mirror, raw, replays, kind)
    boundary = stream.boundary(raw.scaled(found.kappa), guess.rate_rps, known, rough=guess.rough)
    if boundary.kind != kind:
        found = speed(mirror, raw, replays, boundary.kind)
        boundary = stream.boundary(
            raw.scaled(found.kappa), boundary.rate_rps, boundary, rough=guess.rough
        )
    return Twin(raw, found, boundary, replays)
