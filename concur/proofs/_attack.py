"""Sampled worlds inside the statement of a proof: an attack that shares nothing with the prover.

Each world has its own start, inertias, torque errors and pushes in the statement; the full-order
robot moves under held torques in a compiled loop (`codegen.Rollout`). A tick of the law also gives
the quantities that a proof bounds: torques, speeds, angles, margins, distances from the reference,
and distances from the declared closed-loop motion, that of the full-order robot without hold.

A sample proves nothing. One world outside a bound refutes the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from concur._polynomials import Floats
from concur.codegen import Batch, Demand, Rollout
from concur.control import Servo
from concur.errors import OutputError, needed
from concur.proofs._bases import base_of
from concur.proofs._declared_motion import declared_motion, true_errors
from concur.proofs._proof import TaskProof
from concur.proofs._provable import Provable, plain_law
from concur.proofs._quantity import Quantity, quantities_of
from concur.proofs._statement import Statement
from concur.proofs._within import Balls, Starts, scaled_masses
from concur.robot import Tree, base_wrench
from concur.simulation import Plant, Program, loop_program

SQUARINGS = 6
"""Squarings of a matrix for its largest eigenvalue, from below."""

TUBE = "tube"
"""Kinds of the quantities that are distances from the declared motion begin with this word."""


@lru_cache(maxsize=1)
def _loop(servo: Servo, period: float) -> tuple[Plant, Program]:
    """Plant of uncertain bodies and its loop: a proof and the samples about it share them."""
    robot, parts = servo.model.robot, ("inertia.mass", "inertia.moments")
    plant = Plant(
        robot, uncertain=[f"{body.name}.{part}" for body in robot.bodies for part in parts]
    )
    return plant, loop_program(servo, plant, dt=period)


class Attack:
    """Compiled loop of worlds inside the statement of a task.

    Parameters
    ----------
    task : concur.io.Task
        A task with a table ``[proof]``.
    proof : TaskProof, optional
        Its proof, with whose radii distances from the declared motion are compared.
    threads : int
        Threads that share the worlds.

    Attributes
    ----------
    quantities : tuple of Quantity
        Recorded quantities.

    Raises
    ------
    OutputError
        If the task has no statement, its torques are not held, or robot or law are not covered.
    """

    def __init__(self, task: Provable, proof: TaskProof | None = None, threads: int = 1) -> None:
        given = task.statement
        if given is None or not given.period:
            raise OutputError(
                str(task.path),
                expected="a table [proof] with `period` above zero",
                came="no table" if given is None else "torques that are not held",
                cure="Add `period`: worlds are simulated with held torques.",
            )
        self.task, self.statement, self.proof = task, given, proof
        servo = self.servo = plain_law(task.servo)
        self.base = base_of(servo)
        self.ticks = held_ticks(given, task.duration)
        if not self.ticks:
            raise OutputError(
                str(task.path),
                expected="a duration that is a whole number of periods of [proof]",
                came=f"{task.duration:g} s and {given.period:g} s",
                cure="Change one of them.",
            )
        self.plant, self.program = _loop(servo, given.period)
        q0 = np.array(task.q0, dtype=float)
        self.starts = Starts(servo, self.program, self.base, task.reference(0.0), q0)
        self.quantities = tuple(self._quantities())
        sizes = [output.dim for output in servo.outputs]
        counts = self.base.size, len(servo.model.robot.bodies), servo.nu
        self.balls = Balls.of(given, sizes, *counts, self._read_errors())
        self._reads = sum(size for name, size, _ in self.balls.parts if name == "read")
        self._tubes = sum(made.kind.startswith(TUBE) for made in self.quantities)
        times: Floats = np.asarray(given.period * np.arange(self.ticks), dtype=np.float64)
        centre = declared_motion(task, self.base, times)
        self._start = np.split(centre[0, : 2 * servo.size], 2)
        reference = self.program.reference(task.reference, self.ticks)
        self._rows = np.column_stack([reference, centre, self._radii()])
        rollout = (self._tick(), self._step(), self.program.steps_per_tick)
        self.rollout = Rollout(*rollout, threads=threads)

    def __call__(
        self, points: Floats, stride: int | None = None
    ) -> tuple[Floats, Floats, Floats | None]:
        """Worst value of each quantity in each world, (B, n), and all over time, (B, n, k).

        Tubes count in the second half of the task. The second result is the largest ratio of
        their distances to the proved radii in the whole task, (B,). Not a number in a world that
        stops.
        """
        last, demands, count = self.ticks - 1, list[Demand](), len(self.quantities)
        # The status comes first, then quantities of ticks, the ratio of tubes, and the ground's,
        # which depend on the torques that have arrived.
        ground = self.statement.ground
        ratio = 1 + count - (len(ground.quantities) if ground else 0)
        signals = [k for k in range(1, count + 2) if k != ratio]
        for k, made in zip(signals, self.quantities, strict=True):
            first = self.ticks // 2 if made.kind.startswith(TUBE) else 0
            demands.append(Demand(k, "max" if made.sign > 0 else "min", first, last))
        demands.append(Demand(ratio, "max", 0, last))
        rolled = self._roll(points, demands, stride)
        values = np.where((rolled.stopped == self.ticks)[:, None], rolled.values, np.nan)
        runs = None if rolled.record is None else rolled.record.y[:, :, signals].transpose(0, 2, 1)
        return values[:, :-1], values[:, -1], runs

    def ascend(self, k: int, point: Floats, budget: int, seed: int = 0) -> tuple[Floats, Floats]:
        """Worlds that CMA-ES tries for the worst value of quantity k, from a point (d,).

        Returns the values of all quantities, (B, n), and the ratios of tubes, (B,).
        """
        cma = needed("cmaes", "verify", "search of the worst world").CMA
        sign, size = self.quantities[k].sign, max(16, 4 + int(3 * np.log(self.balls.size)))
        search = cma(mean=point, sigma=0.3, seed=seed, population_size=size)
        found = []
        for _ in range(max(1, budget // size)):
            asked = np.array([search.ask() for _ in range(size)])
            values, excess, _ = self(asked)
            found.append((values, excess))
            own = np.nan_to_num(sign * values[:, k], nan=1e30)
            search.tell([(z, -value) for z, value in zip(asked, own.tolist(), strict=True)])
            if search.should_stop():
                break
        return np.vstack([part for part, _ in found]), np.concatenate([part for _, part in found])

    def _roll(self, points: Floats, demands: Sequence[Demand], record: int | None = None) -> Any:
        given = self.balls.inside(np.atleast_2d(points))
        x, ve = self._start[0] + given["x"], self._start[1] + given["ve"]
        numbers = self.program.numbers(scaled_masses(self.plant, given["masses"]))
        flips, read = self.task.duration * given["flip"], [given["read"]] if self._reads else []
        batch = Batch(
            self.starts(x, ve, given["base"], numbers, given.get("momentum", 0.0)),
            np.column_stack([numbers, given["torque"], given["push"], *read, flips]),
            worlds=np.arange(len(x)),
            delay=self.statement.delay / self.statement.period,
        )
        return self.rollout(batch, self._rows, ticks=self.ticks, demands=demands, record=record)

    def _quantities(self) -> list[Quantity]:
        servo, base, robot = self.servo, self.base, self.servo.model.robot
        places = {at.start: robot.bodies[k].joint_label for k, at in enumerate(robot.q_spans)}
        found = quantities_of(servo, [places[k] for k in self._angles])
        # Of a pose a metre counts as a radian.
        posed = ["rad" in output.coordinate_units for output in servo.outputs]
        for kind, units in (("x", ("m", "(m, rad)")), ("ve", ("m/s", "(m/s, rad/s)"))):
            pairs = zip(servo.outputs, posed, strict=True)
            found += [Quantity(f"{TUBE} {kind}", own.name, units[both]) for own, both in pairs]
        tube = Quantity(f"{TUBE} {base.name}", "base", base.unit)
        return [*found, tube, *self.statement.added]

    @property
    def _angles(self) -> list[int]:
        """Coordinates of the joints beyond the base that outputs depend on."""
        return [k for k in self.starts.free if k >= self.base.rows.stop]

    def _tick(self) -> ca.Function:
        """The law's tick with the quantities as signals, behind its status."""
        servo, program, size = self.servo, self.program, self.servo.size
        q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", servo.nv)
        pose, twist = ca.SX.sym("pose", servo.pose_size), ca.SX.sym("twist", size)
        at = self.base.rows
        centre = ca.SX.sym("c", 2 * size + at.stop - at.start)
        radii, u = ca.SX.sym("b", self._tubes), ca.SX.sym("u", servo.nu)
        pivot = ca.SX.sym("pivot")
        x, ve = true_errors(servo, q, v, pose, twist)
        angles, s = q[self._angles], v[list(servo.model.shape)]
        ends = np.cumsum([0, *(output.dim for output in servo.outputs)]).tolist()
        spans = [slice(*ends[k : k + 2]) for k in range(len(ends) - 1)]
        both = x - centre[:size], ve - centre[size : 2 * size]
        tubes = [ca.norm_2(part[span]) for part in both for span in spans]
        tubes = ca.vertcat(*tubes, self.base.distance(q, centre[2 * size :]))
        rows = [ca.fabs(u), ca.fabs(s), angles, angles, _margin(servo, q), pivot]
        # The law acts on what it reads, and expressions are about that.
        read = ca.SX.sym("read", self._reads)
        seen = ca.vertcat(angles, s) + (read[3:] if self._reads else 0.0)
        values = seen[: len(self._angles)], seen[len(self._angles) :], u
        rows += [*_apart(servo, servo.output(q) - pose), tubes, *self._own(q, *values)]
        rows.append(ca.mmax(tubes / radii))
        given = [q, v, pose, twist, centre, radii, u, pivot, read]
        signals = ca.Function("signals", given, [ca.vertcat(*rows)], {"cse": True})
        x0, p, n = (
            ca.MX.sym(name, size) for name, size in (("x", program.nx), ("p", self._np), ("n", 0))
        )
        own = program.tick.size1_in(2)
        r = ca.MX.sym("r", self._rows.shape[1])
        read = _sign(x0[program.states["time"]], p[-1]) * p[self._np - 1 - self._reads : -1]
        shown = x0 + self._shift() @ read
        after, u, y = program.tick(shown, p[: program.n_numbers], r[:own], n)
        for name in ("q", "v"):
            after[program.states[name]] = x0[program.states[name]]
        parts = [
            r[: servo.pose_size],
            r[servo.pose_size : servo.pose_size + size],
            r[own : -self._tubes],
            r[-self._tubes :],
        ]
        states = (x0[program.states[name]] for name in ("q", "v"))
        seen = signals(*states, *parts, u, y[program.signals.index("pivot")], read)
        return ca.Function("tick", [x0, p, r, n], [after, u, ca.vertcat(y[0], seen)])

    def _step(self) -> ca.Function:
        """The plant's step with torque errors and pushes, whose sign changes once."""
        servo, program = self.servo, self.program
        q, push = ca.SX.sym("q", servo.nq), ca.SX.sym("push", servo.size)
        force = servo.model.mass_matrix(q) @ ca.solve(servo.decoupling(q), push)
        forces = ca.Function("forces", [q, push], [ca.densify(force)], {"cse": True})
        x, p, u = (
            ca.MX.sym(name, size)
            for name, size in (("x", program.nx), ("p", self._np), ("u", servo.nu))
        )
        at = program.n_numbers
        errors, pushes = p[at : at + servo.nu], p[at + servo.nu : at + servo.nu + servo.size]
        sign = _sign(x[program.states["time"]], p[-1])
        added = sign * errors
        if any(self.statement.push):
            added += forces(x[program.states["q"]], sign * pushes)
        after, _ = program.step(x, p[:at], u + added)
        q, v = (x[program.states[name]] for name in ("q", "v"))
        seen = self._carried()(q, v, p[: self.plant.n_numbers], u + added, sign * pushes)
        return ca.Function("step", [x, p, u], [after, seen])

    def _own(self, q: ca.SX, angles: ca.SX, s: ca.SX, u: ca.SX) -> list[ca.SX]:
        """Distances from obstacles, and expressions of angles, speeds and commands."""
        model, given = self.servo.model, self.statement
        joints = [made.name for made in self.quantities if made.kind == "angle above"]
        values = [
            dict(zip(names, ca.vertsplit(part), strict=True))
            for names, part in ((joints, angles), (model.shape_names, s), (model.control_names, u))
        ]
        found = [made.at(*values) for made in given.expressions]
        return found if given.clearance is None else [given.clearance.seen(model.robot, q), *found]

    def _carried(self) -> ca.Function:
        """Quantities of the ground, for a state, numbers, torques and a push."""
        servo, plant, given = self.servo, self.plant, self.statement
        names = {"q": servo.nq, "v": plant.nv, "p": plant.n_numbers}
        symbols = [ca.SX.sym(name, size) for name, size in names.items()]
        q, v, p = symbols
        u, push = ca.SX.sym("u", servo.nu), ca.SX.sym("push", servo.size)
        found = ca.SX(0, 1)
        if given.ground is not None:
            vdot, moving = plant.world_acceleration(q, v, u, p)[0], plant.symbolic(p)
            assert isinstance(moving, Tree)
            wrench = ca.vertcat(*base_wrench(moving, q, v, vdot))
            if any(given.push):
                wrench -= _wrench_of(servo, q, push)
            found = given.ground.seen(wrench)
        return ca.Function("carried", [*symbols, u, push], [ca.densify(found)], {"cse": True})

    @property
    def _np(self) -> int:
        return self.program.n_numbers + self.servo.nu + self.servo.size + self._reads + 1

    def _read_errors(self) -> list[float]:
        """Largest errors of measured angles and speeds."""
        reading, model = self.statement.reading, self.servo.model
        if reading is None:
            return []
        joints = [made.name for made in self.quantities if made.kind == "angle above"]
        return [error for part in reading.of(joints, model.shape_names) for error in part]

    def _shift(self) -> ca.DM:
        """From errors of place, heading, angles and speeds to the state that the law reads."""
        states, shape = self.program.states, list(self.servo.model.shape)
        rows = [states["q"].start + k for k in (0, 1, 2, *self._angles)]
        rows += [states["v"].start + k for k in shape]
        found = np.zeros((self.program.nx, self._reads))
        for k, row in enumerate(rows[: self._reads]):
            found[row, k] = 1.0
        return ca.DM(found)

    def _radii(self) -> Floats:
        """Proved radii at each tick: x and ve of all outputs, base; 1 without a proof."""
        if self.proof is None:
            return np.ones((self.ticks, self._tubes))
        count = len(self.proof.wall)
        k = np.arange(self.ticks) * self.statement.period / (self.task.duration / count)
        at = np.minimum((k + 1e-9).astype(int), count - 1)
        return np.vstack([self.proof.x, self.proof.ve, self.proof.wall])[:, at].T


