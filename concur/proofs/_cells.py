"""Lattice of cells of the hand's position relative to the base, and those that a segment reaches.

A segment reaches the cells within c(t, delta) + x_b - x_h: c the declared relative position, x_b of
a horizontal disc and x_h of a ball (`task-proof`, section 2).

**What holds.** `reached` returns every cell that contains a relative position of the segment. If
`branch` finds no fault for cells since the first, `holds` none at the start and `halves` none, all
cells have one continuous root, the one of the start.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from concur.proofs._configurations import Configurations
from concur.proofs._models import Floats, Model
from concur.proofs._quantities import CLOCK, DELTA, SPACE, Arm, Robot, arm

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


class Lattice:
    """Cells of one edge with their angles and matrices, each solved when it is first needed.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    edge : float
        Edge of the cells (m).
    """

    def __init__(self, robot: Robot, edge: float) -> None:
        self.robot, self.edge = robot, edge
        self.cells = np.zeros((0, 3), dtype=int)
        self.place: dict[tuple[int, ...], int] = {}
        self.arm: Arm | None = None

    @property
    def found(self) -> Configurations:
        """Angles of all cells; at least one is known."""
        assert self.arm is not None
        return self.arm.phi

    def numbers(self, cells: np.ndarray) -> np.ndarray:
        """Numbers of known cells (k, 3)."""
        return np.array([self.place[tuple(cell)] for cell in cells.tolist()], dtype=int)

    def add(self, cells: np.ndarray, guess: Floats) -> str:
        """Solve cells (k, 3) that are new, near guesses (3, k); name the fault of one, or empty."""
        fresh = np.array([tuple(cell) not in self.place for cell in cells.tolist()], dtype=bool)
        if not fresh.any():
            return ""
        cells, before = cells[fresh], len(self.cells)
        middle = (cells.T + 0.5) * self.edge
        half = np.full(len(cells), self.edge / 2)
        where = [SPACE.symbol(k, half, middle[k]) for k in range(3)]
        solved = self.robot.equations.solve(where, guess[:, fresh])
        if not solved.solved.all():
            point = np.round(middle.T[~solved.solved][0], 3).tolist()
            return f"no unique arm angles near relative position {point} m"
        own = arm(self.robot, solved)
        self.arm = own if self.arm is None else self.arm.joined(own)
        self.cells = np.vstack([self.cells, cells])
        self.place |= {tuple(cell): before + k for k, cell in enumerate(cells.tolist())}
        return ""

    def branch(self, since: int) -> str:
        """Name a fault of continuity between cells from number `since` on and those they touch."""
        pairs = [
            (k, there, offset)
            for k in range(since, len(self.cells))
            for offset in product((-1, 0, 1), repeat=3)
            if (there := self.place.get(tuple((self.cells[k] + offset).tolist()), k)) != k
        ]
        if not pairs:
            return ""
        first, second = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
        at = np.array([pair[2] for pair in pairs], dtype=float).T
        same = self.found.same_branch(first, at, second, -at)
        if same.all():
            return ""
        point = (self.cells[first[~same][0]] + 0.5) * self.edge
        return f"two branches of the arm near {np.round(point, 3).tolist()} m"

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

    def halves(self, finer: Lattice, cells: np.ndarray) -> str:
        """Solve halves (k, 3) of known cells in the finer lattice; each has its cell's root."""
        of, before = self.numbers(cells // 2), len(finer.cells)
        middle = (2.0 * (cells % 2) - 1.0).T / 2
        guess = np.array([m.take(of).at(middle) for m in self.found.models])
        fault = finer.add(cells, guess)
        fresh = finer.numbers(cells) if not fault else np.zeros(0, dtype=int)
        new = fresh >= before
        if fault or not new.any():
            return fault
        zero = np.zeros((3, 1))
        same = finer.found.same_branch(fresh[new], zero, of[new], middle[:, new], self.found)
        return "" if same.all() else "no unique arm angles in small cells"
