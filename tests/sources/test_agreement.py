"""Nine formulations of one wheeled and of one floating robot agree with Pinocchio's multipliers.

Sources 000 and 003 (A. Mueller); the forms are literal in tests/oracles, from one Lagrangian.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.groups.oracles import bracket
from tests.oracles import (
    Constrained,
    Forms,
    Pinocchio,
    Split,
    Trivialized,
    assert_close,
    boltzmann_hamel,
    rover,
    rover_rows,
    solve,
    structure,
)
from tests.sources._charts import body_rates, quaternion, rotation
from tests.sources._misprints import check_misprints

TENSOR = np.array([[0.05, 0.004, -0.003], [0.004, 0.03, 0.002], [-0.003, 0.002, 0.04]])
SE2 = np.zeros((3, 3, 3))  # [E_3, E_1] = E_2, [E_3, E_2] = -E_1
SE2[1, 2, 0], SE2[1, 0, 2], SE2[0, 2, 1], SE2[0, 1, 2] = 1.0, -1.0, -1.0, 1.0


def satellite() -> Mechanism:
    """Free base with two skew hinges in a row."""
    bodies = [
        Body("base", joints.Free(), None, Pose(), Inertia(5.0, (0.05, -0.1, 0.02), 4 * TENSOR)),
        Body(
            "upper",
            joints.Revolute((1, 2, -1)),
            "base",
            Pose((0.3, 0.1, -0.2), (0.1, 0.2, -0.3, np.sqrt(0.86))),
            Inertia(2.0, (0.1, 0.2, 0.05), TENSOR),
        ),
        Body(
            "fore",
            joints.Revolute((0, 1, 1)),
            "upper",
            Pose((0.1, 0.4, 0.0)),
            Inertia(1.5, (-0.1, 0.25, 0.1), TENSOR),
        ),
    ]
    return Mechanism("satellite", bodies)


class Charted:
    """A robot in coordinates (s, r): of its base, and of its joints.

    Parameters
    ----------
    robot : Mechanism
        On a planar or free base.
    """

    def __init__(self, robot: Mechanism) -> None:
        nb, n = robot.base.joint.nv, robot.nv
        self.robot, self.m = robot, nb
        self.s, self.r = ca.SX.sym("s", nb), ca.SX.sym("r", n - nb)
        self.q = ca.vertcat(self.s, self.r)
        if nb == 3:
            turn = rotation(ca.vertcat(0, 0, self.s[2]))[:2, :2]
            self.base = ca.diagcat(turn.T, 1)
            self.place = self.s
        else:
            turn = rotation(self.s[3:])
            self.base = ca.diagcat(turn.T, body_rates(self.s[3:]))
            self.place = ca.vertcat(self.s[:3], quaternion(self.s[3:]))
        self._place = ca.Function("place", [self.q], [ca.vertcat(self.place, self.r)])
        self.mass = robot.mass_matrix(ca.vertcat(self.place, self.r))
        self.height = robot.potential_energy(ca.vertcat(self.place, self.r))

    def reduced(self, r: ca.SX, xi: ca.SX, rdot: ca.SX) -> ca.SX:
        """l(r, xi, rdot)."""
        v = ca.vertcat(xi, rdot)
        return v.T @ self.mass @ v / 2 - self.height

    def lagrangian(self, q: ca.SX, qdot: ca.SX) -> ca.SX:
        return self.reduced(self.r, self.base @ qdot[: self.m], qdot[self.m :])

    def split(self, connection: ca.SX, force: np.ndarray) -> Split:
        """Constraints xi + A(r) rdot = 0."""
        quasi = ca.diagcat(self.base.T, ca.SX.eye(len(force) - self.m)) @ ca.DM(force)
        return Split(self.s, self.r, self.lagrangian, self.base, connection, quasi)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """q of the package."""
        return np.array(self._place(q))[:, 0]


def _wheeled() -> tuple[Charted, ca.SX, np.ndarray]:
    """The rover, its connection by hand, and torques on all freedoms."""
    charted = Charted(rover())
    b, c = 0.10, 0.25
    connection = np.zeros((3, 5))
    connection[:, :2] = [[-b / 2, -b / 2], [0, 0], [b / (2 * c), -b / (2 * c)]]
    force = np.array([0.3, -0.5, 0.2, 1.1, -0.7, 0.4, 0.6, -0.9])
    return charted, ca.SX(connection), force


def _floating() -> tuple[Charted, ca.SX, np.ndarray]:
    """The satellite, its mechanical connection A = L^-1 K (5.4), and joint torques."""
    charted = Charted(satellite())
    locked, coupling = charted.mass[:6, :6], charted.mass[:6, 6:]
    force = np.concatenate([np.zeros(6), [0.8, -0.5]])
    return charted, ca.solve(locked, coupling), force


@cache
def _state(n: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, n)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("make", [_wheeled, _floating])
@pytest.mark.parametrize("seed", range(3, 18, 3))
def test_formulations_agree(make, seed: int) -> None:  # type: ignore[no-untyped-def]
    """000: (2.8)-(2.12), (3.6), (3.7), (3.12)-(3.15), (4.9), (6.1)-(6.3); 003: (20)-(24)."""
    charted, connection, force = make()
    m, n = charted.m, charted.robot.nv
    q, rdot = _state(n, seed), _state(n - m, seed + 1)
    forms = Forms(charted.split(connection, force))
    multiplied, multipliers = forms.multipliers(q, rdot)
    constants = SE2 if m == 3 else structure(bracket, 6)
    group = Trivialized(charted.r, charted.reduced, constants)
    bent = ca.Function("f", [charted.r], [ca.vertcat(*group.curvature(connection)[0])])
    assert np.abs(np.array(bent(q[m:]))).max() > 1e-3  # the connection is not flat

    # Pinocchio, at full order.
    at, oracle = charted.configuration(q), Pinocchio(charted.robot)
    lift = np.array(ca.Function("f", [charted.r], [connection])(q[m:]))
    v = np.concatenate([-lift @ rdot, rdot])
    if m == 3:
        expected = Constrained(oracle, rover_rows(0.10, 0.25)).acceleration(at, v, force)[0][m:]
    else:
        expected = oracle.forward_dynamics(at, v, force)[m:]
        assert_close(multipliers, np.zeros(6), 1e-12)  # momentum that is conserved needs no force
    principal = group.principal(connection)
    pulled = force[m:] - lift.T @ force[:m]
    model, normal = cc.reduce(charted.robot), Forms(forms.split.normalized())
    controls = np.linalg.solve(model.input_matrix(at), pulled)
    found = {
        "multipliers": multiplied,
        "Hamel (2.10)": forms.acceleration(forms.hamel(), q, rdot),
        "shape velocities (3.6)": forms.acceleration(forms.holonomic(), q, rdot),
        "connection form (3.12)": normal.acceleration(normal.holonomic(), q, rdot),
        "constrained (3.14)": forms.acceleration(forms.constrained_lagrangian(), q, rdot),
        "Voronets (3.15)": forms.acceleration(forms.voronets(), q, rdot),
        "Lagrange-d'Alembert-Poincare (4.9)": solve(
            lambda z: np.array(principal(q[m:], rdot, z))[:, 0], n - m, pulled
        ),
        "reduced model": model.acceleration(at, rdot, controls),
    }
    for name, value in found.items():
        assert_close(value, expected, 1e-10, name=name)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("make", [_wheeled, _floating])
@pytest.mark.parametrize("seed", range(3, 18, 3))
def test_full_order_formulations_agree(make, seed: int) -> None:  # type: ignore[no-untyped-def]
    """No constraint: Boltzmann-Hamel, Euler-Poincare and Lagrange-Poincare, with any momentum.

    000: (1.1)-(1.3), (2.3), (2.4), (2.7), (5.1), (5.2), (5.12), (5.13); 003: (39)-(41).
    """
    charted, connection, force = make()
    m, n = charted.m, charted.robot.nv
    q, v = _state(n, seed), _state(n, seed + 2)
    oracle, at = Pinocchio(charted.robot), charted.configuration(q)
    expected = oracle.forward_dynamics(at, v, force)

    forms = ca.diagcat(charted.base, ca.SX.eye(n - m))
    back = ca.diagcat(ca.solve(charted.base, ca.SX.eye(m)), ca.SX.eye(n - m))
    u, udot = ca.SX.sym("u", n), ca.SX.sym("udot", n)
    left = boltzmann_hamel(charted.q, charted.lagrangian, forms, back)(u, udot)
    function = ca.Function("f", [charted.q, u, udot], [left])
    found = solve(lambda a: np.array(function(q, v, a))[:, 0], n, force)
    assert_close(found, expected, 1e-10, name="Boltzmann-Hamel (2.4)")

    group = Trivialized(charted.r, charted.reduced, SE2 if m == 3 else structure(bracket, 6))
    pair = group.euler_poincare()
    xi, rdot = v[:m], v[m:]
    found = solve(
        lambda a: np.vstack([np.array(x) for x in pair(q[m:], xi, rdot, a[:m], a[m:])])[:, 0],
        n,
        force,
    )
    assert_close(found, expected, 1e-10, name="Euler-Poincare (5.1), (5.2)")

    lift = np.array(ca.Function("f", [charted.r], [connection])(q[m:]))
    slope = ca.SX.sym("rdot", n - m)
    turning = ca.Function(
        "f", [charted.r, slope], [ca.jtimes(connection, charted.r, slope) @ slope]
    )
    locked = group.lagrange_poincare(connection)
    omega = xi + lift @ rdot
    found = solve(
        lambda a: np.vstack([np.array(x) for x in locked(q[m:], omega, rdot, a[:m], a[m:])])[:, 0],
        n,
        np.concatenate([force[:m], force[m:] - lift.T @ force[:m]]),
    )
    # Omegadot = xidot + A rddot + Adot rdot
    found[:m] -= lift @ found[m:] + np.array(turning(q[m:], rdot))[:, 0]
    assert_close(found, expected, 1e-10, name="Lagrange-Poincare (5.12), (5.13)")


def _shape(function: ca.Function, q: np.ndarray, rdot: np.ndarray, right: np.ndarray) -> np.ndarray:
    return solve(lambda z: np.array(function(q, rdot, z))[:, 0], len(rdot), right)


def misprint_000_1() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(1.1): signs of E and c; as printed it is the right-trivialized equation."""
    charted, connection, _ = _floating()
    group = Trivialized(charted.r, charted.reduced, structure(bracket, 6))
    q, v, a = _state(8), _state(8, 5), _state(8, 6)
    lift = np.array(ca.Function("f", [charted.r], [connection])(q[6:]))
    momentum = group.euler_poincare()(q[6:], v[:6], v[6:], a[:6], a[6:])[0]
    slope = ca.SX.sym("y", 2)
    turning = ca.Function("f", [charted.r, slope], [ca.jtimes(connection, charted.r, slope)])
    rate = a[:6] + lift @ a[6:] + np.array(turning(q[6:], v[6:])) @ v[6:]
    args = q[6:], v[:6] + lift @ v[6:], v[6:], rate, a[6:]
    printed, right = (group.lagrange_poincare(connection, x)(*args)[0] for x in (True, False))
    return np.array(momentum), np.array(printed), np.array(right)


