"""Curvature on groups, phase, gyrostat, centroidal momentum and rolling balls: 000, 003.

Twists are [angular; linear] in this file, as in the sources.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
from scipy.linalg import block_diag, expm
from scipy.spatial.transform import Rotation

from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.groups.oracles import cross_matrix
from tests.oracles import (
    Pinocchio,
    Trivialized,
    assert_close,
    boltzmann_hamel,
    coefficients,
    difference_quotient,
    slopes,
    solve,
)
from tests.sources._charts import body_rates, rotation
from tests.sources._misprints import check_misprints
from tests.sources.test_rigid_body import EPS, I3, TURN, ad, adjoint

Array = np.ndarray


# --- Curvature and the equations of section 5 -----------------------------------------------


@cache
def _bundle(sign: float) -> tuple[Array, Array, Array, Array]:
    """SO(3) x R^2: gamma[c, a, b] by (2.6), A, its slopes and the signed brackets."""
    phi, r = ca.SX.sym("phi", 3), ca.SX.sym("r", 2)
    rng = np.random.default_rng(1)
    waves = ca.DM(rng.uniform(-1, 1, (6, 2))) @ r + ca.DM(rng.uniform(-3, 3, 6))
    connection = ca.reshape(ca.sin(waves), 3, 2)
    lower = ca.horzcat(ca.SX(2, 3), ca.SX.eye(2))
    forms = ca.vertcat(ca.horzcat(body_rates(phi, -sign), connection), lower)
    at = np.array([0.3, -0.7, 0.5, 0.4, -0.9])
    gamma = coefficients(*slopes(forms, ca.vertcat(phi, r), at))
    return gamma, *slopes(connection, r, at[3:]), sign * EPS


def test_coefficients_on_a_bundle() -> None:
    """Left and right. 000: (4.1)-(4.7), (5.6)-(5.11)."""
    for sign in (1.0, -1.0):
        gamma, a, da, c = _bundle(sign)
        assert_close(gamma[:3, :3, :3], c, 1e-13)
        assert_close(gamma[:3, 3:, :3], np.einsum("abd,dj->ajb", c, a), 1e-13)
        curvature = da - da.transpose(0, 2, 1) + np.einsum("alm,li,mj->aij", c, a, a)
        assert_close(gamma[:3, 3:, 3:], curvature, 1e-13)
        assert_close(gamma[3:], np.zeros((2, 5, 5)), 1e-14)


def misprint_000_8() -> tuple[Array, Array, Array]:
    """Sections 3, 4: B = dA - [A, A], with dA(X, Y) = d_I A_J - d_J A_I, is -gamma."""
    gamma, a, da, c = _bundle(1.0)
    bent, turned = da - da.transpose(0, 2, 1), np.einsum("alm,li,mj->aij", c, a, a)
    return gamma[:3, 3:, 3:], -bent - turned, bent + turned


def misprint_000_13() -> tuple[Array, Array, Array]:
    """Proof of Lemma 5.1: gamma_bJ = c A_J -> -c A_J."""
    gamma, a, _, c = _bundle(1.0)
    mixed = np.einsum("abd,dj->abj", c, a)
    return gamma[:3, :3, 3:], mixed, -mixed


# --- Phase ----------------------------------------------------------------------------------


def _phase(columns: Array, size: float, left: bool) -> Array:
    """Logarithm of the displacement after a circle of the shape, counter-clockwise."""
    turn, steps = np.eye(3), 400
    for k in range(steps):
        angle = 2 * np.pi * (k + 0.5) / steps
        move = size * 2 * np.pi / steps * np.array([-np.sin(angle), np.cos(angle)])
        piece = expm(-cross_matrix(columns @ move))
        turn = turn @ piece if left else piece @ turn
    return Rotation.from_matrix(turn).as_rotvec()


COLUMNS = np.array([[0.8, -0.3], [0.2, 1.1], [-0.5, 0.4]])


def misprint_000_9() -> tuple[Array, Array, Array, float]:
    """(4.8): - integral of B -> + for B = gamma."""
    truth = _phase(COLUMNS, 1e-3, True) / (np.pi * 1e-6)
    curvature = np.cross(COLUMNS[:, 0], COLUMNS[:, 1])
    return truth, -curvature, curvature, 5e-3


def _dexp_inverse(x: Array, sign: float) -> Array:
    """Inverse of the sum of (sign ad_x)^k / (k + 1)!."""
    term, total = np.eye(6), np.eye(6)
    for k in range(1, 25):
        term = sign * term @ ad(x) / (k + 1)
        total = total + term
    return np.linalg.inv(total)


def _hat(x: Array) -> Array:
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = cross_matrix(x[:3]), x[3:]
    return matrix


def misprint_000_22() -> tuple[Array, Array, Array, float]:
    """After (5.36): Xdot = dexp^-1_X V_b -> dexp^-1_-X V_b; also (4.10), (4.11)."""
    x, rate = np.array([0.4, -0.3, 0.6, 1.0, 0.2, -0.7]), np.arange(1.0, 7.0) / 6
    slope = difference_quotient(lambda h: expm(_hat(x + h * rate)))
    body = np.linalg.solve(expm(_hat(x)), slope)
    twist = np.array([body[2, 1], body[0, 2], body[1, 0], *body[:3, 3]])
    spatial = adjoint(expm(_hat(x))[:3, :3], expm(_hat(x))[:3, 3]) @ twist
    assert_close(_dexp_inverse(x, 1.0) @ spatial, rate, 1e-9)
    return rate, _dexp_inverse(x, 1.0) @ twist, _dexp_inverse(x, -1.0) @ twist, 1e-9


# --- Satellite with rotors ------------------------------------------------------------------

MASSES = np.array([0.3, 0.4, 0.25])
PLACES = np.array([[0.3, 0.1, -0.2], [-0.1, 0.4, 0.2], [0.2, -0.3, 0.35]])
AXIAL, ACROSS = np.array([8e-3, 9e-3, 7e-3]), np.array([4e-3, 5e-3, 4.5e-3])
OWN = [np.diag(np.where(np.arange(3) == i, AXIAL[i], ACROSS[i])) for i in range(3)]
BASE = np.array([[0.12, 0.01, -0.02], [0.01, 0.14, 0.015], [-0.02, 0.015, 0.16]])
BASE_MASS, BASE_PLACE = 2.0, np.array([0.05, -0.08, 0.03])


def _block(m: float, theta: Array, d: Array) -> Array:
    """(5.26): mass matrix of a body about the origin of the base frame."""
    about = theta - m * cross_matrix(d) @ cross_matrix(d)
    return np.block([[about, m * cross_matrix(d)], [-m * cross_matrix(d), m * I3]])


ROTORS = [_block(m, own, d) for m, own, d in zip(MASSES, OWN, PLACES, strict=True)]
LOCKED = _block(BASE_MASS, BASE, BASE_PLACE) + sum(ROTORS)
TOTAL = BASE_MASS + MASSES.sum()
CENTRE = (BASE_MASS * BASE_PLACE + MASSES @ PLACES) / TOTAL
THETA = LOCKED[:3, :3]
TURNS = np.column_stack([m[:3, i] for i, m in enumerate(ROTORS)])
"""theta^i = Theta^i e_i with Steiner's terms, columns."""
OFFSETS = np.column_stack([np.cross(d, e) for d, e in zip(PLACES, I3, strict=True)])
"""a_i = d_i~ e_i, columns."""
TWIST = np.array([0.4, -0.7, 0.3, 0.9, 0.2, -0.5])
TWIST_RATE = np.array([0.6, 0.1, -0.8, -0.3, 0.5, 0.7])
SPIN, SPIN_RATE = np.array([3.0, -2.0, 4.0]), np.array([-1.0, 5.0, 2.0])


