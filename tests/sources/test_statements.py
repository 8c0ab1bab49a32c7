"""Statements of the thesis, source 001, without a number: each against numbers by hand.

Phase spaces are in coordinates (q, p), with the canonical form dq ^ dp; Lagrangians, actions of
SE(2) and constraints are written here. Momenta, connections, curvatures and reduced forms are those
of the package.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import concur as cc
from concur.formulations import Factor
from concur.groups import classify, se3, so3
from concur.reduction import AuditStatus

Array = np.ndarray

# --- groups --------------------------------------------------------------------------------------


def _hat(twist: Array) -> Array:
    v, w = twist[:3], twist[3:]
    turn = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    return np.block([[turn, v[:, None]], [np.zeros((1, 4))]])


def _moved(rng: np.random.Generator) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    return pose


SPANS = {
    "rotation": [[0, 0, 0, 0, 0, 1]],
    "screw": [[0, 0, 0.3, 0, 0, 1]],
    "cylinder": [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]],
    "plane": [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]],
    "ball": np.eye(6)[3:].tolist(),
    "slide": np.eye(6)[:2].tolist(),
    "two axes": [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]],
    "universal": [[0, 0, 0, 1, 0, 0], [0, 0.2, 0, 0, 0, 1]],
}


@pytest.mark.parametrize("name", SPANS)
def test_involutive_spans_are_those_of_subgroups(name: str) -> None:
    """Proposition 2.1.1: what products of exponentials reach has as many dimensions as the span.

    Columns are the twists, in body axes, of a product of three exponentials by its parameters.
    """
    rng = np.random.default_rng(3)
    place = _moved(rng)
    carried = np.asarray(se3.adjoint(place)) @ np.array(SPANS[name]).T
    found = classify(carried)
    x = rng.normal(size=(3, carried.shape[1])).ravel()

    def product(x: Array) -> Array:
        pose = np.eye(4)
        for part in x.reshape(3, -1):
            pose = pose @ expm(_hat(carried @ part))
        return pose

    h, columns = 1e-6, []
    for e in np.eye(x.size):
        rate = np.linalg.solve(product(x), product(x + h * e) - product(x - h * e)) / (2 * h)
        columns.append([*rate[:3, 3], rate[2, 1], rate[0, 2], rate[1, 0]])
    reached = np.linalg.matrix_rank(np.array(columns), tol=1e-5)
    assert found.closed == (reached == carried.shape[1])
    assert (found.closure or found).dim == reached
    inside = (found.closure or found).basis
    rest = columns - (inside @ np.linalg.lstsq(inside, np.array(columns).T, rcond=None)[0]).T
    assert abs(rest).max() < 1e-6


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.3, np.pi - 1e-7, np.pi])
def test_each_pose_is_a_screw(angle: float) -> None:
    """Proposition 2.4.2, Chasles' theorem, and Lemma 2.4.3 for SO(3): logarithms of all poses."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        pose = np.eye(4)
        pose[:3, :3] = Rotation.from_rotvec(angle * axis).as_matrix()
        pose[:3, 3] = rng.normal(size=3)
        twist = np.asarray(se3.log(pose))
        np.testing.assert_allclose(expm(_hat(twist)), pose, atol=1e-8)
        np.testing.assert_allclose(np.asarray(so3.log(pose[:3, :3])), twist[3:], atol=1e-9)
        assert np.linalg.norm(twist[3:]) <= np.pi + 1e-12
        if angle > 1e-3:
            # The part of the translation along the axis is the same at all points.
            turned = twist[3:] / np.linalg.norm(twist[3:])
            point = np.cross(turned, twist[:3]) / angle
            shifted = pose[:3, :3] @ point + pose[:3, 3] - point
            np.testing.assert_allclose(shifted, (pose[:3, 3] @ turned) * turned, atol=1e-6)


def test_exponentials_of_translations_are_the_translations() -> None:
    """Lemma 2.4.4: vector groups have no bracket, and exp is the identity."""
    rng = np.random.default_rng(1)
    for joint in (cc.joints.Cartesian(), cc.joints.Sliding(), cc.joints.Prismatic((1, 2, 2))):
        a, b = rng.normal(size=(2, joint.nv))
        brackets = ca.DM(ca.SX(joint.bracket(ca.SX(a), ca.SX(b))))
        assert not np.array(brackets).any()
        pose = expm(_hat(joint.basis @ a))
        np.testing.assert_allclose(pose[:3, 3], joint.basis[:3] @ a, atol=1e-15)
        moved = joint.pose(joint.integrate(ca.SX(b), ca.SX(a)))[1]
        np.testing.assert_allclose(np.array(ca.DM(moved))[:, 0], joint.basis[:3] @ (a + b))


