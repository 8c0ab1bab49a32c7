"""Proof of a task: error tube, heading, arm angles, speeds, quantities, and the circle closed.

Order of sets (`task-proof`, section 0). A candidate bound D(t) of the disturbance gives the tube of
errors; the tube gives the wall of the heading; both give the cells; bounds over the cells give the
disturbance. If that is strictly below D in every segment, no motion leaves the tube (first exit),
and every bound over the cells is one for all motions of the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.certify import Status
from concur.control import Servo
from concur.control.references import Reference
from concur.errors import OutputError
from concur.proofs._cells import branch, reached, solve
from concur.proofs._centre import Centre
from concur.proofs._heading import Heading
from concur.proofs._imperfections import disturbances
from concur.proofs._models import Floats
from concur.proofs._proof import Bound, TaskProof
from concur.proofs._quantities import Found, Motion, Nominal, Radii, Robot, arm, quantities
from concur.proofs._statement import Statement

STEP = 0.005
"""Longest step of the grid of errors and heading (s)."""

LONGEST = 0.125
"""Longest segment (s); shorter where the hand moves by more than half a cell."""

BATCH = 96
"""Cells computed side by side."""

ROUNDS = 7
"""Candidates of the disturbance that are tried."""

THIN = 0.005
"""Edge of the cells of the first estimate (m)."""

LOOSE = 0.08
"""Share of a remainder in the bound of a disturbance above which a cell is halved."""

LEVELS = 2
"""How often a cell is halved at most."""

HEADROOM = 1.04
"""Factor from the disturbance that was found to the next candidate."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Bounds over all segments for one candidate of the disturbance."""

    first: np.ndarray
    x: Floats
    ve: Floats
    wall: Floats
    cells: int
    largest: dict[str, Floats]
    sources: dict[str, Floats]
    fault: str

    @property
    def disturbance(self) -> Floats:
        """Bound of |d| of both outputs over segments, (2, segments)."""
        return np.asarray(sum(self.sources.values()))