@cache
def _satellite() -> Mechanism:
    bodies = [Body("base", joints.Free(), None, Pose(), Inertia(BASE_MASS, BASE_PLACE, BASE))]
    for i in range(3):
        inertia = Inertia(MASSES[i], moments=OWN[i])
        bodies.append(Body(f"rotor{i}", joints.Revolute(I3[i]), "base", Pose(PLACES[i]), inertia))
    return Mechanism("satellite", bodies)


@cache
def _mass_matrix() -> Array:
    """Pinocchio's mass matrix with the angular part first."""
    order = [3, 4, 5, 0, 1, 2, 6, 7, 8]
    return Pinocchio(_satellite()).mass_matrix(_satellite().neutral())[np.ix_(order, order)]


def test_blocks_of_the_satellite() -> None:
    """000: (5.3)-(5.5), (5.14), (5.25)-(5.36)."""
    m = _mass_matrix()
    locked, coupling, own = m[:6, :6], m[:6, 6:], m[6:, 6:]
    assert_close(locked, LOCKED, 1e-13)
    d = cross_matrix(CENTRE)
    u = np.linalg.inv(THETA + TOTAL * d @ d)
    inverse = np.block([[u, -u @ d], [d @ u, I3 / TOTAL - d @ u @ d]])
    assert_close(inverse, np.linalg.inv(locked), 1e-12)
    connection = inverse @ coupling
    alpha = u @ np.diag(AXIAL)
    assert_close(connection, np.vstack([alpha, d @ alpha]), 1e-13)
    change = np.block([[np.eye(6), -connection], [np.zeros((3, 6)), I3]])
    reduced = np.diag(AXIAL) - np.diag(AXIAL) @ alpha
    assert_close(change.T @ m @ change, block_diag(locked, reduced), 1e-13)
    assert_close(own - coupling.T @ connection, reduced, 1e-14)
    bracket = ad(connection[:, 0]) @ connection[:, 1]
    turned = np.cross(alpha[:, 0], alpha[:, 1])
    assert_close(bracket, np.concatenate([turned, d @ turned]), 1e-14, floor=1e-3)


