"""Least squares with coefficients that can't be negative."""

from collections.abc import Sequence

_TINY = 1e-12


def non_negative(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> list[float]:
    """Return the x ≥ 0 that makes Σ (row·x − target)² least.

    The active-set method of Lawson and Hanson, on the normal equations of columns scaled to length
    1. A column of zeros gets 0.
    """
    width = len(rows[0])
    scale = [sum(row[j] ** 2 for row in rows) ** 0.5 or 1.0 for j in range(width)]
    gram = [
        [sum(row[i] * row[j] for row in rows) / (scale[i] * scale[j]) for j in range(width)]
        for i in range(width)
    ]
    goal = [
        sum(row[i] * target for row, target in zip(rows, targets, strict=True)) / scale[i]
        for i in range(width)
    ]
    return [x / s for x, s in zip(_active_set(gram, goal), scale, strict=True)]


def _active_set(gram: list[list[float]], goal: list[float]) -> list[float]:
    width = len(goal)
    x = [0.0] * width
    free: list[int] = []
    floor = _TINY * max(map(abs, goal))
    for _ in range(3 * width):
        pull = [goal[i] - sum(map(_times, gram[i], x)) for i in range(width)]
        best = max((i for i in range(width) if i not in free), key=pull.__getitem__, default=None)
        if best is None or pull[best] <= floor:
            break
        free.append(best)
        wanted = _solve(gram, goal, free)
        while min(wanted) <= 0:
            share = min(
                x[i] / (x[i] - w) if x[i] > w else 1.0
                for i, w in zip(free, wanted, strict=True)
                if w <= 0
            )
            for i, w in zip(free, wanted, strict=True):
                x[i] += share * (w - x[i])
            free = [i for i in free if x[i] > _TINY]
            x = [value if i in free else 0.0 for i, value in enumerate(x)]
            if not free:
                break
            wanted = _solve(gram, goal, free)
        for i, w in zip(free, wanted, strict=False):
            x[i] = w
    return x


def _times(a: float, b: float) -> float:
    return a * b


def _solve(gram: list[list[float]], goal: list[float], free: Sequence[int]) -> list[float]:
    """Solve the equations of the free columns by elimination; a dependent one gets 0."""
    size = len(free)
    lines = [[gram[i][j] for j in free] + [goal[i]] for i in free]
    for k in range(size):
        pivot = max(range(k, size), key=lambda r: abs(lines[r][k]))
        lines[k], lines[pivot] = lines[pivot], lines[k]
        if abs(lines[k][k]) < _TINY:
            lines[k][k] = float("inf")
        for r in range(k + 1, size):
            factor = lines[r][k] / lines[k][k]
            for c in range(k + 1, size + 1):
                lines[r][c] -= factor * lines[k][c]
    x = [0.0] * size
    for k in reversed(range(size)):
        rest = sum(lines[k][c] * x[c] for c in range(k + 1, size))
        x[k] = (lines[k][size] - rest) / lines[k][k]
    return x