def misprint_000_10() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(4.9), (6.4): the term of the curvature is on the left with a plus."""
    charted, connection, force = _wheeled()
    q, rdot, lift = _state(8), _state(5, 4), np.array(ca.evalf(connection))
    at, v = charted.configuration(q), np.concatenate([-lift @ rdot, rdot])
    full = Constrained(Pinocchio(charted.robot), rover_rows(0.10, 0.25))
    group = Trivialized(charted.r, charted.reduced, SE2)
    pulled = force[3:] - lift.T @ force[:3]
    printed, right = (
        _shape(group.principal(connection, sign), q[3:], rdot, pulled) for sign in (-1.0, 1.0)
    )
    return full.acceleration(at, v, force)[0][3:], printed, right


def misprint_000_17() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sections 4c, 5d: derivatives of l at constant xi -> of ell at constant u."""
    truth, _, right = misprint_000_10()
    charted, connection, force = _wheeled()
    q, rdot, lift = _state(8), _state(5, 4), np.array(ca.evalf(connection))
    xi, y, z = ca.SX.sym("xi", 3), ca.SX.sym("y", 5), ca.SX.sym("z", 5)
    value, group = charted.reduced(charted.r, xi, y), Trivialized(charted.r, charted.reduced, SE2)
    shape, momenta = ca.gradient(value, y), ca.gradient(value, xi)
    residual = ca.jtimes(shape, charted.r, y) + ca.jtimes(shape, y, z)
    residual += ca.jtimes(shape, xi, -connection @ z) - ca.gradient(value, charted.r)
    for i, row in enumerate(group.curvature(connection)):
        residual[i] += sum(ca.dot(momenta, bent) * y[j] for j, bent in enumerate(row))
    residual = ca.substitute(residual, xi, -connection @ y)
    function = ca.Function("f", [charted.r, y, z], [residual])
    return truth, _shape(function, q[3:], rdot, force[3:] - lift.T @ force[:3]), right