def misprint_000_18() -> tuple[Array, Array, Array]:
    """(5.18) to (5.21): phi -> phidot, phiddot; the momentum is constant in inertial axes."""
    w, rate, angle = TWIST[:3], TWIST_RATE[:3], np.array([0.2, 0.5, -0.4])
    common = THETA @ rate + np.cross(w, THETA @ w)

    def momentum(h: float) -> Array:
        return expm(h * cross_matrix(w)) @ (THETA @ (w + h * rate) + TURNS @ (SPIN + h * SPIN_RATE))

    printed = common + TURNS @ SPIN + np.cross(w, TURNS @ angle)
    right = common + TURNS @ SPIN_RATE + np.cross(w, TURNS @ SPIN)
    return difference_quotient(momentum), printed, right, 1e-8


def misprint_000_19() -> tuple[Array, Array, Array]:
    """After (5.22): omega_loc = omega - A phidot -> omega + A phidot."""
    w, moved = TWIST[:3], np.linalg.solve(THETA, TURNS) @ SPIN
    truth = np.linalg.solve(THETA, THETA @ w + TURNS @ SPIN)  # the rotors stop, momentum stays
    return truth, w - moved, w + moved


def misprint_000_20() -> tuple[Array, Array, Array]:
    """(5.23): all rotors' rates in one rotor -> its own; e_i phidot^i - A phidot."""
    moved = np.linalg.solve(THETA, TURNS) @ SPIN
    locked = TWIST[:3] + moved
    truth = TWIST[:3, None] + np.diag(SPIN)  # angular velocities of the rotors, columns
    printed = np.tile((locked + SPIN - moved)[:, None], 3)
    return truth, printed, (locked - moved)[:, None] + np.diag(SPIN)