class Prover:
    """The declared motion, and sweeps over it."""

    def __init__(
        self, servo: Servo, reference: Reference, duration: float, q0: ArrayLike, s0: ArrayLike
    ) -> None:
        self.robot = Robot(servo)
        self.q0, s0 = np.asarray(q0, dtype=float), np.asarray(s0, dtype=float)
        motion = Motion(reference, self.robot.where)
        sample = reference(0.0)
        x, ve = servo.errors(self.q0, s0, sample.flat_pose, sample.twist)
        self.start = np.array([x, ve])
        self.count, self.step = _grid(duration, motion.pieces.knots, self.robot.where)
        self.centre = Centre(motion, self.robot.channels, self.start, self.step, self.count)
        self.heading: Heading = self.centre.heading(float(self.q0[2]), self.robot.arm_length)
        knots = motion.pieces.knots
        inside = knots[(knots > 0.0) & (knots < duration)]
        motion.check_continuity(inside)
        self.knots = np.round(inside / self.step).astype(int)

    def segments(self, edge: float) -> tuple[np.ndarray, np.ndarray]:
        """First and last steps of segments, short where the relative position changes fast."""
        k = np.arange(self.count)
        nominal = self.centre.nominal(self.heading, k, k + 1, np.zeros(self.count))
        path = np.array([m.c for m in nominal.relative])
        moved = np.cumsum(np.append(0.0, np.linalg.norm(np.diff(path), axis=0)))
        most, first = max(1, int(LONGEST / self.step)), [0]
        ends = {*self.knots.tolist(), self.count}
        for i in range(1, self.count):
            if i in ends or i - first[-1] >= most or moved[i] - moved[first[-1]] > edge / 2:
                first.append(i)
        return np.array(first), np.array([*first[1:], self.count])

    def undisturbed(self, statement: Statement) -> Sweep:
        """Tube and heading without disturbance, before any cell: a necessary condition."""
        tubes = [
            channel.tube(statement.place[k], statement.speed[k], np.zeros(self.count), self.step)
            for k, channel in enumerate(self.robot.channels)
        ]
        x, ve = np.array([t[0] for t in tubes]), np.array([t[1] for t in tubes])
        wall = self.heading.wall(statement.heading, ve[0])
        fault = "" if np.isfinite(wall).all() else "heading"
        return Sweep(np.zeros(1, dtype=int), x, ve, wall, 0, {}, {}, fault)

    def sweep(
        self,
        statement: Statement,
        candidate: Floats,
        segments: tuple[np.ndarray, np.ndarray],
        edge: float,
        progress: Callable[[int, int], None] | None = None,
        every: int = 1,
        levels: int | None = None,
    ) -> Sweep:
        """Bounds over all cells for a candidate of |d| on each step, (2, steps).

        With `every` above 1 only some segments are computed, for an estimate.
        """
        first, last = segments
        tubes = [
            channel.tube(statement.place[k], statement.speed[k], candidate[k], self.step)
            for k, channel in enumerate(self.robot.channels)
        ]
        x, ve = np.array([t[0] for t in tubes]), np.array([t[1] for t in tubes])
        wall = self.heading.wall(statement.heading, ve[0])
        none = Sweep(first, x, ve, wall, 0, {}, {}, "")
        if not np.isfinite(wall).all():
            return _with(none, fault="heading")
        over = [np.maximum.reduceat(part, first, axis=-1) for part in (x, ve, candidate, wall)]
        nominal = self.centre.nominal(self.heading, first, last, over[3])
        lists = reached(nominal.relative, over[0], edge)
        chosen = np.unique([*range(0, len(first), every), len(first) - 1])
        lists = [part if k in chosen else part[:0] for k, part in enumerate(lists)]
        owner = np.repeat(np.arange(len(first)), [len(part) for part in lists])
        cells, index = np.unique(np.vstack(lists), axis=0, return_inverse=True)
        index = index.ravel()
        found = solve(self.robot.equations, cells, self._guess(nominal, cells, owner, index), edge)
        place = self._home()
        fault = branch(cells, found, place, self.q0[self.robot.arm], edge)
        if fault:
            return _with(none, fault=fault)
        largest: dict[str, Floats] = {}
        levels = LEVELS if levels is None else levels
        done, level = 0, 0
        while len(owner):
            whole, wide = arm(self.robot, found), np.zeros(len(owner), dtype=bool)
            for i in range(0, len(owner), BATCH):
                part, own = index[i : i + BATCH], owner[i : i + BATCH]
                radii = Radii(*(values[:, own] for values in over[:3]))
                with np.errstate(all="ignore"):
                    bounds = quantities(self.robot, whole.take(part), nominal.take(own), radii)
                moving = bounds.speed[self.robot.arm_speeds]
                more = {
                    "response_rate": np.einsum("kcib,kb->cib", whole.slopes[..., part], moving),
                    "margin": -whole.margin[part],
                    "pivot": -whole.pivot[part],
                }
                wide[i : i + BATCH] = ~(bounds.loose <= LOOSE) & (level < levels)
                _gather(largest, bounds, more, own, len(first), ~wide[i : i + BATCH])
                if progress:
                    progress(i, len(owner))
            done += int((~wide).sum())
            if not wide.any():
                break
            parents, belongs = (cells[index[wide]], index[wide]), owner[wide]
            level, edge = level + 1, edge / 2
            within = [np.unique(belongs), nominal.relative, over[0]]
            cells, index, owner, of = _children(within, parents, belongs, edge)
            middle = (2.0 * (cells % 2) - 1.0).T / 2
            start = np.array([m.take(of).at(middle) for m in found.models])
            smaller = solve(self.robot.equations, cells, start, edge)
            same = smaller.same_branch(np.arange(len(cells)), np.zeros((3, 1)), of, middle, found)
            if not same.all():
                return _with(none, fault="no unique arm angles in small cells")
            found = smaller
        sources = disturbances(statement, {k: _filled(v) for k, v in largest.items()})
        return Sweep(first, x, ve, wall, done, largest, sources, "")

    def _home(self) -> Floats:
        return np.asarray(self.robot.place(self.q0[self.robot.arm])).ravel()

    def _guess(
        self, nominal: Nominal, cells: np.ndarray, owner: np.ndarray, index: np.ndarray
    ) -> Floats:
        """Angles along the declared motion, each cell with those of a segment that reaches it."""
        relative = np.array([m.c for m in nominal.relative])
        angles, now = np.empty_like(relative), self.q0[self.robot.arm][:, None]
        for k in range(relative.shape[1]):
            now = self.robot.equations.newton(now, relative[:, k : k + 1])[0]
            angles[:, k] = now[:, 0]
        guess = np.empty((3, len(cells)))
        guess[:, index] = angles[:, owner]
        return guess


