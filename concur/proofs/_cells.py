"""Lattice of cells of the hand's position relative to the base, and those that a segment reaches.

A segment reaches the cells within c(t, delta) + x_b - x_h: c the declared relative position, x_b of
a horizontal disc and x_h of a ball (`task-proof`, section 2).

**What holds.** `reached` returns every cell that contains a relative position of the segment. If
`branch` finds no fault, all cells together have one continuous root, the one of the start.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from concur.proofs._configurations import Configurations, Equations
from concur.proofs._models import Floats, Model
from concur.proofs._quantities import CLOCK, DELTA, SPACE

TIMES, HEADINGS = 8, 7
"""Parts of a segment and of its headings in the test which cells are reached."""


def reached(relative: list[Model], x: Floats, edge: float) -> list[np.ndarray]:
    """Indices (k, 3) of the cells that each segment reaches; radii x (2, b) of base and hand."""
    d = np.zeros((DELTA + 1, TIMES * HEADINGS))
    ticks = [(2 * np.arange(n) + 1) / n - 1 for n in (TIMES, HEADINGS)]
    d[CLOCK], d[DELTA] = (part.ravel() for part in np.meshgrid(*ticks))
    found = []
    for b in range(x.shape[1]):
        parts = [m.take(np.array([b])) for m in relative]
        points = np.array([m.at(d) for m in parts])
        # Within a part the position differs by the linear form, and twice the quadratic one.
        slack = np.sqrt(
            sum(
                (
                    np.abs(m.padded(DELTA + 1)[0][CLOCK]) / TIMES
                    + np.abs(m.padded(DELTA + 1)[0][DELTA]) / HEADINGS
                    + 2 * m.quadratic
                    + m.r
                )
                ** 2
                for m in parts
            )
        )[0]
        reach = np.array([x[:, b].sum()] * 2 + [x[1, b]]) + slack
        low = np.floor((points.min(axis=1) - reach) / edge).astype(int)
        high = np.floor((points.max(axis=1) + reach) / edge).astype(int)
        axes = [np.arange(i, j + 1) for i, j in zip(low, high, strict=True)]
        cells = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
        apart = np.abs((cells[:, :, None] + 0.5) * edge - points) - edge / 2
        apart = np.maximum(apart - 1e-12, 0.0)
        across = np.maximum(np.hypot(apart[:, 0], apart[:, 1]) - x[0, b] - slack, 0.0)
        inside = np.hypot(across, apart[:, 2]) <= (x[1, b] + slack) * (1 + 1e-12)
        found.append(cells[inside.any(axis=1)])
    return found


def solve(equations: Equations, cells: np.ndarray, guess: Floats, edge: float) -> Configurations:
    """Angles over cells (k, 3), near guesses (3, k)."""
    middle = (cells.T + 0.5) * edge
    place = [SPACE.symbol(k, np.full(len(cells), edge / 2), middle[k]) for k in range(3)]
    return equations.solve(place, guess)


def branch(
    cells: np.ndarray, found: Configurations, start: Floats, angles: Floats, edge: float
) -> str:
    """Name a fault of the roots' continuity between touching cells and at the start; or empty.

    `start` is the relative position (3,) at time 0 and `angles` the arm's angles there.
    """
    if not found.solved.all():
        middle = (cells[~found.solved][0] + 0.5) * edge
        return f"no unique arm angles near relative position {np.round(middle, 3).tolist()} m"
    place = {tuple(cell): k for k, cell in enumerate(cells.tolist())}
    for offset in product((-1, 0, 1), repeat=3):
        if offset <= (0, 0, 0):
            continue
        pairs = [
            (k, place[there])
            for cell, k in place.items()
            if (there := (cell[0] + offset[0], cell[1] + offset[1], cell[2] + offset[2])) in place
        ]
        if not pairs:
            continue
        first, second = np.array(pairs).T
        at = np.repeat(np.array(offset, dtype=float)[:, None], len(first), axis=1)
        same = found.same_branch(first, at, second, -at)
        if not same.all():
            middle = (cells[first[~same][0]] + 0.5) * edge
            return f"two branches of the arm near {np.round(middle, 3).tolist()} m"
    home = tuple(np.floor(start / edge).astype(int).tolist())
    if home not in place:
        return "the start is outside its own cells"
    k = place[home]
    d = 2 * (start / edge - np.array(home)) - 1
    for i, model in enumerate(found.models):
        value = model.take(np.array([k])).at(d[:, None])[0]
        if not abs(value - angles[i]) + 1e-9 <= found.unique[i, k]:
            return "the start is on another branch of the arm"
    return ""