def misprint_000_21() -> tuple[Array, Array, Array]:
    """(5.30), (5.32): - m omega~ v~ d -> m d~ (omega x v); truth (5.29)."""
    w, v = np.split(TWIST, 2)
    wdot, vdot = np.split(TWIST_RATE, 2)
    spun = np.vstack([TURNS, -OFFSETS * MASSES])
    truth = LOCKED @ TWIST_RATE + spun @ SPIN_RATE
    truth = truth - ad(TWIST).T @ (LOCKED @ TWIST + spun @ SPIN)
    gyro = np.cross(w, TURNS @ SPIN) - np.cross(v, OFFSETS @ (MASSES * SPIN))
    common = THETA @ wdot + np.cross(w, THETA @ w) + TURNS @ SPIN_RATE + gyro
    common = common + TOTAL * np.cross(CENTRE, vdot)
    printed = common - TOTAL * np.cross(w, np.cross(v, CENTRE))
    right = common + TOTAL * np.cross(CENTRE, np.cross(w, v))
    bottom = TOTAL * (vdot + np.cross(w, v) + np.cross(wdot, CENTRE))
    bottom = bottom + TOTAL * np.cross(w, np.cross(w, CENTRE))
    bottom = bottom - OFFSETS @ (MASSES * SPIN_RATE) - np.cross(w, OFFSETS @ (MASSES * SPIN))
    assert_close(bottom, truth[3:], 1e-13)
    return truth[:3], printed, right


def misprint_000_23() -> tuple[Array, Array, Array]:
    """Section 5f: V_i = V_b + (e_i phidot, 0) -> V_b + (e_i, d_i x e_i) phidot."""
    printed = np.vstack([TURNS, -OFFSETS * MASSES])
    screws = np.vstack([I3, OFFSETS])
    right = np.column_stack([m @ x for m, x in zip(ROTORS, screws.T, strict=True)])
    return _mass_matrix()[:6, 6:], printed, right


# --- Rolling balls --------------------------------------------------------------------------

RADIUS, BALL, MOMENTS = 0.3, 1.5, np.diag([0.04, 0.05, 0.06])
RHO = RADIUS * np.array([0.36, -0.48, 0.8])
OMEGA = np.array([0.4, -1.1, 0.7])


@cache
def _ball() -> tuple[Array, Array, Array]:
    """gamma[c, a, b], omegadot by (22), and the same without the constrained momenta."""
    phi, r = ca.SX.sym("phi", 3), ca.SX.sym("r", 3)
    q, u, udot = ca.vertcat(phi, r), ca.SX.sym("u", 6), ca.SX.sym("udot", 6)
    turn, omega = rotation(phi), body_rates(phi, 1.0)
    arm, zero, eye = ca.DM(cross_matrix(RHO)), ca.SX(3, 3), ca.SX.eye(3)
    forms = ca.vertcat(ca.horzcat(arm @ omega, eye), ca.horzcat(omega, zero))  # (128)
    psi = ca.solve(omega, eye)
    back = ca.vertcat(ca.horzcat(zero, psi), ca.horzcat(eye, -arm))  # (129)
    at = np.concatenate([Rotation.from_matrix(TURN).as_rotvec(), [0.4, -0.9, 1.7]])
    identity = np.array(ca.Function("f", [q], [forms @ back])(at))
    assert_close(identity, np.eye(6), 1e-14)

    def kinetic(_: ca.SX, qdot: ca.SX) -> ca.SX:
        w = turn.T @ omega @ qdot[:3]
        return w.T @ ca.DM(MOMENTS) @ w / 2 + BALL * ca.sumsqr(qdot[3:]) / 2

    def early(_: ca.SX, qdot: ca.SX) -> ca.SX:
        w = omega @ qdot[:3]
        return kinetic(_, ca.vertcat(qdot[:3], -arm @ w))

    found = []
    for energy in (kinetic, early):
        left = boltzmann_hamel(q, energy, forms, back)(u, udot)[3:]
        f = ca.Function("f", [q, u, udot], [left])
        rates = np.concatenate([np.zeros(3), OMEGA])
        found.append(
            solve(
                lambda a, f=f, rates=rates: np.array(f(at, rates, [0, 0, 0, *a]))[:, 0],
                3,
                np.zeros(3),
            )
        )
    return coefficients(*slopes(forms, q, at)), found[0], found[1]


