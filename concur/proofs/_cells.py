"""Lattice of cells of the hand's position relative to the base, and those that a segment reaches.

A segment reaches the cells within c(t, delta) + x_b - x_h: c the declared relative position, x_b of
a horizontal disc and x_h of a ball (`task-proof`, section 2).

**What holds.** `reached` returns every cell that contains a relative position of the segment. If
`add` finds no fault, and `holds` none at the start, all known cells that a motion passes have one
continuous root, the one of the start: successive cells touch, and have the same root where they do.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from concur._polynomials import Floats, Model
from concur.proofs._added import Added
from concur.proofs._configurations import Configurations
from concur.proofs._quantities import CLOCK, DELTA, SPACE, Arm, arm
from concur.proofs._wheeled import Robot

TIMES, HEADINGS = 8, 13
"""Parts of a segment and of its headings in the test which cells are reached."""

MOST = 50_000
"""Most cells of the box around what a segment reaches, and most halves of its cells."""


def reached(
    relative: list[Model], x: Floats, edge: float, some: np.ndarray | None = None
) -> np.ndarray | None:
    """Indices (k, 3) of the cells that a segment reaches; radii x (2,) of base and hand.

    Of `some` cells, or of all; None if there are more than `MOST`, or no bounds of them.
    """
    d = np.zeros((DELTA + 1, TIMES * HEADINGS))
    ticks = [(2 * np.arange(n) + 1) / n - 1 for n in (TIMES, HEADINGS)]
    d[CLOCK], d[DELTA] = (part.ravel() for part in np.meshgrid(*ticks))
    points = np.array([m.at(d) for m in relative])
    # Within a part the position differs by shares of the linear form, and of twice the quadratic
    # one, d'Qd - e'Qe = (d + e)'Q(d - e). Like x[1] this is a ball, and x[0] is a disc.
    slack = np.sqrt(
        sum(
            (
                np.abs(m.padded(DELTA + 1)[0][CLOCK]) / TIMES
                + np.abs(m.padded(DELTA + 1)[0][DELTA]) / HEADINGS
                + 2 * m.quadratic / min(TIMES, HEADINGS)
                + m.r
            )
            ** 2
            for m in relative
        )
    )[0]
    if some is not None and len(some) > MOST:
        return None
    cells = some
    if cells is None:
        reach = np.array([x.sum(), x.sum(), x[1]]) + slack
        low = np.floor((points.min(axis=1) - reach) / edge)
        high = np.floor((points.max(axis=1) + reach) / edge)
        if not np.prod(high - low + 1) <= MOST:
            return None
        axes = [np.arange(i, j + 1, dtype=int) for i, j in zip(low, high, strict=True)]
        cells = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
    apart = np.abs((cells[:, :, None] + 0.5) * edge - points) - edge / 2
    apart = np.maximum(apart - 1e-12, 0.0)
    across = np.maximum(np.hypot(apart[:, 0], apart[:, 1]) - x[0], 0.0)
    outside = np.hypot(across, apart[:, 2]) > (x[1] + slack) * (1 + 1e-12)
    return np.asarray(cells[~outside.all(axis=1)])


class Lattice:
    """Cells of one edge with their angles and matrices, each solved when it is first needed.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    edge : float
        Edge of the cells (m).
    added : Added
        Quantities that the statement adds.
    coarser : Lattice, optional
        Lattice whose cells have twice the edge.
    """

    def __init__(
        self, robot: Robot, edge: float, added: Added, coarser: Lattice | None = None
    ) -> None:
        self.robot, self.edge, self.added = robot, edge, added
        self.cells = np.zeros((0, 3), dtype=int)
        self.place: dict[tuple[int, ...], int] = {}
        self.arm: Arm | None = None
        self.coarser, self.finer = coarser, None
        if coarser is not None:
            coarser.finer = self

    finer: Lattice | None

    @property
    def found(self) -> Configurations:
        """Angles of all cells; at least one is known."""
        assert self.arm is not None
        return self.arm.phi

    def numbers(self, cells: np.ndarray) -> np.ndarray:
        """Numbers of known cells (k, 3)."""
        return np.array([self.place[tuple(cell)] for cell in cells.tolist()], dtype=int)

    def add(self, cells: np.ndarray, guess: Floats) -> str:
        """Add the cells (k, 3) that are new, near guesses (3, k); name a fault, or empty.

        All known cells, also of other lattices, have the same root where they touch.
        """
        fresh = np.array([tuple(cell) not in self.place for cell in cells.tolist()], dtype=bool)
        if not fresh.any():
            return ""
        cells, before = cells[fresh], len(self.cells)
        middle = (cells.T + 0.5) * self.edge
        half = np.full(len(cells), self.edge / 2)
        where = [SPACE.symbol(k, half, middle[k]) for k in range(3)]
        solved = self.robot.equations.solve(where, guess[:, fresh])
        if not solved.solved.all():
            return f"no unique arm angles near relative position {_point(middle, ~solved.solved)} m"
        known = self.cells, self.place, self.arm
        own = arm(self.robot, solved, self.added)
        self.arm = own if self.arm is None else self.arm.joined(own)
        self.cells = np.vstack([self.cells, cells])
        self.place = self.place | {tuple(c): before + k for k, c in enumerate(cells.tolist())}
        same = np.ones(len(cells), dtype=bool)
        for lattice, pairs in self._touching(before):
            if pairs:
                first, second = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
                at, there = (np.array([pair[i] for pair in pairs], dtype=float).T for i in (2, 3))
                agree = self.found.same_branch(first, at, second, there, lattice.found)
                same[first[~agree] - before] = False
        if same.all():
            return ""
        self.cells, self.place, self.arm = known
        return f"two branches of the arm near relative position {_point(middle, ~same)} m"

    def _touching(self, since: int) -> list[tuple[Lattice, list[tuple[Any, ...]]]]:
        """Pairs of cells from number `since` on with others: numbers, symbols of a common point."""
        beside, above, below = list[Any](), list[Any](), list[Any]()
        for k in range(since, len(self.cells)):
            cell = self.cells[k]
            for offset in product((-1, 0, 1), repeat=3):
                there = self.place.get(tuple((cell + offset).tolist()), k)
                if there != k:
                    beside.append((k, there, offset, [-x for x in offset]))
            whole = self.coarser.place.get(tuple((cell // 2).tolist())) if self.coarser else None
            if whole is not None:
                above.append((k, whole, [0.0] * 3, (2.0 * (cell % 2) - 1.0) / 2))
            for side in product((0, 1), repeat=3) if self.finer else ():
                part = (
                    self.finer.place.get(tuple((2 * cell + side).tolist())) if self.finer else None
                )
                if part is not None:
                    below.append((k, part, np.array(side) - 0.5, [0.0] * 3))
        pairs = [(self, beside), (self.coarser, above), (self.finer, below)]
        return [(lattice, part) for lattice, part in pairs if lattice is not None]

    def holds(self, start: Floats, angles: Floats) -> str:
        """Name the fault if the relative position (3,) has other angles (3,) here; or empty."""
        home = np.floor(start / self.edge).astype(int)
        k = self.place.get(tuple(home.tolist()))
        if k is None:
            return "the start is outside its own cells"
        d = 2 * (start / self.edge - home) - 1
        for i, model in enumerate(self.found.models):
            value = model.take(np.array([k])).at(d[:, None])[0]
            if not abs(value - angles[i]) + 1e-9 <= self.found.unique[i, k]:
                return "the start is on another branch of the arm"
        return ""

    def halves(self, cells: np.ndarray) -> Floats:
        """Angles (3, k) of known cells in the middles of their halves (k, 3)."""
        middle = (2.0 * (cells % 2) - 1.0).T / 2
        of = self.numbers(cells // 2)
        return np.array([m.take(of).at(middle) for m in self.found.models])


def _point(middle: Floats, faulty: np.ndarray) -> list[float]:
    return [float(x) for x in np.round(middle.T[faulty][0], 3)]
