"""Configurations in which the outputs are at a target: near a given one, and regular."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.control._inverse_kinematics import InverseKinematicsSolver, within, wound
from concur.control._inverse_kinematics_step import coupled_bounds, coupling
from concur.control._tracking_law import TrackingLaw
from concur.outputs._kinematics import freedoms
from concur.outputs._motion import output_motion
from concur.robot import robot_size

COMFORTABLE = 20.0
"""Multiple of the singular margin above which other postures are not sought."""

TRIES = 20
"""Random postures that are tried where the nearest one is singular."""

BASE = 10.0
"""Weight of the base beside the joints in the distance from the configuration near by."""

_STILL = 1e-7  # displacement, rad and parts of the robot's size, at which a descent ends


@dataclass(frozen=True, eq=False)
class Posture:
    """A configuration (nq,), the norm of its residual, its margin and its distance."""

    q: np.ndarray
    residual: float
    margin: float
    distance: float


class Postures:
    """Search of configurations for targets of a law's outputs, near one configuration (nq,)."""

    def __init__(self, servo: TrackingLaw, near: np.ndarray) -> None:
        robot = servo.model.robot
        self._servo, self._robot = servo, robot
        self._bounds = coupled_bounds(robot)
        self._near = robot.coupled(np.clip(near, *self._bounds.T))
        self._solvers = [InverseKinematicsSolver(robot, servo.outputs, starts=10)]
        moving, base = self._solvers[0].moving, robot.base.name
        carried = [o for o in servo.outputs if o.relative_to is None and o.body == base]
        if len(moving) > 1 and base in moving and not carried:
            # Whatever the joints reach alone leaves the base where it is.
            fixed = InverseKinematicsSolver(robot, servo.outputs, starts=10, fixed=(base,))
            self._solvers.insert(0, fixed)
        q = ca.SX.sym("q", robot.nq)
        jacobian = output_motion(robot, servo.outputs, q).jacobian
        self._jacobian = ca.Function("jacobian", [q], [ca.densify(jacobian)], {"cse": True})
        units = [unit for body in robot.bodies for unit in body.joint.freedom_units]
        size = robot_size(robot)
        weights = np.array([1.0 / size if unit == "m" else 1.0 for unit in units])
        weights[freedoms(robot, [base])] *= BASE
        self._weights = weights
        self._good = COMFORTABLE * servo.singular_margin

    def at(self, target: np.ndarray) -> Posture:
        """Find a regular posture for flat coordinates of the outputs (pose_size,).

        The nearest one if it is regular, else the nearest of several random ones; if none is
        regular, the one with the largest margin, and if none is at the target, the one that comes
        closest to it.
        """
        found = list[Posture]()
        for solver in self._solvers:
            answer = solver.solve(target, self._near)
            q = wound(answer.q, self._near, solver.turning)
            if answer.solved:
                found.append(self._posture(self._nearest(solver, target, q), answer.residual))
                if found[-1].margin >= self._good:
                    return found[-1]
            found.append(self._posture(q, answer.residual))
        best = self._best(found)
        if best.residual > solver.tolerance or best.margin >= self._good:
            return best
        for bodies in (solver.moving, [body.name for body in self._robot.bodies]):
            drawn = [self._drawn(target, start) for start in self._starts(bodies)]
            found += drawn
            if any(p.margin >= self._good and p.residual <= solver.tolerance for p in drawn):
                break
        return self._best(found)

    def _best(self, found: list[Posture]) -> Posture:
        closest = min(posture.residual for posture in found)
        there = [p for p in found if p.residual <= max(closest, self._solvers[0].tolerance)]
        regular = [p for p in there if p.margin >= self._good]
        if regular:
            return min(regular, key=lambda p: p.distance)
        return max(there, key=lambda p: p.margin)

    def _drawn(self, target: np.ndarray, start: np.ndarray) -> Posture:
        """Posture from another start: its joints alone if they reach the target."""
        for solver in self._solvers:
            answer = solver.solve(target, start)
            if answer.solved:
                break
        return self._posture(wound(answer.q, self._near, solver.turning), answer.residual)

    def _starts(self, bodies: tuple[str, ...] | list[str]) -> Iterator[np.ndarray]:
        """Random configurations of bodies' joints, the base and wheels as near by."""
        robot, rng = self._robot, np.random.default_rng(0)
        still = {robot.base.name, *(wheel.body for wheel in robot.wheels)}
        for _ in range(TRIES):
            q = self._near.copy()
            for body in robot.bodies:
                if body.name in bodies and body.name not in still:
                    span = robot.q_slice(body.name)
                    q[span] = within(body.joint.random(rng), self._bounds[span], rng)
            yield robot.coupled(q)

    def _posture(self, q: np.ndarray, residual: float) -> Posture:
        servo = self._servo
        margin = servo.margin(q)
        distance = float(np.linalg.norm(self._weights * self._way(q)))
        return Posture(q, residual, margin, distance)

    def _way(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(self._robot.difference(q, self._near))

    def _nearest(
        self, solver: InverseKinematicsSolver, target: np.ndarray, q: np.ndarray
    ) -> np.ndarray:
        """Descend to the configuration at the target with the least distance."""
        robot = self._robot
        columns = freedoms(robot, solver.moving)
        chain, weights = coupling(robot)[:, columns], self._weights[columns]
        single = InverseKinematicsSolver(robot, solver.outputs, starts=1, fixed=solver.fixed)
        distance = float(np.linalg.norm(weights * self._way(q)[columns]))
        for _ in range(30):
            way = self._way(q)[columns]
            rows = np.array(self._jacobian(q)) @ chain / weights
            step = self._inside(q, columns, rows, weights * way) / weights
            length = float(np.linalg.norm(weights * step))
            share = 1.0
            while share * length > _STILL:
                trial = robot.integrate(q, chain @ (share * step))
                trial = robot.coupled(np.clip(trial, *self._bounds.T))
                answer = single.solve(target, trial)
                reached = float(np.linalg.norm(weights * self._way(answer.q)[columns]))
                if answer.solved and reached < distance * (1.0 - 1e-9):
                    q, distance = answer.q, reached
                    break
                share /= 2
            else:
                break
        return q

    def _inside(
        self, q: np.ndarray, columns: list[int], rows: np.ndarray, way: np.ndarray
    ) -> np.ndarray:
        """Part of a way that leaves the outputs at rest and no joint beyond its limits."""
        free = np.ones(len(columns), dtype=bool)
        low, high = (side[columns] for side in self._room(q))
        while True:
            kept = rows[:, free]
            step = np.zeros(len(columns))
            step[free] = way[free] - np.linalg.pinv(kept, rcond=1e-10) @ (kept @ way[free])
            beyond = free & (((low >= 0.0) & (step < 0)) | ((high <= 0.0) & (step > 0)))
            if not beyond.any():
                return step
            free &= ~beyond

    def _room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ways to the limits of the freedoms, (nv,) each; infinite of joints with several."""
        robot = self._robot
        low, high = np.full(robot.nv, -np.inf), np.full(robot.nv, np.inf)
        for body in robot.bodies:
            if body.joint.quaternion_at is None and body.joint.nv == 1:
                span, at = robot.v_slice(body.name), robot.q_slice(body.name)
                low[span], high[span] = (self._bounds[at] - q[at, None]).T
        return low, high