def test_chaplygin_ball() -> None:
    """003: (125) to (142) in any plane; constraints put in first give another motion."""
    gamma, rate, early = _ball()
    assert_close(gamma[3:, 3:, 3:], -EPS, 1e-13)  # (133)
    assert_close(gamma[:3, 3:, 3:], -np.einsum("akl,k,lij->aij", EPS, RHO, EPS), 1e-13)  # (135)
    assert_close(gamma[:, :3], np.zeros((6, 3, 6)), 1e-13)
    central = TURN @ MOMENTS @ TURN.T
    about = central - BALL * cross_matrix(RHO) @ cross_matrix(RHO)
    assert_close(rate, np.linalg.solve(about, -np.cross(OMEGA, central @ OMEGA)), 1e-12)  # (141)
    assert np.abs(early - rate).max() > 0.1
    # (142): momentum about the contact is constant
    turned = cross_matrix(OMEGA) @ central - central @ cross_matrix(OMEGA)
    assert_close(turned @ OMEGA + about @ rate, np.zeros(3), 1e-13)


def test_ball_without_spin() -> None:
    """000: (4.12) to (4.15), right trivialization; phase of a circle."""
    radius, moment = 0.5, 0.4 * BALL * 0.5**2
    connection = -np.array([[0, -1], [1, 0], [0, 0]]) / radius  # omega = e3 x pdot / R
    r = ca.SX.sym("r", 2)

    def lagrangian(_: ca.SX, xi: ca.SX, rdot: ca.SX) -> ca.SX:
        return BALL * ca.sumsqr(rdot) / 2 + moment * ca.sumsqr(xi) / 2

    group = Trivialized(r, lagrangian, EPS, -1.0)
    bent = group.curvature(ca.SX(ca.DM(connection)))[1][0]
    assert_close(np.array(ca.evalf(bent))[:, 0], [0, 0, 1 / radius**2], 1e-14)  # gamma^3_54
    left = group.principal(ca.SX(ca.DM(connection)))
    force = np.array([0.7, -0.2])
    found = solve(lambda z: np.array(left([0, 0], [1, 2], z))[:, 0], 2, force)
    assert_close(found, force / (1.4 * BALL), 1e-13)
    for circle, z, size in ((0.02, -0.0050205, 0.0050245392), (0.1, -0.12202, 0.1244315906)):
        log = _phase(connection, circle, False)
        assert_close(np.linalg.norm(log), size, 5e-5, floor=size)
        assert_close(log[2], z, 1e-4, floor=size)
        angle = 2 * np.pi * (np.sqrt(1 + circle**2 / radius**2) - 1)
        assert_close(size, angle, 1e-8, floor=size)


def misprint_000_11() -> tuple[Array, Array, Array]:
    """Section 4d: 0 = rho~ pdot + R^2 omega - rho rho^T omega -> signs of the last terms."""
    moved = -np.cross(RHO, OMEGA)
    rest = RADIUS**2 * OMEGA - RHO * (RHO @ OMEGA)
    return np.zeros(3), np.cross(RHO, moved) + rest, np.cross(RHO, moved) - rest


def misprint_000_12() -> tuple[Array, Array, Array]:
    """(4.15): m - Theta A A -> m + Theta A A."""
    moment = 0.4 * BALL * RADIUS**2
    turned = moment * np.eye(2) / RADIUS**2
    # Truth: force through the centre, friction at the contact, J omegadot = R friction.
    friction = np.linalg.solve([[1, BALL], [RADIUS**2 / moment, -1]], [1.0, 0.0])
    truth = np.eye(2) / friction[1]
    return truth, BALL * np.eye(2) - turned, BALL * np.eye(2) + turned


def misprint_000_25() -> tuple[Array, Array, Array]:
    """Appendix A: x~ = (eps_ijk x^k) -> -eps_ijk x^k."""
    x, y = np.array([0.3, -0.8, 0.5]), np.array([0.4, 0.9, -0.2])
    printed = np.einsum("ijk,k->ij", EPS, x)
    return np.cross(x, y), printed @ y, -printed @ y


def misprint_000_26() -> tuple[Array, Array, Array]:
    """Section 5: SE(3) = SO(3) x R^3 as a direct product -> a semidirect one."""
    first, second = TURN, Rotation.from_rotvec([0.4, -0.2, 0.7]).as_matrix()
    p, q = np.array([0.1, 0.5, -0.3]), np.array([0.8, -0.6, 0.2])
    both = np.block([[first, p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    both = both @ np.block([[second, q[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    return both[:3, 3], p + q, p + first @ q


def test_misprints() -> None:
    check_misprints(globals())