def test_identities_of_the_hat_map() -> None:
    """Lemma 2.4.6: square, cube, product with a vector and commutator."""
    rng = np.random.default_rng(2)
    w, v = rng.normal(size=(2, 3))
    W, V = (np.asarray(so3.skew(x)) for x in (w, v))
    np.testing.assert_allclose(W @ W, np.outer(w, w) - (w @ w) * np.eye(3), atol=1e-14)
    np.testing.assert_allclose(W @ W @ W, -(w @ w) * W, atol=1e-14)
    np.testing.assert_allclose(W @ v, np.cross(w, v), atol=1e-14)
    np.testing.assert_allclose(-V @ w, np.cross(w, v), atol=1e-14)
    np.testing.assert_allclose(so3.skew(W @ v), W @ V - V @ W, atol=1e-14)


# --- phase spaces --------------------------------------------------------------------------------


def test_variations_of_a_one_form() -> None:
    """Lemma 3.1.1: of the pairing of a one-form with the velocity of a curve that is varied."""
    t, e, x = ca.SX.sym("t"), ca.SX.sym("e"), ca.SX.sym("x", 3)
    curve = ca.vertcat(ca.sin(t + e * t**2), t * ca.cos(e), t**2 + e * ca.exp(t))
    form = ca.Function("form", [x], [ca.vertcat(x[1] * x[2], ca.sin(x[0]), x[0] * x[1] ** 2)])
    here, moving, varied = form(curve), ca.jacobian(curve, t), ca.jacobian(curve, e)
    slope = ca.jacobian(form(x), x)
    exterior = ca.Function("exterior", [x], [slope.T - slope])(curve)  # d(form)_ij, i, j
    left = ca.jacobian(ca.dot(here, moving), e)
    right = ca.jacobian(ca.dot(here, varied), t) + varied.T @ exterior @ moving
    both = ca.Function("both", [t, e], [left, right])(0.7, 0.0)
    assert float(both[0]) == pytest.approx(float(both[1]), abs=1e-13)
    assert abs(float(both[0])) > 0.1


def _canonical(n: int) -> Array:
    return np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


def _exterior(form: ca.SX, z: ca.SX) -> ca.SX:
    """Matrix of d(form): of two vectors, first and second."""
    slope = ca.jacobian(form, z)
    return slope.T - slope


def _acted(g: Array, z: ca.SX, n: int) -> ca.SX:
    """Cotangent lift of the motion g = (a, b, angle) of the plane on z = (q, p), q first (x, y)."""
    c, s = np.cos(g[2]), np.sin(g[2])
    turn = ca.DM([[c, -s], [s, c]])
    return ca.vertcat(
        turn @ z[:2] + ca.DM(g[:2]), z[2] + g[2], z[3:n], turn @ z[n : n + 2], z[n + 2 :]
    )


def _generators(z: ca.SX, n: int) -> ca.SX:
    """Fields of translations and the rotation on z, as columns: infinitesimal lifted actions."""
    field = ca.SX(2 * n, 3)
    field[0, 0] = field[1, 1] = 1
    field[0, 2], field[1, 2], field[2, 2] = -z[1], z[0], 1
    field[n, 2], field[n + 1, 2] = -z[n + 1], z[n]
    return field


def _coadjoint(g: Array, mu: Array) -> Array:
    """Spatial momentum (px, py, l) after the motion g: Ad*_(g^-1) mu."""
    turn = np.array([[np.cos(g[2]), -np.sin(g[2])], [np.sin(g[2]), np.cos(g[2])]])
    linear = turn @ mu[:2]
    return np.array([*linear, mu[2] + g[0] * linear[1] - g[1] * linear[0]])


# A hull in the plane with two masses that slide and turn on it.
HULL, INERTIA, LOADS = 3.0, 0.4, (1.2, 0.7)


