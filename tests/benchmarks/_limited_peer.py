"""A whole-body controller as TSID's over Pinocchio: one quadratic programme in the accelerations.

Unknowns are the accelerations of the robot. Tasks are places and attitudes with proportional and
derivative action and feed-forward, weighted least squares; joints come to rest with a small
weight. Hard: equations of motion (rolling wheels, or a base that nothing drives, which keeps the
momentum), torques, and bounds of positions and speeds of the joints as accelerations that keep the
next state viable (A. Del Prete, "Joint position and velocity bounds in discrete-time
acceleration/torque control of robot manipulators", RA-L 2018), as TSID has them. Obstacles are
barriers of second order, wheels have pyramids of friction. Where these cannot be kept together
with the torques, the programme is solved again with slacks of large cost, but not of the torques.
The solver is DAQP, as ours.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pinocchio as pin

import concur as cc
from tests.benchmarks._limited_scenarios import PERIOD, Scenario
from tests.benchmarks._limited_twin import STABILISATION, Twin

REST = 1e-3
"""Weight of joints that come to rest, beside 1 of the tasks; a tenth chatters out of reach."""

DAMPING = 10.0
"""Rate at which internal motion comes to rest, 1/s."""

HORIZON = 0.02
"""Period that bounds of positions and viability assume, s: several of the real one, without which
torques jump from tick to tick at a stop."""

WEIGHTS = {"base": 100.0}
"""Weights of outputs by name, where not 1."""

APPROACH = 10.0
"""Rate of the barriers of obstacles, 1/s."""

SLACK = 1e5
"""Cost of what is not kept."""

SIDES = 8
"""Sides of the pyramids of friction."""


class WholeBody:
    """The controller, called as a law: state and demand in, torques out.

    Parameters
    ----------
    scenario : Scenario
        Robot, outputs, gains and limits are read.
    limits : bool
        Whether limits act.
    rest : float
        Weight of joints that come to rest; without it and limits it tracks exactly.
    """

    def __init__(self, scenario: Scenario, limits: bool = True, rest: float = REST) -> None:
        self.scenario, self.limits, self.rest = scenario, limits, rest
        self.twin = twin = Twin(scenario)
        robot, nv = scenario.robot, scenario.robot.nv
        self.nv = nv
        joints = cc.control.JointLimits.of(robot)
        self.torque = scenario.torques if limits else np.full(robot.nu, np.inf)
        self.low, self.high = joints.positions[twin.angles].T
        self.speed = np.array(joints.speeds[twin.driven])
        if not limits:
            self.speed[:] = np.inf
        mass = pin.crba(twin.model, twin.data, twin.configuration(scenario.q0))
        weight = pin.nonLinearEffects(
            twin.model, twin.data, twin.configuration(scenario.q0), np.zeros(nv)
        )
        lift, _ = twin.lift(mass, weight)
        inertia = np.diag(lift.T @ mass @ lift)
        room = 0.5 * (self.torque - np.abs(lift.T @ weight)) / inertia
        self.braking = np.clip(room, 1.0, 50.0)
        weights = [[WEIGHTS.get(o.name, 1.0)] * o.dim for o in scenario.outputs]
        self.roots = np.sqrt(np.concatenate(weights))
        self.barriers = 0 if scenario.ball is None else len(scenario.ball.bodies)
        self.barriers += 0 if scenario.ground is None else 2 * SIDES + 3
        self.programmes: dict[bool, Callable[..., np.ndarray | None]] = {}
        self.relaxed = 0

    def __call__(
        self, t: float, q: np.ndarray, v: np.ndarray, sample: cc.ReferenceSample
    ) -> np.ndarray:
        twin, nv = self.twin, self.nv
        own = twin.configuration(q)
        model, data = twin.model, twin.data
        mass = pin.crba(model, data, own)
        bias = pin.nonLinearEffects(model, data, own, v)
        twin.kinematics(own, v)
        rows, wanted = twin.commanded(v, sample)
        rows, wanted = self.roots[:, None] * rows, self.roots * wanted
        still = np.zeros((len(twin.driven), nv))
        still[:, twin.driven] = np.eye(len(twin.driven))
        hessian = rows.T @ rows + self.rest * still.T @ still
        gradient = -rows.T @ wanted + self.rest * DAMPING * still.T @ v[twin.driven]
        hessian[np.diag_indices(nv)] += 1e-12
        if len(twin.rows):
            equations, sides = twin.rows, -STABILISATION * (twin.rows @ v)
        else:
            equations, sides = mass[twin.base], -bias[twin.base]
        lift, _ = twin.lift(mass, bias)
        torques, offset = lift.T @ mass, lift.T @ bias
        parts = [(equations, sides, sides), (torques, -self.torque - offset, self.torque - offset)]
        low, high = np.full(nv, -np.inf), np.full(nv, np.inf)
        if self.limits:
            low[twin.driven], high[twin.driven] = self._bounds(q, v)
            parts += self._barriers(q, v)
        matrix = np.vstack([part[0] for part in parts])
        lower, upper = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        found = self._solve(False, hessian, gradient, matrix, lower, upper, low, high)
        if found is None:
            self.relaxed += 1
            found = self._solve(True, hessian, gradient, matrix, lower, upper, low, high)
        if found is None:
            raise RuntimeError("the quadratic programme has no solution")
        u = torques @ found[:nv] + offset
        return np.clip(u, -self.torque, self.torque)  # rounding of the solver

    def _bounds(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations of the joints after which positions and speeds are kept, by Del Prete."""
        q, v, a = q[self.twin.angles], v[self.twin.driven], self.braking
        low = np.maximum((-self.speed - v) / PERIOD, -most_towards(q - self.low, -v, a))
        high = np.minimum((self.speed - v) / PERIOD, most_towards(self.high - q, v, a))
        crossed = low > high
        middle = np.clip((np.where(crossed, low, 0.0) + np.where(crossed, high, 0.0)) / 2, -a, a)
        return np.where(crossed, middle, low), np.where(crossed, middle, high)

    def _barriers(self, q: np.ndarray, v: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        parts = []
        if self.scenario.ball is not None:
            near = self.twin.nearness(v)
            least = [-(2 * APPROACH * n.rate + APPROACH**2 * n.distance) - n.drift for n in near]
            parts.append(
                (np.array([n.slope for n in near]), np.array(least), np.full(len(near), np.inf))
            )
        if self.scenario.ground is not None:
            matrix, offset = self.twin.contact(q, v)
            loads, (left, right, side) = self.twin.loads[:2], self.twin.forces
            turns = 2 * np.pi * np.arange(SIDES) / SIDES
            rows = np.vstack(
                [
                    np.outer(np.cos(turns), along)
                    + np.outer(np.sin(turns), side / 2)
                    - self.scenario.ground.grip * np.cos(np.pi / SIDES) * load
                    for along, load in zip((left, right), loads, strict=True)
                ]
            )
            parts.append((rows @ matrix, np.full(len(rows), -np.inf), -rows @ offset))
            rows, least = self.twin.loads, self.scenario.ground.load
            parts.append((rows @ matrix, least - rows @ offset, np.full(3, np.inf)))
        return parts

    def _solve(self, soft: bool, *numbers: np.ndarray) -> np.ndarray | None:
        hessian, gradient, matrix, lower, upper, low, high = numbers
        if soft:
            hard = len(matrix) - (self.barriers if self.limits else 0)
            n, nu, rest = self.nv, len(self.twin.driven), len(matrix) - hard
            picked = np.zeros((nu, n))
            picked[:, self.twin.driven] = np.eye(nu)
            bounds = low[self.twin.driven], high[self.twin.driven]
            matrix = np.vstack([matrix, picked])
            lower, upper = np.concatenate([lower, bounds[0]]), np.concatenate([upper, bounds[1]])
            slack = np.zeros((len(matrix), nu + rest))
            slack[hard:] = np.eye(nu + rest)
            matrix = np.hstack([matrix, slack])
            full = SLACK * np.eye(n + nu + rest)
            full[:n, :n] = hessian
            hessian, gradient = full, np.concatenate([gradient, np.zeros(nu + rest)])
            low = high = np.full(n + nu + rest, np.inf)
            low = -high
        if soft not in self.programmes:
            size, rows = len(hessian), len(matrix)
            shapes = {"h": ca.Sparsity.dense(size, size), "a": ca.Sparsity.dense(rows, size)}
            options = {"error_on_fail": False, "print_time": False}
            self.programmes[soft] = ca.conic("peer", "daqp", shapes, options)
        solver = self.programmes[soft]
        answer = solver(h=hessian, g=gradient, a=matrix, lba=lower, uba=upper, lbx=low, ubx=high)
        x = np.array(answer["x"])[:, 0]
        return x if solver.stats()["success"] and np.isfinite(x).all() else None


def most_towards(room: np.ndarray, speed: np.ndarray, braking: np.ndarray) -> np.ndarray:
    """Largest acceleration for one period towards a limit that is so far away."""
    h = HORIZON
    with np.errstate(all="ignore"):
        # The next position is inside, and the stop may lie within the period.
        end, stop = 2 * (room - h * speed) / h**2, -speed / h
        within = np.where(room > 0.0, -(speed**2) / (2 * room), stop)
        most = np.where((speed >= 0.0) & (end <= stop), np.minimum(stop, within), end)
        # From the next state on, braking with the largest deceleration suffices.
        b, c = h * (2 * speed + braking * h), speed**2 - 2 * braking * (room - h * speed)
        square = b**2 - 4 * h**2 * c
        root = (-b + np.sqrt(np.maximum(square, 0.0))) / (2 * h**2)
        root = np.where(square >= 0.0, root, -(2 * speed + braking * h) / (2 * h))
    return np.where(np.isfinite(room), np.minimum(most, root), np.inf)
