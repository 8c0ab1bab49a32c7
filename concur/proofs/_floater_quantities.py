"""Torques, speeds, margins and disturbances of a floating robot over segments of time.

    J H a = nu - b,   u = Mhat a + chat,   J H sdot = nu + d - b - J1 M11^-1 w,   K = J H Mhat^-1,

with the disturbance d as one more ball, so that sdot is the true one. Remainders of s and a are
extra symbols (`task-proof`, section 3).

A torque that is held since t_k, at most H ago, adds K(t) (u(t_k) - u(t)), which is at most
H sup |K udot| + H^2 sup |Kdot| sup |udot| over the last H seconds.

**Wrong masses and momentum.** With inertias (1 + eps_b) and the true momentum mu + dmu the true
motion obeys the model's equations with an error e of its momentum and a wrench w on the base,

    M11 v1 + M12 s = Ad*_g mu + e,   e = Ad*_g dmu - sum eps_b Pi_b,   w = -sum eps_b f1_b,

for the momenta Pi_b and forces f_b = (f1_b, f2_b) of single bodies, linear in their inertias; they
add -sum eps_b J M^-1 f_b to d. A law that measures the base's twist takes the true v and ve. One
that does not takes v1 - M11^-1 e and ve - m, m = J1 M11^-1 e, which adds K (u - u*) to d, u* the
torque for the true ones. As drift and forces are quadratic in the momentum, their differences are
slopes in the middle, Ad*_g mu + e / 2.

**What holds.** Each returned bound is one for every time of the segment, all deviations within
their radii, all disturbances within D, and e and w within their radii. For each time, e is affine
in itself, so that it stays within radii which this map takes to their inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, Space, norm_bound, walker
from concur.proofs._floating import Demand, Floater, State
from concur.proofs._linear_solve import Solver
from concur.proofs._pose_formulas import bracket, dual_bracket
from concur.proofs._single_bodies import single_bodies
from concur.proofs._statement import Statement
from concur.robot import inverse_dynamics

UNSEEN = "the unmeasured base twist"
"""Name of the disturbance by a law that takes the velocity of its model."""


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
    place : numpy.ndarray
        Largest distance of the base from the inertial origin, shape (b,), m.
    momenta, wrenches : numpy.ndarray
        Sums over bodies of the largest |Pi_b| and |f1_b|, linear and angular, shape (2, b).
    weights : numpy.ndarray
        Sum over bodies of the largest |J M^-1 f_b|, shape (b,).
    unseen : numpy.ndarray
        Largest |K (u - u*)|, shape (b,).
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
    place: Floats
    momenta: Floats
    wrenches: Floats
    weights: Floats
    unseen: Floats

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
                       for k in range(min(reach, count) + 1)]  # fmt: skip
            return np.asarray(np.max(shifted, axis=0))

        turned = (late("response_rate") * late("torque_rate")).sum(axis=0)
        errors = np.array(statement.torque_error or np.zeros(6))
        push = statement.push[0] if statement.push else 0.0
        found = {
            "period and delay": window * late("held") + window**2 * turned,
            "torque errors": errors @ self.response,
            "push": np.full(self.held.shape, push),
        }
        if statement.masses:
            found["masses"] = statement.masses * self.weights
        if self.unseen.any():
            found[UNSEEN] = self.unseen
        return {name: np.asarray(value * (1 + 1e-12)) for name, value in found.items()}

    def wrong(self, statement: Statement) -> tuple[Floats, Floats]:
        """Bounds of |e| and |w|, linear and angular, (2, b) each."""
        linear, angular = statement.momentum_error or (0.0, 0.0)
        moved = np.array([linear + 0.0 * self.place, angular + linear * self.place])
        both = moved + statement.masses * self.momenta, statement.masses * self.wrenches
        return both[0] * (1 + 1e-12), both[1] * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class _View:
    """Velocities that the law takes, and the accelerations that it does not see.

    `ve` and the momentum have rates, `vedot` and `turning`. The output's acceleration with
    sdot = a exceeds nu by `rest`, and K (u - u*) = accelerations - K forces.
    """

    ve: list[Model]
    vedot: list[Model]
    momentum: list[Model]
    turning: list[Model]
    rest: list[Model]
    accelerations: np.ndarray
    forces: np.ndarray


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
        names = ("phi", "s", "pi", "a", "true", "turning")
        phi, s, momentum, a, true, turning = (ca.SX.sym(name, 6) for name in names)
        q = ca.vertcat(0, 0, 0, 0, 0, 0, 1, phi)
        v = model.velocity(q, s, momentum)
        decoupling, mass = servo.decoupling(q), model.mass_matrix(q)
        drift, forces = servo.motion(q, v)[1], model.shape_forces(q, v, a)

        def rate(part: ca.SX) -> ca.SX:
            moved = ca.jtimes(part, phi, s) + ca.jtimes(part, s, true)
            return moved + ca.jtimes(part, momentum, turning)

        demand = decoupling @ a + drift
        slopes = [ca.reshape(ca.jtimes(ca.vec(part), phi, s), 6, 6) for part in (decoupling, mass)]
        self._drift = walker([phi, s, momentum], [drift], where)
        self._forces = walker([phi, s, momentum, a], [forces], where)
        results = [rate(demand), rate(forces)]
        self._turned = walker([phi, s, momentum, a, true, turning], results, where)
        self._slopes = walker([phi, s], slopes, where)
        base = ca.SX.sym("base", 6)
        # ad_v^T Pi: the body momentum's rate without a wrench.
        self._turning = walker([momentum, base], [dual_bracket(base, momentum)], where)
        if robot.symbols.wrong:
            self._build_wrong(q, (phi, s, momentum, a, true), (drift, forces))

    def _build_wrong(self, q: ca.SX, given: tuple[ca.SX, ...], parts: tuple[ca.SX, ca.SX]) -> None:
        """Graphs of single bodies, and of a law that does not measure the base's twist."""
        robot, model = self._robot, self._robot.servo.model
        where, (phi, s, momentum, a, true) = robot.where, given
        v, wrench = model.velocity(q, s, momentum), ca.SX.sym("wrench", 6)
        lift = model.lift(q)[0]
        carried = _carried_by(robot, q, wrench)
        moving = lift @ true + model.velocity_drift(q, v)
        moving += model.velocity(q, ca.SX(6, 1), wrench)
        single = single_bodies(model.robot)
        momenta = ca.horzcat(*[(one.mass_matrix(q) @ v)[:6] for one in single])
        whole = ca.horzcat(*[inverse_dynamics(one, q, v, moving) for one in single])
        shape, base = lift.T @ whole, whole[:6, :]
        onto = ca.horzcat(*[_carried_by(robot, q, base[:, k]) for k in range(len(single))])
        results = [momenta, base, shape, onto]
        self._single = walker([phi, s, momentum, true, wrench], results, where)
        self._pushed = walker([phi, wrench], [carried], where)
        error, change, miss, aim = (ca.SX.sym(name, 6) for name in ("e", "edot", "m", "aim"))
        missed = _carried_by(robot, q, error)
        late = ca.jtimes(missed, phi, s) + _carried_by(robot, q, change)
        self._missed = walker([phi, s, error, change], [missed, late], where)
        plain = ca.substitute(parts[1], a, ca.SX.zeros(6))
        demand = robot.damping * miss + bracket(miss, aim) + ca.jtimes(parts[0], momentum, error)
        results = [demand, ca.jtimes(plain, momentum, error)]
        self._unseen = walker([phi, s, momentum, error, miss, aim], results, where)

    def __call__(
        self, demand: Demand, state: State, disturbance: Floats, wrenches: Floats
    ) -> Found:
        """Bounds over segments for a state, and bounds of |d| (b,) and |w| (2, b)."""
        robot, phi, s = self._robot, state.angles, state.s
        symbols, matrix, solver = robot.symbols, state.decoupling.matrix, state.decoupling
        push, wrench = symbols.disturbance(disturbance), symbols.wrench(wrenches)
        view = self._view(demand, state, push, wrench)
        here = (state.x, state.tail, view.ve, demand.twist, demand.acceleration)
        nu = robot.demand(*here)[0].ravel()
        drift = self._drift(phi, s, view.momentum)[0].ravel()
        a = symbols.promoted_accelerations(solver(_less(nu, drift)))
        true = _sum(a, solver(_less(push, view.rest)))
        u = self._forces(phi, s, view.momentum, a)[0].ravel()
        rate = robot.demand_rate(*here, demand.jerk, state.moved[:6], view.vedot)[0].ravel()
        turned, moved = (
            part.ravel() for part in self._turned(phi, s, view.momentum, a, true, view.turning)
        )
        inverse, light = (
            _inverse(solver, symbols.space),
            _inverse(Solver(state.mass), symbols.space),
        )
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
            norm_bound(demand.base[4:]) + norm_bound(state.eta[:3]),
            *self._of_bodies(state, true, wrench, response),
            norm_bound(view.accelerations - response @ view.forces),
        )

    def _view(self, demand: Demand, state: State, push: list[Model], wrench: list[Model]) -> _View:
        """Velocities as the law takes them."""
        robot, zero = self._robot, [self._robot.symbols.space.constant(0.0)] * 6
        none = np.array(zero, object)
        vedot = _sum(state.moved[6:], push)
        turning = self._turning(state.momentum, state.base)[0].ravel().tolist()
        if not robot.symbols.wrong:
            return _View(state.ve, vedot, state.momentum, turning, zero, none, none)
        phi, s, error = state.angles, state.s, state.error
        pushed = self._pushed(phi, wrench)[0].ravel().tolist()
        if robot.measured:
            turning = _sum(turning, wrench)
            return _View(state.ve, vedot, state.momentum, turning, pushed, none, none)
        change = _sum(self._turning(error, state.base)[0].ravel(), wrench)
        missed, late = (m.ravel().tolist() for m in self._missed(phi, s, error, change))
        aim = robot.aim(state.x, state.tail, zero, demand.twist)[0].ravel().tolist()
        middle = _sum(state.modelled, [m * 0.5 for m in error])
        unseen = [part.ravel() for part in self._unseen(phi, s, middle, error, missed, aim)]
        turning = self._turning(state.modelled, state.base)[0].ravel().tolist()
        given = (_less(state.ve, missed), _less(vedot, late), state.modelled, turning)
        return _View(*given, _sum(unseen[0], pushed), *unseen)

    def _of_bodies(
        self, state: State, true: list[Model], wrench: list[Model], response: np.ndarray
    ) -> tuple[Floats, Floats, Floats]:
        """Sums over bodies of |Pi_b| and |f1_b|, (2, b), and of |J M^-1 f_b|, (b,)."""
        none = np.zeros_like(true[0].c)
        if not self._robot.symbols.wrong:
            return np.array([none, none]), np.array([none, none]), none
        given = (state.angles, state.s, state.momentum, true, wrench)
        momenta, base, shape, onto = self._single(*given)
        both = [
            np.array([sum(map(norm_bound, part[rows].T)) for rows in (slice(3), slice(3, 6))])
            for part in (momenta, base)
        ]
        weights = response @ shape + onto
        return both[0], both[1], np.asarray(sum(map(norm_bound, weights.T)))

    def _margins(self, inverse: np.ndarray, mass: np.ndarray) -> tuple[Floats, Floats]:
        """Bounds from below: 1 / sqrt(|A^-T Mhat A^-1|) and 1 / |A^-1|, A = D J H."""
        rows, columns = self._robot.servo.margins.scales
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


def _inverse(solver: Solver, space: Space) -> np.ndarray:
    """A^-1, column by column."""
    found = np.empty((6, 6), dtype=object)
    for j in range(6):
        found[:, j] = solver([space.constant(float(i == j)) for i in range(6)])
    return found


def _carried_by(robot: Floater, q: ca.SX, momentum: ca.SX) -> ca.SX:
    """Velocity of the output that a momentum of the base gives, J1 M11^-1 Pi."""
    model = robot.servo.model
    return robot.servo.motion(q, model.velocity(q, ca.SX(6, 1), momentum))[0]


def _sum(a: Sequence[Model] | np.ndarray, b: Sequence[Model] | np.ndarray) -> list[Model]:
    return [m + n for m, n in zip(a, b, strict=True)]


def _less(a: Sequence[Model] | np.ndarray, b: Sequence[Model] | np.ndarray) -> list[Model]:
    return [m - n for m, n in zip(a, b, strict=True)]