def _places(r: ca.SX) -> list[ca.SX]:
    first = ca.vertcat(0.3 + 0.6 * ca.cos(r[0]), 0.6 * ca.sin(r[0]))
    return [first, ca.vertcat(-0.2 * r[1] ** 2, 0.4 + r[1])]


@cache
def floating() -> tuple[cc.LagrangianSystem, ca.Function, ca.Function]:
    """The system of the package; mass matrix by hand in (x, y, angle, r), and the Hamiltonian."""
    hull, shape = Factor("hull", "SE2"), Factor("shape", "R2")
    vx, vy, turn = ca.vertsplit(hull.v)
    energy = HULL * (vx**2 + vy**2) + INERTIA * turn**2
    for mass, at in zip(LOADS, _places(shape.q), strict=True):
        own = ca.jacobian(at, shape.q) @ shape.v
        energy += mass * ca.sumsqr(ca.vertcat(vx - turn * at[1], vy + turn * at[0]) + own)
    system = cc.LagrangianSystem(energy / 2, 0.0, [hull, shape], symmetry="hull")

    q, qdot, p = ca.SX.sym("q", 5), ca.SX.sym("qdot", 5), ca.SX.sym("p", 5)
    c, s = ca.cos(q[2]), ca.sin(q[2])
    axes = ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
    kinetic = HULL * ca.sumsqr(qdot[:2]) + INERTIA * qdot[2] ** 2
    for mass, at in zip(LOADS, _places(q[3:]), strict=True):
        kinetic += mass * ca.sumsqr(ca.jtimes(q[:2] + axes @ at, q, qdot))
    mass = ca.hessian(kinetic / 2, qdot)[0]
    hamiltonian = ca.dot(p, ca.solve(mass, p)) / 2
    return (
        system,
        ca.Function("mass", [q], [mass]),
        ca.Function("hamiltonian", [ca.vertcat(q, p)], [hamiltonian]),
    )


def _to_body(q: Array) -> Array:
    """From rates of (x, y, angle, r) to velocities of the package."""
    c, s = np.cos(q[2]), np.sin(q[2])
    found = np.eye(len(q))
    found[:2, :2] = [[c, s], [-s, c]]
    return found


Z = np.array([0.3, -0.2, 0.7, 0.5, -0.4, 0.6, -0.3, 0.8, 0.2, -0.5])
"""A state (q, p) of the hull with two masses."""


def _momentum(z: Array) -> Array:
    """Momentum of the package at a state (q, p)."""
    system, mass, _ = floating()
    rates = np.linalg.solve(np.array(mass(z[:5])), z[5:])
    return np.asarray(system.momentum(z[:5], _to_body(z[:5]) @ rates))


def test_lifted_actions_keep_the_canonical_form() -> None:
    """Lemma 3.2.1: of motions of the plane."""
    z, g = ca.SX.sym("z", 10), np.array([0.4, -0.7, 1.1])
    slope = np.array(ca.Function("slope", [z], [ca.jacobian(_acted(g, z, 5), z)])(Z))
    form = _canonical(5)
    np.testing.assert_allclose(slope.T @ form @ slope, form, atol=1e-14)


def test_the_momentum_is_an_equivariant_momentum_map() -> None:
    """Lemma 3.2.2: it generates the action, and turns with it by the coadjoint action."""
    z, g, h = ca.SX.sym("z", 10), np.array([0.4, -0.7, 1.1]), 1e-6
    moved = np.array(ca.Function("moved", [z], [_acted(g, z, 5)])(Z))[:, 0]
    np.testing.assert_allclose(_momentum(moved), _coadjoint(g, _momentum(Z)), atol=1e-12)
    slopes = [(_momentum(Z + h * e) - _momentum(Z - h * e)) / (2 * h) for e in np.eye(10)]
    fields = np.array(ca.Function("fields", [z], [_generators(z, 5)])(Z))
    # i_X Omega = d<M, xi>.
    np.testing.assert_allclose(_canonical(5).T @ fields, slopes, atol=1e-8)


