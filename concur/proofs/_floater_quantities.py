"""Torques, speeds, margins and disturbances of a floating robot over segments of time.

    J H a = nu - b,   u = Mhat a + chat,   J H sdot = nu + d - b,   K = J H Mhat^-1,

with the disturbance d as one more ball, so that sdot is the true acceleration. Remainders of s and
a are extra symbols (`task-proof`, section 3).

A torque that is held since t_k, at most H ago, adds K(t) (u(t_k) - u(t)), which is at most
H sup |K udot| + H^2 sup |Kdot| sup |udot| over the last H seconds.

**What holds.** Each returned bound is one for every time of the segment, all deviations within
their radii and all disturbances within D.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.proofs._floating import FIRST_A, PUSH, SPACE, Demand, Floater, State, promoted, walker
from concur.proofs._linear_solve import Solver
from concur.proofs._models import Floats, Model, norm_bound
from concur.proofs._statement import Statement


@dataclass(frozen=True, eq=False)
class Found:
    """Bounds over segments; the last axis counts them.

    Parameters
    ----------
    torque, torque_rate, speed : numpy.ndarray
        Largest |u|, |udot| and |s|, shape (6, b).
    low, high : numpy.ndarray
        Negative least, and largest angle of each joint, shape (6, b).
    margin, pivot : numpy.ndarray
        Negative bounds of the decoupling margin and of the law's pivot from below, shape (b,).
    corridor : numpy.ndarray
        Largest distance of the hand from its reference, shape (b,), m.
    response, response_rate : numpy.ndarray
        Largest |K e_i| and |Kdot e_i|, shape (6, b).
    held : numpy.ndarray
        Largest |K udot|, shape (b,).
    """

    torque: Floats
    torque_rate: Floats
    speed: Floats
    low: Floats
    high: Floats
    margin: Floats
    pivot: Floats
    corridor: Floats
    response: Floats
    response_rate: Floats
    held: Floats

    def disturbances(
        self, statement: Statement, before: list[Found], length: float
    ) -> dict[str, Floats]:
        """Bounds of |d| by source, (b,); `before` are earlier blocks, segments have a length (s).

        A torque may come from as many segments before as the period and the delay reach into.
        """
        window = statement.period + statement.delay
        reach = int(np.ceil(window / length * (1 + 1e-12)))

        def late(name: str) -> Floats:
            own: Floats = getattr(self, name)
            past = [getattr(part, name) for part in before]
            whole = np.concatenate([*past, own], axis=-1)
            count, b = whole.shape[-1], own.shape[-1]
            shifted = [whole[..., np.maximum(np.arange(count - b, count) - k, 0)]
                       for k in range(reach + 1)]  # fmt: skip
            return np.asarray(np.max(shifted, axis=0))

        turned = (late("response_rate") * late("torque_rate")).sum(axis=0)
        errors = np.array(statement.torque_error or np.zeros(6))
        push = statement.push[0] if statement.push else 0.0
        found = {
            "period and delay": window * late("held") + window**2 * turned,
            "torque errors": errors @ self.response,
            "push": np.full(self.held.shape, push),
        }
        return {name: np.asarray(value * (1 + 1e-12)) for name, value in found.items()}


class Quantities:
    """Graphs of torques and their rates.

    Parameters
    ----------
    robot : Floater
        The robot.
    """

    def __init__(self, robot: Floater) -> None:
        self._robot = robot
        servo, model, where = robot.servo, robot.servo.model, robot.where
        names = ("phi", "s", "pi", "a", "true", "base")
        phi, s, momentum, a, true, base = (ca.SX.sym(name, 6) for name in names)
        q = ca.vertcat(0, 0, 0, 0, 0, 0, 1, phi)
        v = model.velocity_at(q, s, momentum)
        decoupling, mass = servo.decoupling(q), model.mass_matrix(q)
        drift, forces = servo.motion(q, v)[1], model.shape_forces(q, v, a)
        turned = ca.vertcat(
            ca.cross(momentum[:3], base[3:]),
            ca.cross(momentum[3:], base[3:]) + ca.cross(momentum[:3], base[:3]),
        )

        def rate(part: ca.SX) -> ca.SX:
            moved = ca.jtimes(part, phi, s) + ca.jtimes(part, s, true)
            return moved + ca.jtimes(part, momentum, turned)

        demand = decoupling @ a + drift
        slopes = [ca.reshape(ca.jtimes(ca.vec(part), phi, s), 6, 6) for part in (decoupling, mass)]
        self._drift = walker([phi, s, momentum], [drift], where)
        self._forces = walker([phi, s, momentum, a], [forces], where)
        results = [rate(demand), rate(forces)]
        self._turned = walker([phi, s, momentum, a, true, base], results, where)
        self._slopes = walker([phi, s], slopes, where)

    def __call__(self, demand: Demand, state: State, disturbance: Floats) -> Found:
        """Bounds over segments for a state and bounds of |d| (b,)."""
        robot, phi, s, momentum = self._robot, state.angles, state.s, state.momentum
        matrix, solver = state.decoupling.matrix, state.decoupling
        push = SPACE.block(PUSH, disturbance)
        here = (state.x, state.tail, state.ve, demand.twist, demand.acceleration)
        nu = robot.demand(*here)[0].ravel()
        drift = self._drift(phi, s, momentum)[0].ravel()
        a = promoted(solver((nu - drift).tolist()), FIRST_A)
        true = [m + n for m, n in zip(a, solver(push), strict=True)]
        u = self._forces(phi, s, momentum, a)[0].ravel()
        rate = robot.demand_rate(*here, demand.jerk, push)[0].ravel()
        turned, moved = (
            part.ravel() for part in self._turned(phi, s, momentum, a, true, state.base)
        )
        inverse, light = _inverse(solver), _inverse(Solver(state.mass))
        # K udot without adot: J H adot is the rate of the command less that of the rest.
        response = matrix @ light
        held = rate - turned + response @ moved
        adot = solver((rate - turned).tolist())
        udot = state.mass @ np.array(adot, object) + moved
        slopes = self._slopes(phi, s)
        slope = (slopes[0] - response @ slopes[1]) @ light
        margin, pivot = self._margins(inverse, state.mass)
        return Found(
            _bounds(u),
            _bounds(udot),
            _bounds(s),
            np.array([m.reach - m.c for m in phi]),
            np.array([m.reach + m.c for m in phi]),
            -margin,
            -pivot,
            # The position differs by V(x) times the linear part of x, and |V| <= 1.
            norm_bound(state.x[:3]),
            np.array([norm_bound(response[:, i]) for i in range(6)]),
            np.array([norm_bound(slope[:, i]) for i in range(6)]),
            norm_bound(held),
        )

    def _margins(self, inverse: np.ndarray, mass: np.ndarray) -> tuple[Floats, Floats]:
        """Bounds from below: 1 / sqrt(|A^-T Mhat A^-1|) and 1 / |A^-1|, A = D J H."""
        rows, columns = self._robot.servo.scales
        scaled = inverse / rows
        square = scaled.T @ mass @ scaled
        middle = np.moveaxis(np.array([[m.c for m in row] for row in square]), 2, 0)
        change = norm_bound([m - m.c for m in square.ravel()])
        sound = np.isfinite(middle).all(axis=(1, 2)) & np.isfinite(change)
        largest = np.linalg.norm(np.where(sound[:, None, None], middle, 0.0), 2, axis=(1, 2))
        largest = np.where(sound, largest * (1 + 1e-12) + change, np.inf)
        one = np.array([[m.bound for m in row] for row in scaled]) * columns[:, None, None]
        return (1 - 1e-12) / np.sqrt(largest), (1 - 1e-12) / np.sqrt((one**2).sum(axis=(0, 1)))


def _bounds(models: np.ndarray | list[Model]) -> Floats:
    found = np.array([m.bound for m in models])
    return np.where(np.isnan(found), np.inf, found)


def _inverse(solver: Solver) -> np.ndarray:
    """A^-1, column by column."""
    found = np.empty((6, 6), dtype=object)
    for j in range(6):
        found[:, j] = solver([SPACE.constant(float(i == j)) for i in range(6)])
    return found