def misprint_000_24() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Section 6c: (6.3) with a momentum -> (5.13), with gamma_Ia Omega^a and all of ell."""
    charted, connection, force = _floating()
    q, v = _state(8), 3 * _state(8, 5)
    at = charted.configuration(q)
    truth = Pinocchio(charted.robot).forward_dynamics(at, v, force)
    group = Trivialized(charted.r, charted.reduced, structure(bracket, 6))
    lift = np.array(ca.Function("f", [charted.r], [connection])(q[6:]))
    omega = v[:6] + lift @ v[6:]
    locked = np.array(ca.Function("f", [charted.r], [charted.mass[:6, :6]])(q[6:]))
    bent = ca.vertcat(
        *(
            sum(ca.dot(ca.DM(locked @ omega), x) * ca.DM(v[6:])[j] for j, x in enumerate(row))
            for row in group.curvature(connection)
        )
    )
    turned = np.array(ca.Function("f", [charted.r], [bent])(q[6:]))[:, 0]
    plain = group.principal(connection, 0.0)
    printed = _shape(plain, q[6:], v[6:], force[6:] - turned)
    model = cc.reduce(charted.robot, momentum=_spatial(at, locked @ omega))
    return truth[6:], printed, model.acceleration(at, v[6:], force[6:])


def _spatial(q: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """Momentum in inertial axes, about the inertial origin."""
    turn = Rotation.from_quat(q[3:7]).as_matrix()
    linear = turn @ momentum[:3]
    return np.concatenate([linear, turn @ momentum[3:] + np.cross(q[:3], linear)])


def test_misprints() -> None:
    check_misprints(globals())