def test_noethers_theorem() -> None:
    """Proposition 3.2.3: the momentum is constant along the flow, unless gravity breaks it."""
    _, _, hamiltonian = floating()
    z = ca.SX.sym("z", 10)

    def flow(weight: float) -> Array:
        energy = hamiltonian(z) + weight * (HULL + sum(LOADS)) * z[1]
        for mass, at in zip(LOADS, _places(z[3:5]), strict=True):
            energy += weight * mass * (ca.sin(z[2]) * at[0] + ca.cos(z[2]) * at[1])
        slope = ca.Function("slope", [z], [ca.gradient(energy, z)])
        form = _canonical(5)
        found = solve_ivp(
            lambda t, x: form @ np.array(slope(x))[:, 0],
            (0.0, 1.0),
            Z,
            "DOP853",
            [0.0, 0.5, 1.0],
            rtol=1e-11,
            atol=1e-12,
        )
        return np.array([_momentum(x) for x in found.y.T])

    free, heavy = flow(0.0), flow(9.81)
    np.testing.assert_allclose(free, np.tile(free[0], (3, 1)), atol=1e-9)
    np.testing.assert_allclose(heavy[:, 0], heavy[0, 0], atol=1e-9)
    np.testing.assert_allclose(np.diff(heavy[:, 1]), -9.81 * (HULL + sum(LOADS)) / 2, rtol=1e-8)
    # Of robots `symmetry` finds what gravity leaves.
    floater = cc.robots.planar_floater()
    assert cc.symmetry(floater)[floater.base.joint_label].kept.dim == 3
    fallen = replace(floater, gravity=(0.0, -9.81, 0.0))
    assert cc.symmetry(fallen)[floater.base.joint_label].kept.dim == 1


def test_left_trivialized_momenta() -> None:
    """Lemma 3.3.4: the Legendre transformation is that at the identity, carried by the group."""
    system, mass, _ = floating()
    rng = np.random.default_rng(6)
    for _ in range(3):
        q = rng.normal(size=5)
        at_identity = system.mass_matrix(np.array([0.0, 0.0, 0.0, *q[3:]]))
        carried = _to_body(q).T @ at_identity @ _to_body(q)
        np.testing.assert_allclose(np.array(mass(q)), carried, atol=1e-12)


def _on_level(mu: Array) -> tuple[ca.Function, int]:
    """States (q, p) with the momentum mu, of (x, y, angle, r, reduced momentum)."""
    model = cc.reduce(floating()[0], mu)
    y = ca.SX.sym("y", 7)
    q, reduced = y[:5], y[5:]
    body = model.body_momentum(q)
    c, s = ca.cos(q[2]), ca.sin(q[2])
    linear = ca.vertcat(c * body[0] - s * body[1], s * body[0] + c * body[1])
    p = ca.vertcat(linear, body[2], reduced + model.connection(q).T @ body)
    return ca.Function("level", [y], [ca.vertcat(q, p)]), 7


@pytest.mark.parametrize(
    ("mu", "isotropy"), [((0.4, -0.3, 0.2), 1), ((0.0, 0.0, 0.7), 3), ((0.0, 0.0, 0.0), 3)]
)
def test_the_reduced_space_is_symplectic(mu: tuple[float, ...], isotropy: int) -> None:
    """Theorem 3.2.4: the canonical form on a level of the momentum vanishes along G_mu alone.

    It is that of the shape less <Pi, B>, and that of the coadjoint orbit, with the package's
    connection and curvature.
    """
    model = cc.reduce(floating()[0], mu)
    level, size = _on_level(np.array(mu))
    y0 = np.array([0.3, -0.2, 0.7, 0.5, -0.4, 0.3, 0.6])
    y = ca.SX.sym("y", size)
    tangent = np.array(ca.Function("tangent", [y], [ca.jacobian(level(y), y)])(y0))
    np.testing.assert_allclose(_momentum(np.array(level(y0))[:, 0]), mu, atol=1e-12)
    pulled = tangent.T @ _canonical(5) @ tangent
    ranks = np.linalg.svd(pulled, compute_uv=False)
    assert (ranks > 1e-9).sum() == size - isotropy
    q = y0[:5]
    body, form = np.asarray(model.body_momentum(q)), np.asarray(model.connection(q))
    to_body = _to_body(q)

    def bracket(a: Array, b: Array) -> Array:
        return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], 0.0])

    expected = np.zeros((size, size))
    for i, a in enumerate(np.eye(size)):
        for k, b in enumerate(np.eye(size)):
            expected[i, k] = a[3:5] @ b[5:] - b[3:5] @ a[5:]
            expected[i, k] -= body @ np.asarray(model.curvature(q, a[3:5], b[3:5]))
            turned = [(to_body @ x[:5])[:3] + form @ x[3:5] for x in (a, b)]
            expected[i, k] -= body @ bracket(*turned)
    np.testing.assert_allclose(pulled, expected, atol=1e-10)


