"""Proof of a task: error tube, heading, arm angles, speeds, quantities, and the circle closed.

Order of sets (`task-proof`, section 0). A candidate bound D(t) of the disturbance gives the tube of
errors; the tube gives the wall of the heading; both give the cells; bounds over the cells give the
disturbance. If that is strictly below D in every segment, no motion leaves the tube (first exit),
and every bound over the cells is one for all motions of the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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

ROUNDS = 5
"""Candidates of the disturbance that are tried."""

THIN = 0.005
"""Edge of the cells of the first estimate (m)."""

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
    ) -> Sweep:
        """Bounds over all cells for a candidate of |d| on each step, (2, steps)."""
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
        owner = np.repeat(np.arange(len(first)), [len(part) for part in lists])
        cells, index = np.unique(np.vstack(lists), axis=0, return_inverse=True)
        index = index.ravel()
        found = solve(self.robot.equations, cells, self._guess(nominal, cells, owner, index), edge)
        place = self._home()
        fault = branch(cells, found, place, self.q0[self.robot.arm], edge)
        if fault:
            return _with(none, fault=fault)
        whole = arm(self.robot, found)
        largest: dict[str, Floats] = {}
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
            _gather(largest, bounds, more, own, len(first))
            if progress:
                progress(i, len(owner))
        sources = disturbances(statement, largest)
        return Sweep(first, x, ve, wall, len(owner), largest, sources, "")

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
    sweep, held = prover.sweep(thin, zero, segments, min(edge, THIN)), zero[:, :0]
    for attempt in range(ROUNDS):
        if sweep.fault:
            return _undecided(prover, statement, sweep)
        wanted = sweep.disturbance * (1.08 if attempt == 0 else HEADROOM)
        if attempt and (sweep.disturbance < held).all():
            break
        held = np.maximum(held, wanted) if attempt else wanted
        sweep = prover.sweep(statement, np.repeat(held, spread, axis=1), segments, edge, progress)
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
    largest: dict[str, Floats], found: Found, more: dict[str, Floats], own: np.ndarray, n: int
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
        np.maximum.at(np.moveaxis(held, -1, 0), own, np.moveaxis(part, -1, 0))


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
