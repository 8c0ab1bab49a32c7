"""A floating robot along a segment of time: its angles and speeds, and the rates of deviations.

States of the statement are the time t, the errors x and ve of one SE3 output and the pose g of the
base; joint angles phi and shape velocities s follow from them, by the base's symmetry from the
hand's pose relative to the base and the body momentum Pi = Ad*_g mu only (`task-proof`, sections 1
and 2). Deviations from candidates x_c, ve_c, g_c are

    x = x_c + dx,   ve = ve_c + dv,   g = g_c Delta(eta),   Delta = (C(w), p),   eta = [p; w],

C(w) with the quaternion (w / 2, sqrt(1 - |w|^2 / 4)). With the body twists [v; omega] of the base
and [v_c; omega_c] of its candidate, exactly

    wdot = sqrt(1 - |w|^2 / 4) (omega - omega_c) + w x (omega + omega_c) / 2,
    pdot = C v - v_c - omega_c x p,   xdot = -B(x) ve,   vedot = kp B(x)^T x - kd ve + d .

Lengths count in metres: one metre weighs as much as one radian in the norms of dx, dv and eta.

**What holds.** The models contain these quantities at every time of the segment, for all deviations
within the radii of their balls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, norm_bound, walker
from concur.control import Servo, given_options
from concur.errors import OutputError
from concur.groups import so3
from concur.proofs._configurations import Configurations, Equations
from concur.proofs._linear_solve import Solver
from concur.proofs._pose_formulas import (
    bracket,
    carried,
    error_map,
    exponential,
    rotation,
    tails,
)
from concur.proofs._symbols import DEVIATIONS, Symbols
from concur.robot import Pose, joints


def refusal(where: str, expected: str, came: str) -> OutputError:
    """Error for a robot or law that is not covered."""
    return OutputError(
        where,
        expected=expected,
        came=came,
        cure="Proofs of floaters cover one SE3 output in inertial axes, an arm of six joints with "
        "a motor each on a free base with constant momentum, and isotropic gains.",
    )


@dataclass(frozen=True, eq=False)
class Demand:
    """Reference and candidates over segments, as models of the time.

    Parameters
    ----------
    pose, twist, acceleration, jerk : list of Model
        Of the reference.
    x, ve, base : list of Model
        Candidates of the errors, and of the base's quaternion and position, (6), (6), (7).
    x_rate, ve_rate, base_rate : list of Model
        Their time derivatives.
    angles : numpy.ndarray
        Joint angles of the declared motion in the middle of each segment, (6, b).
    """

    pose: list[Model]
    twist: list[Model]
    acceleration: list[Model]
    jerk: list[Model]
    x: list[Model]
    ve: list[Model]
    base: list[Model]
    x_rate: list[Model]
    ve_rate: list[Model]
    base_rate: list[Model]
    angles: Floats

    def take(self, columns: np.ndarray) -> Demand:
        """Some of the segments."""
        parts: dict[str, Any] = {
            name: part[:, columns] if name == "angles" else [m.take(columns) for m in part]
            for name, part in vars(self).items()
        }
        return Demand(**parts)


@dataclass(frozen=True, eq=False)
class State:
    """Angles and speeds over segments.

    Parameters
    ----------
    x, eta, ve, tail, relative : list of Model
        Errors and the base's deviation, tails of the series at x, and the hand's pose relative to
        the base.
    phi : Configurations
        Joint angles.
    angles : list of Model
        The same, remainders as extra symbols.
    modelled, error, momentum : list of Model
        Body momentum of the model, its error, and their sum.
    s, base : list of Model
        Shape velocities, and body twist of the base.
    decoupling : Solver
        J H.
    mass : numpy.ndarray
        Mhat.
    moved : list of Model
        Rates of x and ve, without the disturbance.
    rates : list of Model
        Rates of dx, eta and dv, without the disturbance.
    """

    x: list[Model]
    eta: list[Model]
    ve: list[Model]
    tail: list[Model]
    relative: list[Model]
    phi: Configurations
    angles: list[Model]
    modelled: list[Model]
    error: list[Model]
    momentum: list[Model]
    s: list[Model]
    base: list[Model]
    decoupling: Solver
    mass: np.ndarray
    moved: list[Model]
    rates: list[Model]

    def linear(self, radii: Floats) -> Floats:
        """Matrices of the rates' linear parts at the middles, shape (b, 18, 18)."""
        least = DEVIATIONS.stop
        rows = np.array([m.padded(max(least, len(m.l)))[0][DEVIATIONS] for m in self.rates])
        return np.asarray(np.moveaxis(rows / np.repeat(radii, 6, axis=0), 2, 0))

    def forcing(
        self, symbols: Symbols, radii: Floats, matrices: Floats, slopes: list[np.ndarray]
    ) -> tuple[Floats, Floats]:
        """Bounds of what the rates are beyond A y, by blocks, (3, b), but eta's at y = 0.

        Of eta's rate, `slopes` are the derivatives over the tube (mean value theorem). The second
        result bounds the part of eta's rate by the error of the momentum, (b,).
        """
        share = np.moveaxis(matrices, 0, 2) * np.repeat(radii, 6, axis=0)
        found = np.zeros_like(radii)
        for k in (0, 2):
            rest = []
            for i in range(6 * k, 6 * k + 6):
                m, row = self.rates[i], share[i]
                linear, quadratic = m.padded(max(DEVIATIONS.stop, len(m.l)))
                linear = linear.copy()
                linear[DEVIATIONS] -= row
                rounding = 1e-12 * np.abs(row).sum(axis=0)
                rest.append(Model(m.space, m.c, linear, quadratic, m.r + rounding))
            found[k] = norm_bound(rest)
        averages = [[averaged(m, symbols.first_angle) for m in slope.ravel()] for slope in slopes]
        for k, average in enumerate(averages[:3]):
            own = np.moveaxis(matrices[:, 6:12, 6 * k : 6 * k + 6], 0, 2).reshape(36, -1)
            apart = [m - a for m, a in zip(average, own, strict=True)]
            found[1] += norm_bound(apart) * radii[k]
        found = np.where(np.isnan(found), np.inf, found)
        if not symbols.wrong:
            return found, np.zeros_like(found[1])
        by_error = np.array(averages[3], object).reshape(6, 6)
        drift = norm_bound(by_error @ np.array(self.error, object))
        return found, np.where(np.isnan(drift), np.inf, drift)