def test_the_shift_embeds_the_reduced_space() -> None:
    """Theorem 3.2.7: less alpha = <mu, A>, momenta vanish along the group; forms by d alpha."""
    mu = np.array([0.4, -0.3, 0.2])
    model, z = cc.reduce(floating()[0], mu), ca.SX.sym("z", 10)
    level, size = _on_level(mu)
    y0 = np.array([0.3, -0.2, 0.7, 0.5, -0.4, 0.3, 0.6])
    q = z[:5]
    body = model.body_momentum(q)
    c, s = ca.cos(q[2]), ca.sin(q[2])
    on_rates = ca.vertcat(c * body[0] - s * body[1], s * body[0] + c * body[1], body[2])
    alpha = ca.vertcat(on_rates, model.connection(q).T @ body, ca.SX(5, 1))
    at = np.array(level(y0))[:, 0]
    shifted = at[5:] - np.array(ca.Function("alpha", [z], [alpha])(at))[:5, 0]
    fields = np.array(ca.Function("fields", [z], [_generators(z, 5)])(at))[:5]
    np.testing.assert_allclose(fields.T @ shifted, 0.0, atol=1e-13)
    np.testing.assert_allclose(shifted[3:], y0[5:], atol=1e-13)
    y = ca.SX.sym("y", size)
    tangent = np.array(ca.Function("tangent", [y], [ca.jacobian(level(y), y)])(y0))
    bent = np.array(ca.Function("bent", [z], [_exterior(alpha, z)])(at))
    canonical = np.zeros((size, size))  # of the base, on momenta that vanish along the group
    canonical[3:5, 5:], canonical[5:, 3:5] = np.eye(2), -np.eye(2)
    pulled = tangent.T @ _canonical(5) @ tangent
    np.testing.assert_allclose(pulled, canonical - tangent.T @ bent @ tangent, atol=1e-10)


# --- Chaplygin's systems -------------------------------------------------------------------------

MASS, AHEAD, TURN, WHEEL, RADIUS, HALF = 2.0, 0.25, 0.3, 0.02, 0.1, 0.25
ROLL = np.array([[-RADIUS / 2, -RADIUS / 2], [0, 0], [RADIUS / (2 * HALF), -RADIUS / (2 * HALF)]])
"""Connection of a cart with two driven wheels: its body moves with -A rates of the wheels."""


@cache
def cart() -> tuple[cc.LagrangianSystem, ca.Function]:
    """The cart with its centre of mass ahead of the axle; mass matrix in (x, y, angle, wheels)."""
    body, wheels = Factor("body", "SE2"), Factor("wheels", "R2", unit="rad")

    def energy(vx: ca.SX, vy: ca.SX, turn: ca.SX, speeds: ca.SX) -> ca.SX:
        moving = MASS * (vx**2 + (vy + AHEAD * turn) ** 2) + TURN * turn**2
        return (moving + WHEEL * ca.sumsqr(speeds)) / 2

    rows = body.v + ca.DM(ROLL) @ wheels.v
    system = cc.LagrangianSystem(
        energy(*ca.vertsplit(body.v), wheels.v),
        0.0,
        [body, wheels],
        constraints=rows,
        inputs=["wheels[0]", "wheels[1]"],
    )
    q, qdot = ca.SX.sym("q", 5), ca.SX.sym("qdot", 5)
    c, s = ca.cos(q[2]), ca.sin(q[2])
    vx, vy = c * qdot[0] + s * qdot[1], -s * qdot[0] + c * qdot[1]
    mass = ca.hessian(energy(vx, vy, qdot[2], qdot[3:]), qdot)[0]
    return system, ca.Function("mass", [q], [mass])


