"""Admissible connections of rigid bodies and constrained systems: source 004.

Twists are [linear; angular], as in the source and in the package.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
from scipy.linalg import expm

from tests.groups.oracles import bracket, conjugation, cross_matrix, twist_matrix
from tests.oracles import _affinity as af
from tests.oracles import assert_close, difference_quotient, structure
from tests.oracles._hamel import lagrange, slopes
from tests.sources._misprints import check_misprints

Array = np.ndarray
I3 = np.eye(3)
EPS = structure(cross_matrix, 3)
MOMENTS = np.array([2.0, 3.0, 4.0])
NONE = np.zeros((3, 3, 3))
OMEGA = np.array([0.7, -1.1, 0.4])


def _draw(*shape: int) -> Array:
    return np.random.default_rng(8).normal(size=shape)


def _euler_body(omega: Array, moments: Array = MOMENTS, torque: Array | float = 0.0) -> Array:
    """(62) to (64)."""
    return (torque - np.cross(omega, moments * omega)) / moments


def test_body_frame() -> None:
    """004: (1)-(13), (18), (19), (21)-(26), (54)-(66), (84)-(89), (91)."""
    g = np.diag(MOMENTS)
    natural, christoffel = EPS, af.christoffel(g, NONE, EPS)
    assert_close(af.torsion(natural, EPS), EPS, 1e-15)
    assert_close(af.curvature(natural, EPS), np.zeros((3,) * 4), 1e-15)
    assert_close(af.torsion(christoffel, EPS), NONE, 1e-15)
    assert_close(af.nonmetricity(g, NONE, christoffel), NONE, 1e-15)
    bent = af.nonmetricity(g, NONE, natural)
    a, b, c = MOMENTS
    found = [bent[1, 2, 0], bent[0, 2, 1], bent[0, 1, 2]]
    assert_close(found, [b - c, c - a, a - b], 1e-15)
    # (65): all quadratic terms come from the non-metricity.
    quadratic = np.einsum("ijk,j,k->i", bent, OMEGA, OMEGA)
    assert_close(quadratic, np.cross(OMEGA, MOMENTS * OMEGA), 1e-14)
    # (86), and vectors a and b
    printed = 0.5 * np.array([(a - b + c) / a, (-a - b + c) / a, (a + b - c) / b])
    found = [christoffel[0, 1, 2], christoffel[0, 2, 1], christoffel[1, 2, 0]]
    assert_close(found, printed, 1e-15)
    numbers = [3 / 4, -1 / 4, 1 / 6, -5 / 6, 5 / 8, -3 / 8]
    places = [(0, 1, 2), (0, 2, 1), (1, 2, 0), (1, 0, 2), (2, 0, 1), (2, 1, 0)]
    assert_close([christoffel[p] for p in places], numbers, 1e-15)
    riemann = af.curvature(christoffel, EPS)
    places = [(0, 1, 0, 1), (0, 2, 0, 2), (1, 0, 1, 0), (1, 2, 1, 2), (2, 0, 2, 0), (2, 1, 2, 1)]
    numbers = [-7 / 32, 13 / 24, -7 / 48, 17 / 24, 13 / 48, 17 / 32]
    assert_close([riemann[p] for p in places], numbers, 1e-15)
    assert np.count_nonzero(np.abs(riemann) > 1e-14) == 12
    second = af.curvature(af.christoffel(np.diag([1.0, 2, 3]), NONE, EPS), EPS)
    numbers = [-2 / 3, 1, -1 / 3, 1, 1 / 3, 2 / 3]
    assert_close([second[p] for p in places], numbers, 1e-15)
    # Symmetries
    assert_close(riemann, -riemann.transpose(0, 1, 3, 2), 1e-15)
    lowered = np.einsum("pi,ijkl->pjkl", g, riemann)
    assert_close(lowered, -lowered.transpose(1, 0, 2, 3), 1e-14)
    cyclic = riemann + riemann.transpose(0, 2, 3, 1) + riemann.transpose(0, 3, 1, 2)
    assert_close(cyclic, np.zeros((3,) * 4), 1e-14)
    # Same motion from both; c / 2 and 0 are not admissible for unequal moments.
    expected = _euler_body(OMEGA, torque=np.array([0.3, 0.1, -0.2]))
    for found in (natural, christoffel):
        motion = af.acceleration(g, NONE, found, OMEGA, np.array([0.3, 0.1, -0.2]))
        assert_close(motion, expected, 1e-14)
        assert_close(af.residual(found, g, NONE, EPS, OMEGA), np.zeros(3), 1e-14)
    for found in (EPS / 2, NONE):
        assert np.abs(af.residual(found, g, NONE, EPS, OMEGA)).max() > 0.1
        assert_close(af.residual(found, 2 * I3, NONE, EPS, OMEGA), np.zeros(3), 1e-14)
    # (87), (88): equal moments
    equal = af.christoffel(2 * I3, NONE, EPS)
    assert_close(equal, EPS / 2, 1e-15)
    expected = -np.einsum("mkl,imj->ijkl", EPS, EPS) / 4
    assert_close(af.curvature(equal, EPS), expected, 1e-15)
    # (89) with a connection that is not metric compatible gives another motion.
    assert np.abs(np.einsum("kij,i,j->k", natural, OMEGA, OMEGA) + _euler_body(OMEGA)).max() > 0.1


# --- Euler angles 3-1-3 ---------------------------------------------------------------------

ANGLES = np.array([0.2, 1.0, -0.3])
RATES = np.array([0.5, -0.2, 0.7])


def _body_rates(q: ca.SX) -> ca.SX:
    """T (71): Omega = T qdot."""
    s, c = ca.sin, ca.cos
    rows = [
        [s(q[1]) * s(q[2]), c(q[2]), 0],
        [s(q[1]) * c(q[2]), -s(q[2]), 0],
        [c(q[1]), 0, 1],
    ]
    return ca.blockcat(rows)


@cache
def _chart(i: float, j: float, at: tuple[float, ...]) -> tuple[Array, ...]:
    """T, its slopes, G (74) and its slopes."""
    q = ca.SX.sym("q", 3)
    t = _body_rates(q)
    point = np.array(at)
    return (*slopes(t, q, point), *slopes(t.T @ ca.diag(ca.DM([i, i, j])) @ t, q, point))


def _natural(theta: float) -> Array:
    """(75)."""
    found, cot, csc = np.zeros((3, 3, 3)), 1 / np.tan(theta), 1 / np.sin(theta)
    found[0, 0, 1] = found[2, 1, 2] = cot
    found[2, 0, 1] = found[0, 1, 2] = -csc
    found[1, 0, 2] = np.sin(theta)
    return found


def _christoffel(theta: float, i: float, j: float) -> Array:
    """(90)."""
    found, s, cot = np.zeros((3, 3, 3)), np.sin(theta), 1 / np.tan(theta)
    entries = {
        (0, 0, 1): (1 - j / (2 * i)) * cot,
        (0, 1, 2): -j / (2 * i * s),
        (1, 0, 2): j * s / (2 * i),
        (2, 0, 1): (j - 2 * i + (i - j) * s**2) / (2 * i * s),
        (2, 1, 2): j / (2 * i) * cot,
    }
    for (k, a, b), value in entries.items():
        found[k, a, b] = found[k, b, a] = value
    found[1, 0, 0] = -(i - j) * np.sin(2 * theta) / (2 * i)
    return found


def _slopes(affinities, theta: float) -> Array:  # type: ignore[no-untyped-def]
    """L^k_ij,m: only the nutation counts."""
    found = np.zeros((3, 3, 3, 3))
    found[..., 1] = difference_quotient(lambda h: affinities(theta + h))
    return found


def test_euler_angles() -> None:
    """004: (67) to (83), (90), (92), (93); vector c."""
    i, j, theta = 2.0, 1.0, float(ANGLES[1])
    t, dt, g, dg = _chart(i, j, tuple(ANGLES))
    back = np.linalg.inv(t)
    # (55) from the frame E = T^-1 in the chart, (72) in the chart itself.
    moved = np.einsum("krs,rb,sc->kbc", dt, back, back)
    assert_close(moved - moved.transpose(0, 2, 1), EPS, 1e-13)
    s = np.sin(theta)
    printed = [[j + (i - j) * s**2, 0, j * np.cos(theta)], [0, i, 0], [j * np.cos(theta), 0, j]]
    assert_close(g, printed, 1e-14)  # (74)
    # (69) maps body-frame connections to the chart: A = T along the chart's basis.
    da = dt  # A^k_j',i' = d T^k_j' / d q_i'
    assert_close(af.change(EPS, t, da), _natural(theta), 1e-13)
    body = af.christoffel(np.diag([i, i, j]), NONE, EPS)
    assert_close(af.change(body, t, da), _christoffel(theta, i, j), 1e-13)
    assert_close(af.christoffel(g, dg, NONE), _christoffel(theta, i, j), 1e-13)
    # (76) to (80)
    bent = af.nonmetricity(g, dg, _natural(theta))
    expected = np.zeros((3, 3, 3))
    first, second = (j - i) * np.sin(2 * theta) / 2, (j - i) * s
    expected[0, 1, 0] = expected[1, 0, 0] = first
    expected[0, 0, 1] = -2 * first
    expected[1, 2, 0] = expected[2, 1, 0] = second
    expected[0, 2, 1] = expected[2, 0, 1] = -second
    assert_close(bent, expected, 1e-13)
    phd, thd, psd = RATES
    common = (i - j) * s * (phd * np.cos(theta) + psd)
    quadratic = np.einsum("ijk,j,k->i", bent, RATES, RATES)
    assert_close(quadratic, [common * thd, -common * phd, 0], 1e-13)
    # (81) to (83) against Lagrange, from both connections
    q, v, a = (ca.SX.sym(name, 3) for name in "qva")
    turn = _body_rates(q)
    moments = ca.diag(ca.DM([i, i, j]))
    left = lagrange(q, lambda _, x: x.T @ turn.T @ moments @ turn @ x / 2, v, a)
    value = ca.Function("f", [q, v, a], [left])
    for found in (_natural(theta), _christoffel(theta, i, j)):
        motion = af.acceleration(g, dg, found, RATES, np.array([0.3, 0.1, -0.2]))
        assert_close(np.array(value(ANGLES, RATES, motion))[:, 0], [0.3, 0.1, -0.2], 1e-13)
        assert_close(af.residual(found, g, dg, NONE, RATES), np.zeros(3), 1e-13)
        # (93), for any motion
        sums = np.einsum("rga,rb,b,g->a", found, g, RATES, RATES)
        assert_close(sums, np.einsum("bga,b,g->a", dg, RATES, RATES) / 2, 1e-13)
    flat = af.curvature(_natural(theta), NONE, _slopes(_natural, theta))
    assert_close(flat, np.zeros((3,) * 4), 1e-8)
    third = np.pi / 3
    riemann = af.curvature(
        _christoffel(third, i, j), NONE, _slopes(lambda x: _christoffel(x, i, j), third)
    )
    numbers = {
        (0, 0, 0, 2): 1 / 32, (0, 1, 0, 1): 5 / 8, (0, 2, 0, 2): 1 / 16, (1, 0, 0, 1): -31 / 64,
        (1, 0, 1, 2): 1 / 32, (1, 2, 0, 1): -1 / 32, (1, 2, 1, 2): 1 / 16, (2, 0, 0, 2): -7 / 64,
        (2, 1, 0, 1): -1 / 4, (2, 1, 1, 2): -1 / 8, (2, 2, 0, 2): -1 / 32,
    }  # fmt: skip
    for place, number in numbers.items():
        assert_close(riemann[place], number, 1e-8)
    assert np.count_nonzero(np.abs(riemann) > 1e-6) == 22


# --- SE(3) ----------------------------------------------------------------------------------

DIRECT = np.zeros((6, 6, 6))
DIRECT[3:, 3:, 3:] = EPS
SEMIDIRECT = structure(bracket, 6)
MASS = 1.7
G6 = np.diag([MASS, MASS, MASS, *MOMENTS])
TURN = expm(cross_matrix(np.array([0.3, -0.7, 1.1])))
TWIST = np.array([0.9, -0.4, 0.6, *OMEGA])


def test_two_groups_of_rigid_motions() -> None:
    """004: (94) to (121): direct and semidirect product, one motion."""
    none = np.zeros((6, 6, 6))
    for c in (DIRECT, SEMIDIRECT):
        assert_close(af.torsion(c, c), c, 1e-15)
        assert_close(af.curvature(c, c), np.zeros((6,) * 4), 1e-15)
        for found in (c, af.christoffel(G6, none, c)):
            assert_close(af.residual(found, G6, none, c, TWIST), np.zeros(6), 1e-14)
    wrench = np.array([0.3, 0.2, -0.5, 0.1, 0.4, -0.2])
    direct = af.acceleration(G6, none, DIRECT, TWIST, wrench)
    assert_close(direct[:3], wrench[:3] / MASS, 1e-15)  # (101)
    assert_close(direct[3:], _euler_body(OMEGA, torque=wrench[3:]), 1e-14)  # (102)
    body = np.concatenate([TURN.T @ TWIST[:3], OMEGA])
    moved = np.concatenate([TURN.T @ wrench[:3], wrench[3:]])
    semi = af.acceleration(G6, none, SEMIDIRECT, body, moved)
    assert_close(semi[:3], moved[:3] / MASS - np.cross(OMEGA, body[:3]), 1e-14)  # (113)
    assert_close(semi[3:], direct[3:], 1e-14)  # (114)
    # Any constant metric: Kirchhoff's equations
    root = _draw(6, 6)
    g = root @ root.T + 6 * np.eye(6)
    kirchhoff = np.linalg.solve(g, wrench + bracket(body).T @ g @ body)
    for found in (SEMIDIRECT, af.christoffel(g, none, SEMIDIRECT)):
        assert_close(af.acceleration(g, none, found, body, wrench), kirchhoff, 1e-13)
    # (115) to (118): the semidirect connection in the basis of the direct product
    expected = np.zeros((6, 6, 6))
    for j in range(3):
        expected[:3, :3, 3 + j] = -cross_matrix(TURN[:, j])
        expected[3:, 3:, 3 + j] = -cross_matrix(I3[j])
    assert_close(_brought_back(), expected, 1e-13)


def _brought_back(swapped: bool = False) -> Array:
    """(115): L^k_ij of the semidirect connection in the basis of the direct product."""
    a, b = np.eye(6), np.eye(6)
    a[:3, :3], b[:3, :3] = TURN, TURN.T
    if swapped:
        a, b = b, a
    turned = np.einsum("kl,mi,nj,lmn->kij", a, b, b, SEMIDIRECT)
    db = np.zeros((6, 6, 6))  # B^l_j,m along the rotations of the body
    for m in range(3):
        rate = TURN @ cross_matrix(I3[m]) if swapped else -cross_matrix(I3[m]) @ TURN.T
        db[:3, :3, 3 + m] = rate
    return turned + np.einsum("kl,mi,ljm->kij", a, b, db)


def test_parallel_transport() -> None:
    """Screws, for any twist. 004: (41), (122)-(145)."""
    n, t = np.array([0.3, -0.5, 0.8, 0.4, 0.7, -0.2]), 1.3
    operator = np.einsum("kij,i->kj", SEMIDIRECT, n)
    pose = expm(t * twist_matrix(n))
    assert_close(operator, bracket(n), 1e-15)  # (132)
    assert_close(expm(t * operator), conjugation(pose), 1e-13)  # (140)
    assert_close(pose[:3, 3], [0.61698569, -0.91621619, 0.56221470], 1e-8)
    assert_close(expm(t * operator) @ n, n, 1e-14)  # (141)
    turn, b = pose[:3, :3], conjugation(pose)[:3, 3:] @ pose[:3, :3].T
    assert_close(b, cross_matrix(pose[:3, 3]), 1e-14)  # (137)
    u = _draw(6)
    moved = np.block([[turn.T, -turn.T @ b], [np.zeros((3, 3)), turn.T]])
    assert_close(moved @ u, expm(-t * operator) @ u, 1e-13)  # (138)
    assert_close(turn @ n[3:], n[3:], 1e-14)  # (143)
    assert_close(turn @ cross_matrix(n[3:]) @ turn.T, cross_matrix(n[3:]), 1e-14)  # (145)
    through = np.concatenate([0.6 * n[3:], n[3:]])  # (142): axis through the body's origin
    assert_close(
        conjugation(expm(t * twist_matrix(through)))[:3, 3:] @ n[3:], np.zeros(3), 1e-14
    )  # (144)
    # Canonical transport keeps R u; Christoffel's keeps g(u, w).
    g = np.diag(MOMENTS)
    w, x = _draw(2, 3)
    spread = np.einsum("kij,i->kj", af.christoffel(g, NONE, EPS), OMEGA)
    step = expm(-t * spread)
    assert_close((step @ w) @ g @ (step @ x), w @ g @ x, 1e-13)
    step = expm(-t * np.einsum("kij,i->kj", EPS, OMEGA))
    assert_close(expm(t * cross_matrix(OMEGA)) @ step @ w, w, 1e-13)  # (127), (128)
    assert abs((step @ w) @ g @ (step @ x) - w @ g @ x) > 0.1


# --- Constrained systems --------------------------------------------------------------------


def test_rigid_body_from_particles() -> None:
    """004: (14) to (20), (27) to (40), (47) to (53): particles of a body."""
    places, masses = _draw(5, 3), np.linspace(0.5, 2.0, 5)
    n = np.vstack([-TURN @ cross_matrix(p) for p in places])
    dn = np.stack(
        [np.vstack([-TURN @ cross_matrix(e) @ cross_matrix(p) for p in places]) for e in I3], axis=2
    )  # [i, alpha, gamma]: along R exp(s e~)
    g = np.diag(np.repeat(masses, 3))
    inertia, low = af.pull_back(g, np.zeros((15,) * 3), n, dn)
    expected = -sum(
        m * cross_matrix(p) @ cross_matrix(p) for m, p in zip(masses, places, strict=True)
    )
    assert_close(inertia, expected, 1e-13)
    gamma = af.christoffel(inertia, NONE, EPS)
    assert_close(np.einsum("rb,gab->rga", np.linalg.inv(inertia), low), gamma, 1e-12)  # (49)
    # (36): N^i_a,g - N^i_g,a = c^d_ga N^i_d
    swap = dn - dn.transpose(0, 2, 1)
    assert_close(swap, np.einsum("dga,id->iag", EPS, n), 1e-13)
    # (39), (40), (22)
    motion = af.acceleration(inertia, NONE, gamma, OMEGA, np.zeros(3))
    euler = np.linalg.solve(inertia, -np.cross(OMEGA, inertia @ OMEGA))
    assert_close(motion, euler, 1e-13)


def test_random_metric_and_frame() -> None:
    """Any metric and frame. 004: (1)-(3), (12), (24), (42)-(46), (50)-(53)."""
    q = ca.SX.sym("q", 3)

    def waves(seed: int) -> ca.SX:
        rng = np.random.default_rng(seed)
        return ca.reshape(
            ca.sin(ca.DM(rng.uniform(-1, 1, (9, 3))) @ q + ca.DM(rng.uniform(-3, 3, 9))), 3, 3
        )

    frame, root = ca.SX.eye(3) + 0.3 * waves(1), 2 * ca.SX.eye(3) + 0.3 * waves(2)
    at = np.array([0.3, -0.4, 0.8])
    e, de = slopes(frame, q, at)
    g, dg = slopes(root.T @ root, q, at)
    moved = np.einsum("abk,ki->abi", de, e)  # slope of e_b along e_i
    brackets = moved.transpose(0, 2, 1) - moved
    c = np.einsum("ka,aij->kij", np.linalg.inv(e), brackets)
    dg = np.einsum("ija,ak->ijk", dg, e)
    gamma = af.christoffel(g, dg, c)
    assert_close(af.torsion(gamma, c), NONE, 1e-13)
    assert_close(af.nonmetricity(g, dg, gamma), NONE, 1e-13)
    first = np.einsum("kl,ijl->kij", np.linalg.inv(g), af.classical(dg))
    assert_close(first, first.transpose(0, 2, 1), 1e-14)
    assert_close(af.nonmetricity(g, dg, first), NONE, 1e-13)
    v = OMEGA
    for found in (gamma, first + c):
        assert_close(af.residual(found, g, dg, c, v), np.zeros(3), 1e-13)
    assert np.abs(af.residual(first, g, dg, c, v)).max() > 1e-2


def test_chaplygin_sleigh() -> None:
    """004: (14) to (22) for a nonholonomic constraint."""
    m, j, a, heading = 2.0, 0.6, 0.4, 0.7
    cos, sin = np.cos(heading), np.sin(heading)
    n = np.array([[cos, -a * sin], [sin, a * cos], [0, 1]])
    assert_close([-sin, cos, -a] @ n, np.zeros(2), 1e-15)
    dn = np.zeros((3, 2, 2))
    dn[:, :, 1] = [[-sin, -a * cos], [cos, -a * sin], [0, 0]]
    g, low = af.pull_back(np.diag([m, m, j]), NONE, n, dn)
    assert_close(g, np.diag([m, j + m * a**2]), 1e-15)
    expected = np.zeros((2, 2, 2))
    expected[1, 0, 1], expected[1, 1, 0] = m * a, -m * a
    assert_close(low, expected, 1e-15)
    u, w = 1.3, -0.8
    raised = np.einsum("rb,gab->rga", np.linalg.inv(g), low)
    motion = af.acceleration(g, np.zeros((2, 2, 2)), raised, np.array([u, w]), np.zeros(2))
    assert_close(motion, [a * w**2, -m * a * u * w / (j + m * a**2)], 1e-14)


def test_linearized_motion_on_a_sphere() -> None:
    """000: (7.1), (7.2): R_cbda qdot^c qdot^d x^b = |qdot|^2 x - qdot <qdot, x>."""
    theta = 0.8

    def affinities(x: float) -> Array:
        found = np.zeros((2, 2, 2))
        found[0, 1, 1] = -np.sin(x) * np.cos(x)
        found[1, 0, 1] = found[1, 1, 0] = 1 / np.tan(x)
        return found

    g = np.diag([1.0, np.sin(theta) ** 2])
    slope = np.zeros((2, 2, 2, 2))
    slope[..., 0] = difference_quotient(lambda h: affinities(theta + h))
    riemann = af.curvature(affinities(theta), np.zeros((2, 2, 2)), slope)
    lowered = np.einsum("ai,ibcd->abcd", g, riemann)
    v, x = np.array([0.7, -1.2]), np.array([0.4, 0.9])
    found = np.einsum("cbda,c,d,b->a", lowered, v, v, x)
    assert_close(found, (v @ g @ v) * g @ x - g @ v * (v @ g @ x), 1e-8)


# --- Misprints ------------------------------------------------------------------------------


def misprint_004_1() -> tuple[Array, Array, Array]:
    """(13): third term L^m_ij -> L^m_lj; the canonical connection is flat."""
    right = af.curvature(EPS, EPS)
    third = np.einsum("ikm,mlj->ijkl", EPS, EPS)
    wrong = np.einsum("ikm,mij->ijk", EPS, EPS)[..., None]
    return np.zeros((3,) * 4), right - third + wrong, right


def misprint_004_2() -> tuple[Array, Array, Array]:
    """(17): N^i_a,g g_ij N^j_b -> N^i_a g_ij N^j_b, kinetic energy of the sleigh."""
    n = np.array([[0.8, -0.24], [0.6, 0.32], [0, 1]])
    dn = np.array([[-0.6, -0.32], [0.8, -0.24], [0, 0]])
    g, v = np.diag([2.0, 2, 0.6]), np.array([1.3, -0.8])
    truth = (n @ v) @ g @ (n @ v) / 2
    return truth, v @ dn.T @ g @ n @ v / 2, v @ n.T @ g @ n @ v / 2


def misprint_004_7() -> tuple[Array, Array, Array]:
    """(60), (61): contracted over the row index, the gyroscopic term changes its sign."""
    right = cross_matrix(OMEGA) @ (MOMENTS * OMEGA)
    # Truth: d/dt of the momentum R I Omega, turned back.
    truth = difference_quotient(lambda h: expm(h * cross_matrix(OMEGA)) @ (MOMENTS * OMEGA))
    return truth, cross_matrix(OMEGA).T @ (MOMENTS * OMEGA), right


def misprint_004_9() -> tuple[Array, Array, Array]:
    """(69): B^k'_k A^k_i',j' -> B^k'_k A^k_j',i'."""
    t, dt, _, _ = _chart(2.0, 1.0, tuple(ANGLES))
    truth = _natural(float(ANGLES[1]))
    return truth, af.change(EPS, t, dt, swapped=True), af.change(EPS, t, dt)


def misprint_004_10() -> tuple[Array, Array, Array]:
    """(70): an extra bracket doubles D_k g_ij; it is a tensor."""
    t, dt, g, dg = _chart(2.0, 1.0, tuple(ANGLES))
    truth = af.nonmetricity(g, dg, _natural(float(ANGLES[1])))
    body, moments = af.nonmetricity(np.diag([2.0, 2, 1]), NONE, EPS), np.diag([2.0, 2, 1])
    tensor = np.einsum("ijk,ia,jb,kc->abc", body, t, t, t)
    swap = dt - dt.transpose(0, 2, 1)  # A^j_b,c - A^j_c,b
    extra = np.einsum("ia,ij,jbc->abc", t, moments, swap)
    return truth, tensor + extra + extra.transpose(1, 0, 2), tensor


def misprint_004_12() -> tuple[float, float, float]:
    """Section 5.2: the second fraction of R^1_221 is a separate term."""
    a, b, c = MOMENTS
    truth = af.curvature(af.christoffel(np.diag(MOMENTS), NONE, EPS), EPS)[0, 1, 1, 0]
    first = (a - b + c) * (-a + b + c) / (4 * c * a)
    return truth, first, first - (a + b - c) / (2 * a)


def misprint_004_13() -> tuple[Array, Array, Array]:
    """(88): R^1_131 = 1/4 -> R^1_313 = 1/4, R^1_131 = 0."""
    riemann = af.curvature(af.christoffel(I3, NONE, EPS), EPS)
    truth = np.array([riemann[0, 2, 0, 2], riemann[0, 0, 2, 0]])
    return truth, np.array([0.0, 0.25]), np.array([0.25, 0.0])


def misprint_004_14() -> tuple[Array, Array, Array]:
    """Before (91): c - Chat / 2 -> c - Chat."""
    g = np.diag(MOMENTS)
    hat = af.christoffel(g, NONE, EPS)
    printed, right = (np.einsum("rga,r,g->a", EPS - k * hat, g @ OMEGA, OMEGA) for k in (0.5, 1.0))
    return np.zeros(3), printed, right


def misprint_004_15() -> tuple[Array, Array, Array]:
    """After (92): g_ab v^b -> g_ab vdot^b, on a free motion."""
    _, _, g, dg = _chart(2.0, 1.0, tuple(ANGLES))
    natural = _natural(float(ANGLES[1]))
    rate = af.acceleration(g, dg, natural, RATES, np.zeros(3))
    common = np.einsum("ijk,j,k->i", dg, RATES, RATES)
    truth = np.einsum("rga,r,g->a", natural, g @ RATES, RATES)
    return truth, g @ RATES + common, g @ rate + common


@cache
def _commutators() -> Array:
    """Structure constants from 4x4 matrices (103), (108), translations first."""
    basis = [twist_matrix(x) for x in np.eye(6)]
    found = np.zeros((6, 6, 6))
    for i, x in enumerate(basis):
        for j, y in enumerate(basis):
            z = x @ y - y @ x
            found[:, i, j] = [*z[:3, 3], z[2, 1], z[0, 2], z[1, 0]]
    return found


def misprint_004_17() -> tuple[Array, Array, Array]:
    """(109) lists rotations first -> translations first, as (103), (104), (110)."""
    order = [3, 4, 5, 0, 1, 2]
    found = _commutators()
    return SEMIDIRECT, found[np.ix_(order, order, order)], found


def misprint_004_18() -> tuple[Array, Array, Array]:
    """(110): chat^1_35 = 1 -> chat^1_53 = 1."""
    plus = "1_26 1_53 2_34 2_61 3_15 3_42 4_56 5_64 6_45"
    tables = []
    for text in (plus.replace("1_53", "1_35"), plus):
        table = np.zeros((6, 6, 6))
        for entry in text.split():
            k, i, j = int(entry[0]) - 1, int(entry[2]) - 1, int(entry[3]) - 1
            table[k, i, j], table[k, j, i] = 1.0, -1.0
        tables.append(table)
    return _commutators(), tables[0], tables[1]


def misprint_004_19() -> tuple[Array, Array, Array]:
    """(115): A and B are interchanged relative to (106), (107)."""
    expected = np.zeros((6, 6, 6))
    for j in range(3):
        expected[:3, :3, 3 + j], expected[3:, 3:, 3 + j] = (
            -cross_matrix(TURN[:, j]),
            -cross_matrix(I3[j]),
        )
    return expected, _brought_back(swapped=True), _brought_back()


def misprint_004_20() -> tuple[Array, Array, Array]:
    """(121): v^l v^j -> v^l v^i."""
    difference = np.einsum("kij,kl,l->ij", _brought_back() - DIRECT, G6, TWIST)
    return np.zeros(6), difference @ TWIST, TWIST @ difference


def misprint_004_21() -> tuple[Array, Array, Array]:
    """(127): u^k -> udot^k."""
    u = np.array([0.3, -0.8, 0.5])
    truth = difference_quotient(lambda h: expm(-h * cross_matrix(OMEGA)) @ u)
    return truth, u, -cross_matrix(OMEGA) @ u


def misprint_004_22() -> tuple[Array, Array, Array]:
    """(142): n = (k n2; n2) are not all vectors that exp(t n~) keeps."""
    n = np.array([0.3, -0.5, 0.8, 0.4, 0.7, -0.2])
    pitch = n[:3] @ n[3:] / (n[3:] @ n[3:])
    return expm(bracket(n)) @ n, np.concatenate([pitch * n[3:], n[3:]]), n


def misprint_004_23() -> tuple[Array, Array, Array]:
    """Below (65): its terms vanish in a pure rotation -> about a principal axis."""
    bent = af.nonmetricity(np.diag(MOMENTS), NONE, EPS)
    skewed, principal = (np.einsum("ijk,k,j->i", bent, w, w) for w in (OMEGA, I3[2]))
    # Truth: a free body keeps turning about a principal axis, that is without these terms.
    return _euler_body(I3[2]), skewed, principal


def test_misprints() -> None:
    check_misprints(globals())