class Floater:
    """Graphs of a floating robot in axes of its base.

    Parameters
    ----------
    servo : Servo
        The law.
    symbols : Symbols
        Symbols of the models.
    """

    def __init__(self, servo: Servo, symbols: Symbols) -> None:
        self.where, self.symbols = f"proof of `{servo.name}`", symbols
        self.measured = servo.use_measured_velocity
        # The graphs are functions of the shape velocities and the momentum.
        self.servo = servo = replace(servo, use_measured_velocity=False)
        model, robot = servo.model, servo.model.robot
        groups = [output.group for output in servo.outputs]
        if groups != ["SE3"] or servo.outputs[0].relative_to is not None:
            raise refusal(self.where, "one SE3 output in inertial axes", ", ".join(groups))
        if not isinstance(robot.base.joint, joints.Free) or not model.takes_momentum:
            raise refusal(self.where, "a free base with constant momentum", str(robot.base.joint))
        if robot.base.placement != Pose():
            raise refusal(self.where, "a base without placement", str(robot.base.placement))
        if servo.ns != 6 or servo.nq != 13:
            came = f"{servo.ns} shape velocities: {', '.join(model.shape_names)}"
            raise refusal(self.where, "six joints of one coordinate", came)
        if robot.springs:
            raise refusal(self.where, "a robot without springs", robot.springs[0].name)
        if np.any(robot.gravity):
            raise refusal(self.where, "a robot without gravity", str(tuple(robot.gravity)))
        if not np.array_equal(model.input_matrix(robot.neutral()), np.eye(6)):
            came = ", ".join(model.control_names)
            raise refusal(self.where, "a motor for each joint", f"the controls {came}")
        options = [name for name in given_options(servo) if name != "use_measured_velocity"]
        if options:
            raise refusal(self.where, "a servo without options", ", ".join(options))
        # B(x)^T does not commute with another inertia, even if its products with gains are scalar.
        inertia = self._number(servo.inertia, "one number as the inertia of the law")
        gains = servo.stiffness, servo.damping
        self.stiffness, self.damping = (self._number(m, "one gain") / inertia for m in gains)
        self._build()

    def _number(self, matrix: np.ndarray, expected: str) -> float:
        """The number of a matrix that multiplies by one."""
        if not np.array_equal(matrix, matrix[0, 0] * np.eye(6)):
            raise refusal(self.where, expected, "several")
        return float(matrix[0, 0])

    def _build(self) -> None:
        servo, model, where = self.servo, self.servo.model, self.where
        phi, s, momentum, p = (
            ca.SX.sym(name, n) for name, n in (("phi", 6), ("s", 6), ("pi", 6), ("p", 12))
        )
        q = ca.vertcat(0, 0, 0, 0, 0, 0, 1, phi)
        drift = servo.motion(q, model.velocity(q, ca.SX(6, 1), momentum))[0]
        place, turn = self._hand(q)
        apart = turn.T @ ca.reshape(p[3:], 3, 3)
        equations = ca.vertcat(place - p[:3], so3.vee(apart))
        self.equations = Equations(phi, p, equations, where)
        slopes = [ca.jacobian(equations, phi), ca.jacobian(equations, p)]
        self.equation_slopes = walker([phi, p], slopes, where)
        self.matrices = walker([phi], [servo.decoupling(q), model.mass_matrix(q)], where)
        self.drift = walker([phi, momentum], [drift], where)
        v = model.velocity(q, s, momentum)
        self.base = walker([phi, s, momentum], [v[:6]], where)
        hand, base = servo.motion(q, v)[0], v[:6]
        slopes = [ca.jacobian(hand, phi), ca.jacobian(hand, momentum)]
        slopes += [ca.jacobian(base, one) for one in (phi, s, momentum)]
        self.speed_slopes = walker([phi, s, momentum], slopes, where)
        pose, base, eta, x, ve, tail = (
            ca.SX.sym(name, n)
            for name, n in (("r", 7), ("g", 7), ("eta", 6), ("x", 6), ("v", 6), ("e", 5))
        )
        side = ca.sqrt(1.0 - ca.dot(eta[3:], eta[3:]) / 4.0)
        small = rotation(ca.vertcat(eta[3:] / 2.0, side))
        given = rotation(base[:4])
        own, at = given @ small, base[4:] + given @ eta[:3]
        back, shift = exponential(-x, tail)
        desired = rotation(pose[3:])
        hand, there = desired @ back, pose[:3] + desired @ shift
        mu = ca.DM(model.momentum)
        carry = ca.vertcat(own.T @ mu[:3], own.T @ (mu[3:] - ca.cross(at, mu[:3])))
        relative = ca.vertcat(own.T @ (there - at), ca.vec(own.T @ hand))
        found = ca.vertcat(relative, carry)
        self.geometry = walker([pose, x, tail, base, eta], [relative, carry], where)
        slopes = [ca.jacobian(found, x), ca.jacobian(found, eta)]
        self.geometry_slopes = walker([pose, x, tail, base, eta], slopes, where)
        # The candidate's own twist, of a quaternion of any length.
        rate, twist = ca.SX.sym("rate", 7), ca.SX.sym("twist", 6)
        quat, turned = base[:4], rate[:4]
        omega = (
            2.0
            * (quat[3] * turned[:3] - turned[3] * quat[:3] - ca.cross(quat[:3], turned[:3]))
            / ca.dot(quat, quat)
        )
        v, w = twist[:3], twist[3:]
        moved = ca.vertcat(
            small @ v - given.T @ rate[4:] - ca.cross(omega, eta[:3]),
            side * (w - omega) + ca.cross(eta[3:], w + omega) / 2.0,
        )
        self.base_rate = walker([base, rate, eta, twist], [moved], where)
        slopes = [ca.jacobian(moved, eta), ca.jacobian(moved, twist)]
        self.base_rate_slopes = walker([base, rate, eta, twist], slopes, where)
        back, shift = exponential(x, tail)
        aim = carried(back, shift, twist)
        self.aim = walker([x, tail, ve, twist], [ve + aim], where)
        self.aim_slope = walker([x, tail, twist], [ca.jacobian(aim, x)], where)
        pulled = error_map(x, x, tail, dual=True) * self.stiffness - self.damping * ve
        self.error_rate = walker([x, tail, ve], [-error_map(x, ve, tail), pulled], where)
        # Commanded acceleration, and its rate for those of x and ve.
        acceleration, jerk = ca.SX.sym("acceleration", 6), ca.SX.sym("jerk", 6)
        demand = pulled + carried(back, shift, acceleration) - bracket(ve, aim)
        xdot, vedot = ca.SX.sym("xdot", 6), ca.SX.sym("vedot", 6)
        along = ca.jtimes(demand, x, xdot) + ca.jtimes(demand, ve, vedot)
        along += ca.jtimes(demand, twist, acceleration) + ca.jtimes(demand, acceleration, jerk)
        given = [x, tail, ve, twist, acceleration]
        self.demand = walker(given, [demand], where)
        self.demand_rate = walker([*given, jerk, xdot, vedot], [along], where)

    def _hand(self, q: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Position and rotation of the output's frame."""
        output = self.servo.outputs[0]
        pose = self.servo.model.robot.pose(q, output.body)
        turn, place = output.placed((pose[:3, :3], pose[:3, 3]))
        return place, turn

    def state(self, demand: Demand, radii: Floats, errors: Floats) -> State:
        """Angles, speeds and rates over segments.

        For radii (3, b) of dx, eta and dv, and (2, b) of the momentum's error.
        """
        dx, eta, dv = self.symbols.deviations(radii)
        x = [a + b for a, b in zip(demand.x, dx, strict=True)]
        ve = [a + b for a, b in zip(demand.ve, dv, strict=True)]
        angle = norm_bound(x[3:]) ** 2 * (1 + 1e-12)
        tail = [
            self.symbols.space.constant(np.zeros_like(t)).with_remainder(t) for t in tails(angle)
        ]
        relative, modelled = (
            part.ravel().tolist() for part in self.geometry(demand.pose, x, tail, demand.base, eta)
        )
        phi = self.equations.solve(relative, demand.angles)
        angles = self.symbols.promoted_angles(phi.models)
        error = self.symbols.momentum(errors)
        momentum = [a + b for a, b in zip(modelled, error, strict=True)]
        decoupling, mass = self.matrices(angles)
        solver = Solver(decoupling)
        twist = self.aim(x, tail, ve, demand.twist)[0].ravel()
        drift = self.drift(angles, momentum)[0].ravel()
        s = self.symbols.promoted_speeds(solver((twist - drift).tolist()))
        base = self.base(angles, s, momentum)[0].ravel().tolist()
        moved = self.base_rate(demand.base, demand.base_rate, eta, base)[0].ravel().tolist()
        rates = [m for part in self.error_rate(x, tail, ve) for m in part.ravel().tolist()]
        whole = [
            *(a - b for a, b in zip(rates[:6], demand.x_rate, strict=True)),
            *moved,
            *(a - b for a, b in zip(rates[6:], demand.ve_rate, strict=True)),
        ]
        momenta = (modelled, error, momentum)
        return State(
            x, eta, ve, tail, relative, phi, angles, *momenta, s, base, solver, mass, rates, whole
        )

    def slopes(self, demand: Demand, state: State) -> list[np.ndarray]:
        """Derivatives of eta's rate by dx, eta, dv and the momentum: four matrices of models.

        Backwards: of the base's twist v1(phi, s, Pi) with N(phi, s, Pi) = xi, g(phi, p) = 0.
        """
        phi, s, momentum = state.angles, state.s, state.momentum
        here = (demand.pose, state.x, state.tail, demand.base, state.eta)
        by_x, by_eta = self.geometry_slopes(*here)
        g_phi, g_p = self.equation_slopes(phi, state.relative)
        n_phi, n_pi, b_phi, b_s, b_pi = self.speed_slopes(phi, s, momentum)
        by_hand = _solved(state.decoupling.matrix, b_s)
        by_angles = b_phi - by_hand @ n_phi
        by_relative = -(_solved(g_phi, by_angles) @ g_p)
        by_momentum = b_pi - by_hand @ n_pi
        twists = [by_relative @ m[:12] + by_momentum @ m[12:] for m in (by_x, by_eta)]
        twists[0] = twists[0] + by_hand @ self.aim_slope(state.x, state.tail, demand.twist)[0]
        own, through = self.base_rate_slopes(demand.base, demand.base_rate, state.eta, state.base)
        found = [through @ twists[0], own + through @ twists[1], through @ by_hand]
        return [*found, *([through @ by_momentum] if self.symbols.wrong else [])]


def averaged(m: Model, end: int) -> Model:
    """Mean of m(t, theta y) over theta from 0 to 1, y the symbols from 1 up to an end."""
    first, second = m.space.pairs(len(m.l))[:2]
    own = (np.arange(max(len(m.l), end)) >= 1) & (np.arange(max(len(m.l), end)) < end)
    one = np.where(own[: len(m.l)], 0.5, 1.0)
    two = 1.0 / (1.0 + own[first].astype(int) + own[second].astype(int))
    return Model(m.space, m.c, m.l * one[:, None], m.q * two[:, None], m.r * (1 + 1e-12))


def _solved(matrix: np.ndarray, left: np.ndarray) -> np.ndarray:
    """L A^-1."""
    solver = Solver(matrix.T)
    rows = [solver(row.tolist()) for row in left]
    found = np.empty((len(left), len(matrix)), dtype=object)
    for i, row in enumerate(rows):
        found[i, :] = row
    return found