def _forms() -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """z = (q, p); the canonical form with d<M, A>; <M, B>; and the whole form."""
    z = ca.SX.sym("z", 10)
    c, s = ca.cos(z[2]), ca.sin(z[2])
    back = ca.vertcat(ca.horzcat(c, s, 0), ca.horzcat(-s, c, 0), ca.horzcat(0, 0, 1))
    momentum = back @ z[5:8]  # along the axes of the body
    sigma = ca.vertcat(back.T @ momentum, ca.DM(ROLL).T @ momentum, ca.SX(5, 1))
    shifted = ca.DM(_canonical(5)) + _exterior(sigma, z)
    a, b = ROLL.T
    turned = np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], 0.0])
    gyroscopic = ca.SX(10, 10)
    gyroscopic[3, 4] = -ca.dot(momentum, turned)  # B = dA - [A, A], of a constant A
    gyroscopic[4, 3] = -gyroscopic[3, 4]
    return z, shifted, gyroscopic, shifted - gyroscopic


def _rolling(y: ca.SX) -> ca.SX:
    """State (q, p) that rolls, of (x, y, angle, wheels, speeds of the wheels)."""
    c, s = ca.cos(y[2]), ca.sin(y[2])
    v = -ca.DM(ROLL) @ y[5:]
    rates = ca.vertcat(c * v[0] - s * v[1], s * v[0] + c * v[1], v[2], y[5:])
    return ca.vertcat(y[:5], cart()[1](y[:5]) @ rates)


Y = np.array([0.3, -0.2, 0.7, 0.5, -0.4, 1.3, -0.6])
"""A state of the cart that rolls."""


def test_horizontal_lifts_of_momenta_turn_with_the_group() -> None:
    """Lemma 4.2.3: FL o hl o FL^-1 at a moved base point is moved by the lifted action."""
    system, mass = cart()
    model, g, z = cc.reduce(system), np.array([0.4, -0.7, 1.1]), ca.SX.sym("z", 10)
    act = ca.Function("act", [z], [_acted(g, z, 5)])
    reduced = np.array([0.3, -0.8])

    def lifted(q: Array) -> Array:
        s = np.linalg.solve(model.mass_matrix(q), reduced)
        rates = np.linalg.solve(_to_body(q), model.velocity(q, s))
        return np.concatenate([q, np.array(mass(q)) @ rates])

    moved = np.array(act(lifted(Y[:5])))[:, 0]
    np.testing.assert_allclose(lifted(moved[:5]), moved, atol=1e-12)


def test_the_form_of_a_rolling_cart_is_basic() -> None:
    """Lemma 4.2.5, Lemma 4.2.6: invariant under SE(2), and zero along its motions."""
    z, _, _, whole = _forms()
    g, y = np.array([0.4, -0.7, 1.1]), ca.SX.sym("y", 7)
    form = ca.Function("form", [z], [whole])
    at = np.array(ca.Function("rolling", [y], [_rolling(y)])(Y))[:, 0]
    for state in (at, Z):  # states that roll, and others
        slope = np.array(ca.Function("slope", [z], [ca.jacobian(_acted(g, z, 5), z)])(state))
        moved = np.array(ca.Function("act", [z], [_acted(g, z, 5)])(state))[:, 0]
        np.testing.assert_allclose(slope.T @ np.array(form(moved)) @ slope, form(state), atol=1e-12)
        fields = np.array(ca.Function("fields", [z], [_generators(z, 5)])(state))
        np.testing.assert_allclose(np.array(form(state)) @ fields, 0.0, atol=1e-13)
    tangent = np.array(ca.Function("tangent", [y], [ca.jacobian(_rolling(y), y)])(Y))
    pulled = tangent.T @ np.array(form(at)) @ tangent
    motions = np.zeros((7, 3))
    motions[:3] = np.array(ca.Function("fields", [z], [_generators(z, 5)])(at))[:3]
    np.testing.assert_allclose(pulled @ motions, 0.0, atol=1e-13)
    assert np.linalg.matrix_rank(pulled, tol=1e-9) == 4