def prove(
    servo: Servo,
    reference: Reference,
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    statement: Statement,
    edge: float = 0.0125,
    progress: Callable[[int, int], None] | None = None,
) -> TaskProof:
    """Prove that a task keeps its limits for all starts and imperfections of a statement.

    Parameters
    ----------
    servo, reference, duration, q0, s0
        As of `concur.simulate`.
    statement : Statement
        Starts, imperfections and limits.
    edge : float
        Edge of the cells of the hand's position relative to the base (m).
    progress : callable, optional
        Called with the number of cells that are done and that of all.

    Returns
    -------
    TaskProof
        Verdict and bounds.

    Raises
    ------
    OutputError
        If robot, law or reference are not covered.
    """
    prover = Prover(servo, reference, duration, q0, s0)
    early = prover.undisturbed(statement)
    if early.fault:
        return _undecided(prover, statement, early)
    segments = prover.segments(edge)
    first, last = segments
    spread = last - first
    thin = Statement(
        (0.0, 0.0),
        (0.0, 0.0),
        0.0,
        statement.period,
        statement.delay,
        statement.masses,
        statement.torque_error,
        statement.push,
    )
    zero = np.zeros((2, prover.count))
    # Of the declared motion itself, in small cells.
    sweep, held = prover.sweep(thin, zero, segments, min(edge, THIN), levels=0), zero[:, :0]
    for attempt in range(ROUNDS):
        if sweep.fault:
            return _undecided(prover, statement, sweep)
        wanted = sweep.disturbance * (1.08 if attempt == 0 else HEADROOM)
        if attempt > 2 and (sweep.disturbance < held).all():
            break
        held = np.maximum(held, wanted) if attempt else wanted
        trial = np.repeat(held, spread, axis=1)
        every = 1 if attempt > 1 else (6, 3)[attempt]
        sweep = prover.sweep(statement, trial, segments, edge, progress, every)
    else:
        return _undecided(prover, statement, _with(sweep, fault="disturbance"))
    return _proof(prover, statement, sweep)


def _grid(duration: float, knots: Floats, where: str) -> tuple[int, float]:
    """Steps of a uniform grid that contains the knots."""
    count = int(np.ceil(duration / STEP - 1e-9))
    inside = knots[(knots > 0.0) & (knots < duration)]
    for n in range(count, 4 * count):
        places = inside * n / duration
        if (np.abs(places - np.round(places)) < 1e-9).all():
            return n, duration / n
    raise OutputError(
        where,
        expected="times of the reference's points with a common step",
        came=str(inside.tolist()),
        cure="Use times that are multiples of a hundredth of a second.",
    )


def _with(sweep: Sweep, fault: str) -> Sweep:
    return replace(sweep, fault=fault)


def _gather(
    largest: dict[str, Floats],
    found: Found,
    more: dict[str, Floats],
    own: np.ndarray,
    n: int,
    kept: np.ndarray,
) -> None:
    """Largest values by segment; those of negative values for lower bounds."""
    values = {
        "torque": found.torque,
        "torque_rate": found.torque_rate,
        "speed": found.speed,
        "low": -found.angle[0],
        "high": found.angle[1],
        "response": found.response,
        "weights": found.weights,
        "loose": found.loose,
        "held": found.held,
        **more,
    }
    for name, part in values.items():
        part = np.where(np.isnan(part), np.inf, part)
        held = largest.setdefault(name, np.full((*part.shape[:-1], n), -np.inf))
        np.maximum.at(np.moveaxis(held, -1, 0), own[kept], np.moveaxis(part, -1, 0)[kept])


def _filled(values: Floats) -> Floats:
    """Segments that were not computed take the larger of the nearest ones that were."""
    # Where there is no bound the value is infinite: that is not what is filled.
    given = np.flatnonzero((values.reshape(-1, values.shape[-1]) > -np.inf).any(axis=0))
    places = np.arange(values.shape[-1])
    after = given[np.minimum(np.searchsorted(given, places), len(given) - 1)]
    before = given[np.maximum(np.searchsorted(given, places, side="right") - 1, 0)]
    return np.asarray(np.maximum(values[..., before], values[..., after]))


