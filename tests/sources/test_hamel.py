"""Hamel coefficients and constrained equations of random systems: sources 000 and 003."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from tests.groups.oracles import bracket, twist_matrix
from tests.oracles import (
    Forms,
    Split,
    assert_close,
    boltzmann_hamel,
    coefficients,
    slopes,
    structure,
)
from tests.oracles._hamel import lagrange
from tests.sources._charts import body_rates, rotation
from tests.sources._misprints import check_misprints

Array = np.ndarray
EPS = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    EPS[_i, _j, _k], EPS[_i, _k, _j] = 1.0, -1.0


def _random(rows: int, columns: int, q: ca.SX, seed: int) -> ca.SX:
    """Matrix of sines of all coordinates."""
    rng = np.random.default_rng(seed)
    waves = ca.sin(
        ca.DM(rng.uniform(-1, 1, (rows * columns, q.numel()))) @ q
        + ca.DM(rng.uniform(-3, 3, rows * columns))
    )
    return ca.reshape(waves, rows, columns)


def _lagrangian(q: ca.SX) -> Callable[[ca.SX, ca.SX], ca.SX]:
    """A mass matrix and a potential that depend on everything."""
    n = q.numel()
    root = 2 * ca.SX.eye(n) + 0.3 * _random(n, n, q, 7)
    height = ca.sum1(_random(3, 1, q, 8))
    return lambda _, qdot: ca.sumsqr(root @ qdot) / 2 - height


@cache
def _split(s_dependent: bool = True, unit: bool = False) -> Split:
    """Two constraints on five coordinates."""
    s, r = ca.SX.sym("s", 2), ca.SX.sym("r", 3)
    q = ca.vertcat(s, r)
    seen = q if s_dependent else ca.vertcat(ca.SX.zeros(2), r)
    first = ca.SX.eye(2) + (0 if unit else 0.4 * _random(2, 2, seen, 1))
    second = _random(2, 3, seen, 2)
    force = ca.DM([0.4, -0.3, 0.8, -0.6, 0.2])
    return Split(s, r, _lagrangian(q), first, second, force)


RNG = np.random.default_rng(0)
Q, RDOT = RNG.uniform(-1, 1, 5), RNG.uniform(-1, 1, 3)
V, W = RNG.uniform(-1, 1, 5), RNG.uniform(-1, 1, 5)


def _value(expression: ca.SX, *pairs: tuple[ca.SX, Array]) -> Array:
    found = np.array(ca.Function("f", [x for x, _ in pairs], [expression])(*[v for _, v in pairs]))
    return found[:, 0] if found.shape[1] == 1 else found


@cache
def _gammas() -> tuple[Array, Array, Array, Array]:
    """A, its slopes, B and gamma[c, a, b] of the random system."""
    system = _split()
    forms, bent = slopes(system.forms, system.q, Q)
    return forms, bent, np.linalg.inv(forms), coefficients(forms, bent)


def _brackets(back: ca.SX, q: ca.SX, at: Array) -> Array:
    """[B_a, B_b] as vector fields, [r, a, b]."""
    value, bent = slopes(back, q, at)
    moved = np.einsum("rbs,sa->rab", bent, value)
    return moved - moved.transpose(0, 2, 1)


def test_coefficients_by_four_formulas() -> None:
    """003: (12), (16), (17), (18); 000: (2.6), (2.11)."""
    system = _split()
    forms, bent, back, gamma = _gammas()
    turned = np.einsum("ra,sb->rsab", back, back)
    second = np.einsum("rsab,crs->cab", turned - turned.transpose(1, 0, 2, 3), bent)
    assert_close(second, gamma, 1e-13)
    brackets = _brackets(system.back, system.q, Q)
    assert_close(np.einsum("cr,rab->cab", forms, brackets), gamma, 1e-13)
    assert_close(brackets, np.einsum("cab,rc->rab", gamma, back), 1e-13)
    assert_close(gamma, -gamma.transpose(0, 2, 1), 1e-15)
    # Coefficients of velocities that are rates vanish, and so does their work.
    assert_close(gamma[2:], np.zeros((3, 5, 5)), 1e-15)
    assert abs(np.einsum("cab,c,a,b", gamma, W, V, V)) < 1e-14
    # Contracted with momenta and velocities, without the array of three indices.
    q, p, x = system.q, ca.SX.sym("p", 5), ca.SX.sym("x", 5)
    turned = ca.jtimes(system.forms.T @ p, q, x) - ca.gradient(p.T @ system.forms @ x, q)
    found = _value(system.back.T @ turned, (q, Q), (p, W), (x, back @ V))
    assert_close(found, np.einsum("bac,b,c->a", gamma, W, V), 1e-13)


def _surface(forms: ca.SX, q: ca.SX, scale: float = 1.0) -> tuple[Array, Array, Array, Array]:
    """d(delta pi)/dt - delta u, its rate, u and delta pi on a surface q(t, e)."""
    n = q.numel()
    t, e = ca.SX.sym("t"), ca.SX.sym("e")
    rng = np.random.default_rng(n)
    place = ca.DM(Q[:n] if n < 6 else rng.uniform(-1, 1, n))
    a, b, c = (ca.DM(rng.uniform(-1, 1, n)) for _ in range(3))
    path = place + a * ca.sin(t) + b * e + c * e * t + scale * a * e * t**2
    at = ca.substitute(forms, q, path)
    u, varied = at @ ca.jacobian(path, t), at @ ca.jacobian(path, e)
    swap = ca.jacobian(varied, t) - ca.jacobian(u, e)
    f = ca.Function("f", [t, e], [swap, ca.jacobian(swap, t), u, varied])
    found = [np.array(x)[:, 0] for x in f(0.0, 0.0)]
    return found[0], found[1], found[2], found[3]


def test_transitory_relation() -> None:
    """003: (11); 000: (2.5)."""
    swap, _, u, varied = _surface(_split().forms, _split().q)
    assert_close(swap, np.einsum("acb,b,c->a", _gammas()[3], u, varied), 1e-13)


def test_boltzmann_hamel_is_lagrange() -> None:
    """000: (2.3), (2.4); 003: (10), (13), (14), (19). Thesis: (3.1.2)."""
    system = _split()
    u, udot = ca.SX.sym("u", 5), ca.SX.sym("udot", 5)
    left = boltzmann_hamel(system.q, system.lagrangian, system.forms, system.back)(u, udot)
    qdot = system.back @ u
    qddot = system.back @ udot + ca.jtimes(qdot, system.q, qdot)
    right = system.back.T @ lagrange(system.q, system.lagrangian, qdot, qddot)
    difference = _value(left - right, (system.q, Q), (u, V), (udot, W))
    assert_close(difference, np.zeros(5), 1e-12)
    # (19): with rates themselves as velocities the equation is Lagrange's.
    unit = ca.SX.eye(5)
    plain = boltzmann_hamel(system.q, system.lagrangian, unit, unit)(u, udot)
    right = lagrange(system.q, system.lagrangian, u, udot)
    assert_close(_value(plain - right, (system.q, Q), (u, V), (udot, W)), np.zeros(5), 1e-12)


def test_coefficients_of_split_velocities() -> None:
    """Proposition 3.1 of source 000.

    000: (2.1), (2.2), (3.1)-(3.5), (3.8)-(3.11); 003: (1)-(6), (26)-(33), (37).
    """
    system = _split()
    forms, _, back, gamma = _gammas()
    assert_close(_value(system.back, (system.q, Q)), back, 1e-14)
    given = np.array([_value(g, (system.q, Q)) for g in system.curvature()])
    assert_close(given, gamma[:2, 2:, 2:], 1e-13)
    normal = system.normalized()
    curvature = np.array([_value(g, (system.q, Q)) for g in normal.curvature()])
    first = forms[:2, :2]
    assert_close(np.einsum("ab,bij->aij", first, curvature), given, 1e-13)
    # Horizontal lifts: the vertical part of their bracket is the curvature.
    brackets = _brackets(system.lift, system.q, Q)
    assert_close(brackets[:2], curvature, 1e-13)
    assert_close(brackets[2:], np.zeros((3, 3, 3)), 1e-14)
    # gamma^a_bJ: (3.5) third line, and (3.9) in the connection form.
    d = slopes(system.forms, system.q, Q)[1][:2]
    b = back[:2]
    mixed = np.einsum("anm,nb,mj->abj", d[:, :2, :2], b[:, :2], b[:, 2:]) - np.einsum(
        "amn,nb,mj->abj", d[:, :2, :2], b[:, :2], b[:, 2:]
    )
    mixed += np.einsum("amj,mb->abj", d[:, :2, 2:], b[:, :2])
    mixed -= np.einsum("ajm,mb->abj", d[:, 2:, :2], b[:, :2])
    assert_close(mixed, gamma[:2, :2, 2:], 1e-13)
    plain, bent = slopes(normal.forms, normal.q, Q)
    expected = -bent[:2, 2:, :2].transpose(0, 2, 1)
    assert_close(coefficients(plain, bent)[:2, :2, 2:], expected, 1e-13)


def test_integrable_constraints_have_no_curvature() -> None:
    """000: (2.8)-(2.10), (2.12), section 2b, Remark 3.1; 003: (7), (25)."""
    system = _split()
    height = _random(2, 1, system.q, 5) + 2 * system.s
    slope = ca.jacobian(height, system.q)
    factor = ca.SX.eye(2) + 0.3 * _random(2, 2, system.q, 6)
    flat = Split(
        system.s,
        system.r,
        system.lagrangian,
        factor @ slope[:, :2],
        factor @ slope[:, 2:],
        system.force,
    )
    bent = np.array([_value(g, (system.q, Q)) for g in flat.curvature()])
    assert_close(bent, np.zeros((2, 3, 3)), 1e-13)
    # Chaplygin's form: only the slopes along r count.
    chaplygin = _split(False, True)
    bent = np.array([_value(g, (chaplygin.q, Q)) for g in chaplygin.curvature()])
    d = slopes(chaplygin.second, chaplygin.q, Q)[1][:, :, 2:]
    assert_close(bent, d - d.transpose(0, 2, 1), 1e-14)
    assert np.abs(bent).max() > 0.1


@cache
def _truth(system: Split) -> Array:
    return Forms(system).multipliers(Q, RDOT)[0]


def test_constrained_equations_agree() -> None:
    """000: (2.10), (3.6), (3.7), (3.12), (3.14), (3.15); 003: (20)-(24), (34)-(36)."""
    system = _split()
    forms, normal = Forms(system), Forms(system.normalized())
    for found in (
        forms.hamel(),
        forms.holonomic(),
        forms.constrained_lagrangian(),
        forms.voronets(),
    ):
        assert_close(forms.acceleration(found, Q, RDOT), _truth(system), 1e-12)
    for found in (normal.hamel(), normal.holonomic()):
        assert_close(normal.acceleration(found, Q, RDOT), _truth(system), 1e-12)


def misprint_000_2() -> tuple[Array, Array, Array]:
    """After (2.6): gamma_cb d pi^c delta pi^b -> gamma_cb delta pi^c d pi^b."""
    swap, _, u, varied = _surface(_split().forms, _split().q)
    gamma = _gammas()[3]
    printed = np.einsum("acb,c,b->a", gamma, u, varied)
    return swap, printed, np.einsum("acb,b,c->a", gamma, u, varied)


def misprint_000_3() -> tuple[Array, Array, Array]:
    """Section 2b: integrable iff gamma^K_IJ = 0 -> gamma^alpha_IJ = 0."""
    gamma, forms = _gammas()[3], _gammas()[0]
    vertical = np.einsum("ab,bij->aij", forms[:2, :2], _brackets(_split().lift, _split().q, Q)[:2])
    return vertical, gamma[3:, 2:, 2:], gamma[:2, 2:, 2:]


def _by(system: Split, **changes: object) -> tuple[Array, Array, Array]:
    forms = Forms(system)
    printed = forms.acceleration(forms.holonomic(**changes), Q, RDOT)  # type: ignore[arg-type]
    return _truth(system), printed, forms.acceleration(forms.holonomic(), Q, RDOT)


def misprint_000_4() -> tuple[Array, Array, Array]:
    """(3.6), (3.12): the derivative along the fibre is missing."""
    return _by(_split().normalized(), slope=False)


def misprint_000_4_momentum() -> tuple[Array, Array, Array]:
    """(3.6): dL/dsdot for dL/du where A1 is not I."""
    return _by(_split(), factor=False)


def misprint_000_5() -> tuple[Array, Array, Array]:
    """(3.12): Q_I = A^a_I Q_a -> B^a_I Q_a."""
    system, normal = _split(), Forms(_split().normalized())
    wrong = system.force[2:] + _value(system.connection, (system.q, Q)).T @ system.force[:2]
    residual = normal.holonomic() + normal.split.pulled - wrong
    right = normal.acceleration(normal.holonomic(), Q, RDOT)
    return _truth(system), normal.acceleration(residual, Q, RDOT), right


def misprint_000_6() -> tuple[Array, Array, Array]:
    """(3.14): dL/ds -> dL/dsdot in the term of the curvature."""
    forms = Forms(_split())
    printed = forms.acceleration(forms.constrained_lagrangian(momentum=False), Q, RDOT)
    right = forms.acceleration(forms.constrained_lagrangian(), Q, RDOT)
    return _truth(_split()), printed, right


def misprint_000_6_voronets() -> tuple[Array, Array, Array]:
    """(3.15): + A (...) -> - A (...)."""
    forms = Forms(_split())
    printed = forms.acceleration(forms.voronets(sign=1.0), Q, RDOT)
    return _truth(_split()), printed, forms.acceleration(forms.voronets(), Q, RDOT)


def misprint_000_7() -> tuple[Array, Array, Array]:
    """Section 3b: [A_J, A_I] = DA_J A_I - DA_I A_J -> that is [A_I, A_J]."""
    s, f = _split().s, ca.SX.sym("f", 2)
    x, y = _split().connection[:, 0], _split().connection[:, 1]
    along = [ca.jtimes(f, f, x), ca.jtimes(f, f, y)]  # X f and Y f of the coordinates
    bracket = ca.jtimes(along[1], s, x) - ca.jtimes(along[0], s, y)
    form = ca.jacobian(y, s) @ x - ca.jacobian(x, s) @ y
    truth, value = (_value(e, (_split().q, Q)) for e in (bracket, form))
    return truth, -value, value


def misprint_003_1() -> tuple[Array, Array, Array]:
    """After (11): gamma^a_cb d pi^c delta pi^c -> gamma^a_cb d pi^b delta pi^c."""
    swap, _, u, varied = _surface(_split().forms, _split().q)
    gamma = _gammas()[3]
    printed = np.einsum("acb,c,c->a", gamma, u, varied)
    return swap, printed, np.einsum("acb,b,c->a", gamma, u, varied)


def misprint_003_2() -> tuple[Array, Array, Array]:
    """(49), (52), (54), (75), (76), (80), (81): d/dt of the difference -> difference over dt."""
    phi = ca.SX.sym("phi", 3)
    swap, rate, u, varied = _surface(body_rates(phi), phi)
    return np.cross(varied, u), rate, swap


def misprint_003_3() -> tuple[Array, Array, Array]:
    """(17), (18): d/dq^a -> d/dpi^a = B^s_a d/dq^s."""
    system = _split()
    forms, _, _, gamma = _gammas()
    bent = slopes(system.back, system.q, Q)[1]
    printed = np.einsum("cr,rba->cab", forms, bent) - np.einsum("cr,rab->cab", forms, bent)
    return gamma, printed, np.einsum("cr,rab->cab", forms, _brackets(system.back, system.q, Q))


def misprint_003_4() -> tuple[Array, Array, Array]:
    """After (14): dL/dpi^a = A^a_b dL/dq^b -> B^b_a dL/dq^b."""
    system, (_, _, back, _) = _split(), _gammas()
    height = ca.sumsqr(_random(3, 1, system.q, 9))
    slope = _value(ca.gradient(height, system.q), (system.q, Q))
    h = 1e-6
    f = ca.Function("f", [system.q], [height])
    truth = [float(f(Q + h * b) - f(Q - h * b)) / (2 * h) for b in back.T]
    return np.array(truth), back @ slope, back.T @ slope, 1e-8


def misprint_003_5() -> tuple[Array, Array, Array]:
    """(27): upper left block -A1^-1 -> A1^-1."""
    forms = _gammas()[0]
    printed = _value(_split().back, (_split().q, Q))
    right = printed.copy()
    printed[:2, :2] *= -1.0
    return np.eye(5), forms @ printed, forms @ right


def misprint_003_6() -> tuple[Array, Array, Array]:
    """(28), first line of (33): mixed terms are missing."""
    system, gamma = _split(), _gammas()[3]
    pair = (system.q, Q)
    printed, right = (
        np.array([_value(g, pair) for g in system.curvature(mixed)]) for mixed in (False, True)
    )
    return gamma[:2, 2:, 2:], printed, right


def misprint_003_7() -> tuple[Array, Array, Array]:
    """(39), (40): c_ijk -> c_jik for gamma^k_ij = c_kij."""
    c, pi, v = structure(bracket, 6), np.arange(1.0, 7.0), np.array([0.3, -1, 0.7, 0.4, 0.9, -0.2])
    printed = np.einsum("ijk,j,k->i", c, pi, v)
    return -bracket(v).T @ pi, printed, np.einsum("jik,j,k->i", c, pi, v)


def misprint_003_8() -> tuple[Array, Array, Array]:
    """(34) holds only if L does not depend on s."""
    return misprint_000_4()


def misprint_003_9() -> tuple[Array, Array, Array]:
    """(38): the factor dL/dsdot is missing."""
    normal = Forms(_split().normalized())
    bent = normal.split.curvature()
    wrong = sum(gamma @ normal.y for gamma in bent)
    qdot = normal.split.lift @ normal.y
    x = ca.SX.sym("x", 5)
    momenta = ca.gradient(normal.split.lagrangian(normal.split.q, x), x)[:2]
    momenta = ca.substitute(momenta, x, qdot)
    right = sum(momenta[a] * (gamma @ normal.y) for a, gamma in enumerate(bent))
    residual = normal.holonomic() - right + wrong
    found = normal.acceleration(normal.holonomic(), Q, RDOT)
    return _truth(_split()), normal.acceleration(residual, Q, RDOT), found


def test_misprints() -> None:
    check_misprints(globals())


# --- Groups ---------------------------------------------------------------------------------


def _euler(q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """R = Rz Ry Rx and its body rates, from definitions: omega~ = R^T Rdot."""
    turn = ca.SX.eye(3)
    for axis, angle in zip((2, 1, 0), ca.vertsplit(q), strict=True):
        turn = turn @ rotation(angle * ca.DM.eye(3)[:, axis])
    return turn, _rates(turn, q)


def _rates(turn: ca.SX, q: ca.SX) -> ca.SX:
    columns = []
    for k in range(3):
        rate = turn.T @ ca.reshape(ca.jacobian(ca.vec(turn), q[k]), 3, 3)
        columns.append(ca.vertcat(rate[2, 1], rate[0, 2], rate[1, 0]))
    return ca.horzcat(*columns)


def test_coefficients_of_groups() -> None:
    """On two charts. 000: (2.7); 003: (8), (9), (15), (42)-(47), (55), (72), (82), (83)."""
    phi, r = ca.SX.sym("phi", 3), ca.SX.sym("r", 3)
    q = ca.vertcat(r, phi)
    at = np.array([0.4, -0.9, 1.7, 0.3, -0.7, 0.5])
    se3 = structure(bracket, 6)
    hybrid = np.zeros((6, 6, 6))
    hybrid[3:, 3:, 3:] = -EPS
    for turn, omega in ((rotation(phi), body_rates(phi)), _euler(phi)):
        pose = _value(turn, (q, at))
        assert_close(pose.T @ pose, np.eye(3), 1e-14)
        body, spatial = coefficients(*slopes(omega, phi, at[3:])), turn @ omega
        assert_close(body, EPS, 1e-13)
        assert_close(coefficients(*slopes(spatial, phi, at[3:])), -EPS, 1e-13)
        eye = ca.SX.eye(3)
        left = ca.diagcat(turn.T, omega)
        right = ca.vertcat(ca.horzcat(eye, ca.skew(r) @ spatial), ca.horzcat(ca.SX(3, 3), spatial))
        mixed = ca.diagcat(eye, spatial)
        for forms, expected in ((left, se3), (right, -se3), (mixed, hybrid)):
            assert_close(coefficients(*slopes(forms, q, at)), expected, 1e-13)
    # The two ways to exponential coordinates of rotations agree, and so do the rates.
    expected = Rotation.from_rotvec(at[3:]).as_matrix()
    assert_close(_value(rotation(phi), (phi, at[3:])), expected, 1e-14)
    spatial = rotation(phi) @ body_rates(phi) - body_rates(phi, 1.0)
    assert_close(_value(spatial, (phi, at[3:])), np.zeros((3, 3)), 1e-14)
    assert_close(
        _value(_rates(rotation(phi), phi) - body_rates(phi), (phi, at[3:])), np.zeros((3, 3)), 1e-14
    )


def test_structure_constants() -> None:
    """003: (8), (9), (15), (163)-(166); 000: section 1."""
    c = structure(bracket, 6)
    assert np.count_nonzero(c) == 18
    jacobi = np.einsum("mil,ljk->mijk", c, c)
    cyclic = jacobi + jacobi.transpose(0, 2, 3, 1) + jacobi.transpose(0, 3, 1, 2)
    assert_close(cyclic, np.zeros((6,) * 4), 1e-15)
    # Printed with the angular part first, (k; i, j) = value.
    printed = "1;23=1 2;13=-1 3;12=1 4;26=1 4;35=-1 5;16=-1 5;34=1 6;15=1 6;24=-1"
    expected = np.zeros((6, 6, 6))
    for entry in printed.split():
        k, i, j, value = int(entry[0]), int(entry[2]), int(entry[3]), float(entry[5:])
        k, i, j = (n + 2 if n < 4 else n - 4 for n in (k, i, j))
        expected[k, i, j], expected[k, j, i] = value, -value
    np.testing.assert_array_equal(c, expected)


def test_transitory_relations_of_rigid_motions() -> None:
    """003: (48) to (54), (73) to (82): d delta pi - delta d pi of three twists."""
    phi, r = ca.SX.sym("phi", 3), ca.SX.sym("r", 3)
    swap, _, omega, theta = _surface(body_rates(phi), phi)
    assert_close(swap, np.cross(theta, omega), 1e-13)
    swap, _, omega, theta = _surface(body_rates(phi, 1.0), phi)
    assert_close(swap, -np.cross(theta, omega), 1e-13)
    q, eye, spatial = ca.vertcat(r, phi), ca.SX.eye(3), body_rates(phi, 1.0)
    left = ca.diagcat(rotation(phi).T, body_rates(phi))
    swap, _, twist, varied = _surface(left, q)
    assert_close(swap, -bracket(twist) @ varied, 1e-13)
    right = ca.vertcat(ca.horzcat(eye, ca.skew(r) @ spatial), ca.horzcat(ca.SX(3, 3), spatial))
    swap, _, twist, varied = _surface(right, q)
    assert_close(swap, bracket(twist) @ varied, 1e-13)
    swap, _, twist, varied = _surface(ca.diagcat(eye, spatial), q)
    assert_close(swap[:3], np.zeros(3), 1e-13)
    assert_close(swap[3:], np.cross(twist[3:], varied[3:]), 1e-13)


def test_coefficients_from_matrices() -> None:
    """Slopes of C^-1 and C instead of those of A. 003: (42)-(47), (55), (68)-(72)."""
    phi, r = ca.SX.sym("phi", 3), ca.SX.sym("r", 3)
    q, turn = ca.vertcat(r, phi), rotation(phi)
    at = np.array([0.4, -0.9, 1.7, 0.3, -0.7, 0.5])
    last = ca.horzcat(ca.SX(1, 3), ca.SX.eye(1))
    pose = ca.vertcat(ca.horzcat(turn, r), last)
    back = ca.vertcat(ca.horzcat(turn.T, -turn.T @ r), last)
    forms = slopes(ca.diagcat(turn.T, body_rates(phi)), q, at)[0]
    g = np.linalg.inv(forms)
    dc, dd = (np.einsum("rsa,ai->rsi", slopes(x, q, at)[1], g) for x in (pose, back))
    product = np.einsum("rsj,sti->rtij", dd, dc)
    found = product - product.transpose(0, 1, 3, 2)
    basis = np.stack([twist_matrix(x) for x in np.eye(6)])
    assert_close(found, np.einsum("kab,kij->abij", basis, structure(bracket, 6)), 1e-13)