def test_the_form_is_that_of_the_reduced_model() -> None:
    """Lemma 4.2.7, Lemma 4.2.8: <M, B> is `two_form`; the rest is canonical on the shape."""
    model, y = cc.reduce(cart()[0]), ca.SX.sym("y", 7)
    z, shifted, gyroscopic, _ = _forms()
    at = np.array(ca.Function("rolling", [y], [_rolling(y)])(Y))[:, 0]
    tangent = np.array(ca.Function("tangent", [y], [ca.jacobian(_rolling(y), y)])(Y))
    metric = np.asarray(model.mass_matrix(Y[:5]))
    found = np.asarray(model.two_form(Y[:5], metric @ Y[5:]))
    gyro = tangent.T @ np.array(ca.Function("gyroscopic", [z], [gyroscopic])(at)) @ tangent
    np.testing.assert_allclose(gyro[3:5, 3:5], found, atol=1e-12)
    gyro[3:5, 3:5] = 0.0
    np.testing.assert_allclose(gyro, 0.0, atol=1e-13)
    assert abs(found).max() > 1e-3
    down = np.zeros((4, 7))
    down[:2, 3:5], down[2:, 5:] = np.eye(2), metric  # the metric of the cart is constant
    rest = tangent.T @ np.array(ca.Function("shifted", [z], [shifted])(at)) @ tangent
    np.testing.assert_allclose(rest, down.T @ _canonical(2) @ down, atol=1e-12)


def test_reduced_equations_of_a_rolling_system() -> None:
    """Theorem 4.3.1: canonical form less the two-form, against Lagrange's equations of the cart."""
    model = cc.reduce(cart()[0])
    speeds, u = Y[5:], np.array([0.3, -0.1])
    metric = np.asarray(model.mass_matrix(Y[:5]))
    _, pdot = model.vector_field(Y[:5], metric @ speeds, u)
    v = -ROLL @ speeds
    # Newton along the axle's direction and about its middle; wheels transmit their torques.
    forward = MASS * AHEAD * v[2] ** 2  # = MASS d(vx)/dt less the push of the wheels
    about = -MASS * AHEAD * v[0] * v[2]
    expected = u + (-ROLL.T) @ np.array([forward, 0.0, about])
    np.testing.assert_allclose(pdot, expected, atol=1e-12)
    assert abs(expected - u).max() > 1e-3


# --- controls ------------------------------------------------------------------------------------


def test_controls_are_closed_and_invariant_forms() -> None:
    """Corollary 5.1.2, Proposition 5.1.3: controls of CON3 are differentials of the shape alone.

    A thruster turns with the base: its form is not closed, and the audit says so.
    """
    geared = cc.Motor("both", {"arm": 2.0, "tip": -1.0})
    robot = cc.Mechanism(
        "floater",
        [
            cc.Body("base", cc.joints.Planar(), inertia=cc.Inertia(3.0, moments=(1, 1, 1))),
            *(
                cc.Body(name, cc.joints.Revolute((0, 0, 1)), on, inertia=cc.Inertia(1.0, (1, 0, 0)))
                for name, on in (("arm", "base"), ("tip", "arm"))
            ),
        ],
        actuated=[],
        motors=[geared, cc.Motor("one", "tip")],
    )
    jet = cc.Motor("jet", body="tip", wrench=(0, 1, 0, 0, 0, 0))
    other = replace(robot, motors=[geared, jet])
    for system, closed in ((robot, True), (other, False)):
        z = ca.SX.sym("q", 5)
        c, s = ca.cos(z[2]), ca.sin(z[2])
        to_body = ca.SX.eye(5)
        to_body[0, 0], to_body[0, 1], to_body[1, 0], to_body[1, 1] = c, s, -s, c
        forms = to_body.T @ system.actuation(z)  # on rates of coordinates, as columns
        slopes = [_exterior(forms[:, k], z) for k in range(2)]
        found = ca.Function("forms", [z], [forms, *slopes])
        q, g = np.array([0.3, -0.2, 0.7, 0.5, -0.4]), np.array([0.4, -0.7, 1.1])
        here, *bent = (np.array(x) for x in found(q))
        largest = max(abs(x).max() for x in bent)
        assert bool(largest < 1e-14) is closed
        if closed:
            fields = np.array([[1, 0, -q[1]], [0, 1, q[0]], [0, 0, 1.0]])
            np.testing.assert_allclose(fields.T @ here[:3], 0.0, atol=1e-14)
            moved = np.concatenate([q[:3] + g, q[3:]])
            np.testing.assert_allclose(np.array(found(moved)[0]), here, atol=1e-14)
            audit = cc.reduce(system).audit()
            assert audit["CON2"].status is audit["CON3"].status is AuditStatus.HOLDS
