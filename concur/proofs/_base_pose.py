"""Declared closed-loop motion of a floater, and the tube of errors and base pose about it.

The candidate is a cubic spline through a numerical solution; what is wrong with it counts as
forcing. Each segment has a constant matrix A_k, and deviations of error and base pose obey one
linear cascade, so that an error's effect on the base is counted with its sign (`_variations`).

**What holds.** If `tube` returns radii, then for every start within the radii at the start and
every disturbance within D, dx, eta and dv stay within them as long as |d| <= D.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from concur.control.references import Reference
from concur.proofs._decided import Decided
from concur.proofs._floating import CLOCK, SPACE, Demand, Floater, State
from concur.proofs._models import Floats, Model
from concur.proofs._variations import Kernels, kernels

ROUNDS = 12
"""Candidates of the tube that are tried."""

LEAST = 1e-7
"""Smallest radius of a ball (m, rad)."""

PARTS = 4
"""Segments in a step of the kernels."""


@dataclass(frozen=True, eq=False)
class Tube:
    """Radii of dx, eta and dv over segments.

    Parameters
    ----------
    radii : numpy.ndarray
        Radii, shape (3, segments); of segments `sound` only.
    state : State
        Angles, speeds and rates within them.
    forcing : numpy.ndarray
        Bounds of what the rates are beyond A y, shape (3, segments).
    kernels : Kernels
        Of the linear parts.
    fault : str
        What failed; empty if the tube is proved.
    time : float
        When (s).
    """

    radii: Floats
    state: State
    forcing: Floats
    kernels: Kernels | None
    fault: str
    time: float


class Declared:
    """Motion from the declared start, as a spline on a uniform grid.

    Parameters
    ----------
    robot : Floater
        Graphs of the robot.
    reference : Reference
        Reference of the hand.
    q0, s0 : numpy.ndarray
        Declared start, shapes (13,) and (6,).
    length : float
        Length of a segment (s).
    count : int
        Number of segments.
    """

    def __init__(
        self,
        robot: Floater,
        reference: Reference,
        q0: Floats,
        s0: Floats,
        length: float,
        count: int,
    ) -> None:
        self.robot, self.length, self.count = robot, length, count
        self.reference = Decided(reference, robot.where)
        self.reference.check_continuity(length * np.arange(1, count))
        servo = robot.servo
        sample = reference(0.0)
        self.start = np.array(servo.errors(q0, s0, sample.flat_pose, sample.twist))
        rate = _motion(robot)

        def slope(t: float, y: Floats) -> Floats:
            _, twist, _ = self.reference.plain(t)
            return np.asarray(rate(y[:6], y[6:12], y[12:], twist)).ravel()

        times = length * np.arange(count + 1)
        first = np.concatenate([*self.start, q0])
        path = solve_ivp(
            slope, (0.0, times[-1]), first, method="DOP853", t_eval=times, rtol=1e-10, atol=1e-12,
            max_step=length,
        ).y  # fmt: skip
        slopes = np.array([slope(t, y) for t, y in zip(times, path.T, strict=True)]).T
        # Errors, then quaternion and position of the base.
        rows = [*range(12), 15, 16, 17, 18, 12, 13, 14]
        self.path = path
        self.cubics = _cubics(path[rows], slopes[rows], length)
        self.demand = self._demand()

    def _demand(self) -> Demand:
        half = self.length / 2
        middle = (np.arange(self.count) + 0.5) * self.length
        rates = self.reference.models(SPACE, CLOCK, middle, np.full(self.count, half))
        value, change = [], []
        for c0, c1, c2, c3 in np.moveaxis(self.cubics, 0, 1):
            d = SPACE.symbol(CLOCK, np.ones(self.count))
            square = d * d
            # d^3 differs from 3 d / 4 by a quarter of Chebyshev's polynomial at most.
            own = d * (c1 + 0.75 * c3) + square * c2 + c0
            value.append(own.with_remainder(own.r + np.abs(c3) / 4 * (1 + 1e-12)))
            change.append((d * (2 * c2) + square * (3 * c3) + c1) * (1 / half))
        angles = (self.path[19:, :-1] + self.path[19:, 1:]) / 2
        return Demand(
            *rates,
            value[:6],
            value[6:12],
            value[12:],
            change[:6],
            change[6:12],
            change[12:],
            angles,
        )

    def tube(self, start: Floats, disturbance: Floats, given: Kernels | None = None) -> Tube:
        """Tube for radii at the start (3,) and bounds of |d| on each segment (segments,)."""
        radii = np.maximum(np.repeat(start[:, None], self.count, axis=1), LEAST)
        state = self.robot.state(self.demand, np.full_like(radii, LEAST))
        matrices = np.nan_to_num(state.linear(np.full_like(radii, LEAST)))
        steps = matrices.reshape(-1, PARTS, 18, 18).mean(axis=1)
        own = given or kernels(steps, (6, 6, 6), self.length * PARTS, PARTS)
        matrices = np.repeat(steps, PARTS, axis=0)
        push = np.array([np.zeros(self.count), np.zeros(self.count), disturbance])
        forcing = state.forcing(np.full_like(radii, LEAST), matrices)
        fault, k = "", 0
        if not np.isfinite(forcing).all():
            k = int(np.argmin(np.isfinite(forcing).all(axis=0)))
            fault = "no unique joint angles on the declared motion"
            return Tube(radii, state, forcing, own, fault, k * self.length)
        radii = np.maximum(own.reached(start, forcing + push) * 1.1, LEAST)
        for _ in range(ROUNDS):
            state = self.robot.state(self.demand, radii)
            forcing = state.forcing(radii, matrices)
            k = int(np.argmin(np.isfinite(forcing).all(axis=0)))
            if not np.isfinite(forcing[:, k]).all():
                fault = "no unique joint angles in the tube"
                break
            found = own.reached(start, forcing + push)
            if (found < radii).all():
                return Tube(radii, state, forcing, own, "", 0.0)
            k = int(np.argmax((found / radii).max(axis=0)))
            radii = np.where(found < radii, radii, found * 1.1 + LEAST)
        else:
            fault = "the tube of errors and base pose does not close"
        return Tube(radii, state, forcing, own, fault, k * self.length)


def _motion(robot: Floater) -> ca.Function:
    """Rates of (x, ve, q) of the closed loop from x, ve, q and the reference's twist."""
    servo = robot.servo
    x, ve, q, twist = (ca.SX.sym(name, n) for name, n in (("x", 6), ("v", 6), ("q", 13), ("t", 6)))
    group = servo.error_dynamics.group
    desired = ve + group.transport(x) @ twist
    drift = servo.output_motion(q, ca.SX(6, 1))[0]
    s = ca.solve(servo.decoupling(q), desired - drift)
    moved = servo.model.robot.rate(q, servo.velocity(q, s))
    xdot, vedot = servo.error_dynamics.rate(x, ve)
    return ca.Function("motion", [x, ve, q, twist], [ca.vertcat(xdot, vedot, moved)])


def _cubics(values: Floats, slopes: Floats, length: float) -> Floats:
    """Hermite's cubics in d = -1 .. 1 on each segment, ascending powers, (4, rows, segments)."""
    a, b = values[:, :-1], values[:, 1:]
    s, e = slopes[:, :-1] * length / 2, slopes[:, 1:] * length / 2
    rise = (b - a) / 2
    return np.array(
        [(a + b) / 2 - (e - s) / 4, 1.5 * rise - (s + e) / 4, (e - s) / 4, (s + e) / 4 - rise / 2]
    )


def largest(models: list[Model]) -> Floats:
    """Bounds of functions, by columns."""
    return np.array([m.bound for m in models])
