"""What counts alone show. Misses come in bursts, so blocks of a window are looked at."""

import math
from collections.abc import Sequence

from tokenwatt_site.method.probe import Measured
from tokenwatt_site.method.statistics import mean_interval
from tokenwatt_site.method.twin_scores import TPOT, TTFT, Limits, cohort

MISS_SHARE = 0.01
BLOCK_S = 30.0
_LEAST_BLOCKS = 10


def misses(windows: Sequence[Measured]) -> int:
    """Return the larger of the two pooled miss counts."""
    return max(sum(m.miss_ttft for m in windows), sum(m.miss_tpot for m in windows))


def missed(measured: Measured, limits: Limits) -> int:
    """Return the larger miss count of a short window; what is unfinished is taken as it stands."""
    ours = [measured.records[i] for i in cohort(measured)]
    return max(
        sum(limits.seen(record, kind, measured.look_s) > 1 for record in ours)
        for kind in (TTFT, TPOT)
    )


def requests(windows: Sequence[Measured]) -> int:
    """Return the pooled number of requests."""
    return sum(m.n for m in windows)


def met(windows: Sequence[Measured]) -> bool:
    """Tell whether both pooled miss shares are at most 1 %."""
    n = requests(windows)
    return n > 0 and misses(windows) <= MISS_SHARE * n


def shown_by_counts(windows: Sequence[Measured], limits: Limits) -> bool:
    """Tell whether the counts alone prove that both miss shares are at most 1 %.

    The upper end of the 95 % interval of a share, from blocks of 30 s, and 3·φ/N must both be at
    most that; φ = max(1, variance over mean of the blocks' miss counts). Fewer than 10 blocks, or
    no block with a miss of either kind, prove nothing.
    """
    kinds = [
        [block for measured in windows for block in _blocks(measured, limits, kind)]
        for kind in (TTFT, TPOT)
    ]
    missed_any = any(count for blocks in kinds for count, _ in blocks)
    return missed_any and all(map(_shown, kinds))


def _shown(blocks: Sequence[tuple[int, int]]) -> bool:
    if len(blocks) < _LEAST_BLOCKS:
        return False
    mean, half = mean_interval([count / n for count, n in blocks])
    counts = [count for count, _ in blocks]
    average = sum(counts) / len(counts)
    variance = math.fsum((c - average) ** 2 for c in counts) / (len(counts) - 1)
    dispersion = max(1.0, variance / average) if average else 1.0
    n = sum(n for _, n in blocks)
    return mean + (half or 0.0) <= MISS_SHARE and 3 * dispersion <= MISS_SHARE * n


def _blocks(measured: Measured, limits: Limits, kind: int) -> list[tuple[int, int]]:
    """Return misses and requests of each block in which there were any."""
    length_s = min(measured.w1_s, measured.look_s) - measured.w0_s
    blocks = [[0, 0] for _ in range(max(1, int(length_s / BLOCK_S + 0.5)))]
    for i in cohort(measured):
        record = measured.records[i]
        at = min(int((record.arrival_s - measured.w0_s) / BLOCK_S), len(blocks) - 1)
        blocks[at][0] += limits.seen(record, kind, measured.look_s) > 1
        blocks[at][1] += 1
    return [(missed, n) for missed, n in blocks if n]