def _children(
    within: list[Any], parents: tuple[np.ndarray, np.ndarray], belongs: np.ndarray, edge: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Halves of cells that the segments still reach: cells, index and segment of each job, parents.

    Of the segments, their relative positions and radii; of the parents' cells and numbers with the
    segment of each; and the edge of the halves.
    """
    segments, relative, x = within
    lists, owner = [], []
    for k in segments.tolist():
        own = {tuple(c) for c in parents[0][belongs == k].tolist()}
        near = reached([m.take(np.array([k])) for m in relative], x[:, k : k + 1], edge)[0]
        kept = np.array([tuple(c) in own for c in (near // 2).tolist()], dtype=bool)
        lists.append(near[kept])
        owner += [k] * int(kept.sum())
    cells, index = np.unique(np.vstack(lists), axis=0, return_inverse=True)
    number = {tuple(c): int(n) for c, n in zip(parents[0].tolist(), parents[1], strict=True)}
    of = np.array([number[tuple(c)] for c in (cells // 2).tolist()], dtype=int)
    return cells, index.ravel(), np.array(owner, dtype=int), of


def _bounds(prover: Prover, statement: Statement, sweep: Sweep) -> list[Bound]:
    """Bounds of all quantities with their limits."""
    servo, first, step = prover.robot.servo, sweep.first, prover.step
    times, found = first * step, list[Bound]()

    def add(
        kind: str, name: str, unit: str, values: Floats, limit: float | None, sign: float
    ) -> None:
        k = int(np.argmax(values))
        found.append(Bound(kind, name, unit, sign * float(values[k]), limit, float(times[k]), sign))

    for i, name in enumerate(servo.model.control_names):
        limit = statement.torques.get(name)
        add("torque", name, "N m", sweep.largest["torque"][i], limit, 1.0)
    for i, name in enumerate(servo.model.shape_names):
        add("speed", name, "rad/s", sweep.largest["speed"][i], statement.speeds.get(name), 1.0)
    # Coordinates of the arm follow those of the base, one for each shape velocity.
    for i, entry in enumerate(prover.robot.arm):
        name = servo.model.shape_names[entry - 3]
        low, high = statement.angles.get(name, (None, None))
        add("angle above", name, "rad", sweep.largest["low"][i], low, -1.0)
        add("angle below", name, "rad", sweep.largest["high"][i], high, 1.0)
    add("margin", "decoupling", "", sweep.largest["margin"], statement.margin, -1.0)
    add("pivot", "of the law", "", sweep.largest["pivot"], servo.refused_below, -1.0)
    grid = np.arange(prover.count) * step
    for k, output in enumerate(servo.outputs):
        channel = prover.robot.channels[k]
        flow = channel.largest(step, prover.count)
        own = np.linalg.norm(prover.start[:, channel.rows], axis=1)
        path = np.linalg.norm(
            np.einsum("jb,jd->db", channel.flow(grid)[0], prover.start[:, channel.rows]), axis=0
        )
        # Between two times of the grid the centre moves by at most its speed times the step.
        moved = step * (flow[1, 0] * own[0] + flow[1, 1] * own[1])
        limit = statement.corridor.get(output.name)
        value = path + moved + sweep.x[k]
        i = int(np.argmax(value))
        found.append(
            Bound("corridor", output.name, "m", float(value[i]), limit, float(grid[i]), 1.0)
        )
    return found


def _proof(prover: Prover, statement: Statement, sweep: Sweep) -> TaskProof:
    bounds = _bounds(prover, statement, sweep)
    status = Status.PROVED if all(bound.kept for bound in bounds) else Status.UNDECIDED
    broken = [str(bound) for bound in bounds if not bound.kept]
    reason = "" if status is Status.PROVED else "Not shown: " + "; ".join(broken)
    cure = "" if not broken else "Take smaller cells, calmer gains, a nearer start or wider limits."
    return TaskProof(
        status,
        reason,
        cure,
        statement,
        tuple(bounds),
        sweep.first * prover.step,
        sweep.sources,
        sweep.x,
        sweep.ve,
        sweep.wall,
        sweep.cells,
        prover.heading.growth,
    )


def _undecided(prover: Prover, statement: Statement, sweep: Sweep) -> TaskProof:
    growth = prover.heading.growth
    if sweep.fault == "heading" and growth > 10.0:
        reason = f"the heading is unstable: an error of it grows up to {growth:.2g}-fold"
        cure = "Put the base's point behind the axle for reversing, or drive forward."
    elif sweep.fault == "heading":
        reason = "the heading has no wall: the base's velocity error is as large as its speed"
        cure = "Start nearer to the reference, or drive faster."
    elif sweep.fault == "disturbance":
        largest = max(sweep.sources, key=lambda name: float(sweep.sources[name].max()))
        reason = f"the disturbance grows with the tube; its largest source is {largest}"
        cure = f"Reduce {largest}, or raise the gains."
    else:
        reason, cure = sweep.fault, "Start nearer to the reference, or keep the arm bent."
    return TaskProof(
        Status.UNDECIDED,
        reason,
        cure,
        statement,
        (),
        sweep.first * prover.step,
        sweep.sources,
        sweep.x,
        sweep.ve,
        sweep.wall,
        sweep.cells,
        growth,
    )