def _sign(time: ca.MX, flip: ca.MX) -> ca.MX:
    """Sign of errors, which changes once."""
    return ca.if_else(time < flip, 1.0, -1.0)


def _wrench_of(servo: Servo, q: ca.SX, push: ca.SX) -> ca.SX:
    """Wrench on a planar base (6,), in its axes, of forces at its R2 and R3 outputs (5,).

    They give the outputs the accelerations `push`, in inertial axes.
    """
    slope = ca.densify(servo.decoupling(q))
    force = ca.solve(slope.T, servo.model.mass_matrix(q) @ ca.solve(slope, push))
    cosine, sine = ca.cos(q[2]), ca.sin(q[2])
    back = ca.blockcat([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])
    place, height = servo.output(q), servo.outputs[0].point[2]
    found = ca.SX(6, 1)
    for at, own in (
        (ca.vertcat(place[:2] - q[:2], height), ca.vertcat(force[:2], 0)),
        (place[2:] - ca.vertcat(q[:2], 0), force[2:]),
    ):
        found += ca.vertcat(back @ own, ca.cross(back @ at, back @ own))
    return found


def _apart(servo: Servo, difference: ca.SX) -> list[ca.SX]:
    """Distances of outputs from their references, of poses those of their points."""
    found, at = [], 0
    for output in servo.outputs:
        place = range(at, at + (3 if "rad" in output.coordinate_units else output.dim))
        found.append(ca.norm_2(difference[list(place)]))
        at += output.pose_size
    return found


def held_ticks(statement: Statement, duration: float) -> int:
    """Number of periods in a duration (s); 0 if it is not whole."""
    if not statement.period:
        return 0
    ticks = round(duration / statement.period)
    return ticks if abs(ticks * statement.period - duration) <= 1e-9 * duration else 0


def _margin(servo: Any, q: ca.SX) -> ca.SX:
    """Decoupling margin from above: 1 / sqrt of the largest eigenvalue of A^-T Mhat A^-1."""
    scaled = ca.solve(ca.densify(servo.decoupling(q)), ca.diag(1.0 / servo.margins.scales[0]))
    square = scaled.T @ servo.model.mass_matrix(q) @ scaled
    power = square / ca.trace(square)
    for _ in range(SQUARINGS):
        power = power @ power
        power /= ca.trace(power)
    # The mean of the eigenvalues, weighted by their high powers.
    return 1.0 / ca.sqrt(ca.trace(square @ power))
