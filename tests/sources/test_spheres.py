"""Mechanics on products of two-spheres: source 002.

Chain pendulums by `LagrangianSystem` and their reference numbers are tested in tests/formulations.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
from scipy.linalg import expm

from tests.groups.oracles import cross_matrix
from tests.oracles import assert_close, difference_quotient
from tests.oracles._spheres import Spheres, acceleration
from tests.sources._misprints import check_misprints

Array = np.ndarray
E3 = np.array([0.0, 0.0, 1.0])


def _unit(x: Array) -> Array:
    return (x.reshape(-1, 3) / np.linalg.norm(x.reshape(-1, 3), axis=1)[:, None]).ravel()


def _cross(a: Array, b: Array) -> Array:
    return np.cross(a.reshape(-1, 3), b.reshape(-1, 3)).ravel()


def _draw(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


AT = _unit(_draw(3, 6))
SPIN = _cross(AT, 2 * _draw(4, 6))
RATE = _cross(SPIN, AT)


@cache
def _system() -> Spheres:
    """Two spheres, masses and potential that depend on both directions."""
    q = ca.SX.sym("q", 6)
    a, b = ca.DM(_draw(5, 3, 6)) @ q, ca.DM(_draw(6, 2, 6)) @ q
    cross = 0.5 + 0.2 * ca.sin(a[1])
    masses = ca.blockcat([[2 + 0.3 * ca.sin(a[0]), cross], [cross, 1.5 + 0.3 * ca.cos(a[2])]])
    force = ca.DM(_draw(7, 6))
    return Spheres(q, masses, ca.sum1(ca.cos(b)) + b[0] ** 2, ca.SX(force))


def _accelerations(form: tuple[ca.SX, ca.SX, ca.SX], spins: bool) -> Array:
    """qddot of a form in rates or in angular velocities (5)."""
    found = acceleration(form, _system().q, AT, SPIN if spins else RATE)
    if not spins:
        return found
    assert_close((found * AT).reshape(2, 3).sum(axis=1), np.zeros(2), 1e-13)
    return -_cross(AT, found) - np.repeat((SPIN.reshape(2, 3) ** 2).sum(axis=1), 3) * AT


def test_identities() -> None:
    """002: (1) to (5), (43) to (48)."""
    x, y, z = _draw(8, 3, 3)
    s = cross_matrix
    assert_close(s(x) @ y, -s(y) @ x, 1e-15)
    assert_close(s(x) @ s(x), -x @ x * np.eye(3) + np.outer(x, x), 1e-14)
    assert_close(s(x) @ s(x) @ s(x), -x @ x * s(x), 1e-14)
    assert_close([x @ s(y) @ z, y @ s(z) @ x], [z @ s(x) @ y] * 2, 1e-14)
    assert_close(s(x) @ s(y) @ z, (x @ z) * y - (x @ y) * z, 1e-14)
    assert_close(s(np.cross(x, y)), s(x) @ s(y) - s(y) @ s(x), 1e-14)
    assert_close(s(np.cross(x, y)), np.outer(y, x) - np.outer(x, y), 1e-14)
    q, w = AT[:3], SPIN[:3]
    rate = np.cross(w, q)
    assert_close([q @ rate, q @ w, w @ rate], np.zeros(3), 1e-15)
    assert_close(np.cross(q, rate), w, 1e-15)
    square = s(q) @ s(q)
    assert_close(np.eye(3) - np.outer(q, q), -square, 1e-15)
    assert_close(square @ square, -square, 1e-15)
    assert_close(s(q) @ s(w) @ s(q), np.zeros((3, 3)), 1e-15)
    assert_close(s(q) @ s(rate), -square @ s(w), 1e-15)
    assert_close(s(rate) @ s(q), s(w) @ square, 1e-15)


def test_variations() -> None:
    """002: (6) to (8), (16), by differences of exp(eps S(gamma)) q."""
    q, w = AT[:3], SPIN[:3]
    gamma, turning = np.cross(q, [0.3, -0.8, 0.5]), np.array([0.4, 0.9, -0.2])
    rate = np.cross(w, q)

    def moved(h: float, t: float) -> Array:
        return expm(h * cross_matrix(gamma + t * turning)) @ expm(t * cross_matrix(w)) @ q

    def speed(h: float) -> Array:
        return difference_quotient(lambda t: moved(h, t))

    assert_close(difference_quotient(lambda h: moved(h, 0.0)), np.cross(gamma, q), 1e-9)
    varied = difference_quotient(speed, 1e-2)
    assert_close(varied, np.cross(turning, q) + np.cross(gamma, rate), 1e-8)
    spin = difference_quotient(lambda h: np.cross(moved(h, 0.0), speed(h)), 1e-2)
    expected = -np.cross(w, gamma) + turning - q * (q @ turning)
    assert_close(spin, expected, 1e-8)


def test_six_forms_agree_with_multipliers() -> None:
    """Off the constraint set in any way. 002: (9)-(37), (49), (50)."""
    system = _system()
    truth = system.multipliers(AT, RATE)
    for slack in (0.0, 0.7):
        assert_close(_accelerations(system.by_rates(slack), False), truth, 1e-12)
        assert_close(_accelerations(system.by_spins(slack), True), truth, 1e-12)
    assert_close(_accelerations(system.by_rates_quadratic(), False), truth, 1e-12)
    assert_close(_accelerations(system.by_spins_quadratic(), True), truth, 1e-12)
    # The 2 of (17) shows only where q . dL/domega is not zero.
    wrong = [_accelerations(system.by_spins(slack, 1.0), True) for slack in (0.0, 0.7)]
    assert_close(wrong[0], truth, 1e-12)
    assert np.abs(wrong[1] - truth).max() > 1e-2


def _momenta() -> tuple[ca.SX, ca.SX, ca.SX]:
    """v, mu (20) and pi (28) as expressions of (q, v)."""
    system, v = _system(), ca.SX.sym("v", 6)
    plain = ca.gradient(system.lagrangian(v), v)
    w = ca.SX.sym("w", 6)
    turned = ca.gradient(system.modified(w), w)
    spin = ca.vertcat(
        *(
            ca.cross(a, b)
            for a, b in zip(ca.vertsplit(system.q, 3), ca.vertsplit(v, 3), strict=True)
        )
    )
    turned = ca.substitute(turned, w, spin)
    across = ca.diagcat(*(ca.SX.eye(3) - x @ x.T for x in ca.vertsplit(system.q, 3)))
    return v, across @ plain, across @ turned


def test_hamiltonian_forms() -> None:
    """Rates of momenta along the motion of (11), and the energy. 002: (20)-(37), (51)-(53)."""
    system = _system()
    v, mu, pi = _momenta()
    truth = system.multipliers(AT, RATE)
    values = ca.Function(
        "f",
        [system.q, v],
        [mu, pi, *(ca.jtimes(x, system.q, v) + ca.jtimes(x, v, ca.DM(truth)) for x in (mu, pi))],
    )
    at_mu, at_pi, mudot, pidot = (np.array(x)[:, 0] for x in values(AT, RATE))
    assert_close(_cross(AT, at_mu), at_pi, 1e-13)
    assert_close(at_mu @ RATE, at_pi @ SPIN, 1e-13)
    for form, given, expected in (
        (system.by_mu(), at_mu, mudot),
        (system.by_pi(), at_pi, pidot),
    ):
        momenta, qdot, rate = form
        found = ca.Function("f", [system.q, momenta], [qdot, rate])(AT, given)
        assert_close(np.array(found[0])[:, 0], RATE, 1e-12)
        assert_close(np.array(found[1])[:, 0], expected, 1e-11)
    # Tangency: q . pidot = -qdot . pi.
    tangent = (AT * pidot + RATE * at_pi).reshape(2, 3).sum(axis=1)
    assert_close(tangent, np.zeros(2), 1e-12)


# --- Chain pendulum -------------------------------------------------------------------------

GRAVITY, MASSES, LENGTHS = 9.81, np.array([1.0, 0.7]), np.array([0.8, 0.6])
LINKS = np.array([0.6, 0.0, -0.8, 2 / 7, 3 / 7, -6 / 7])
SPINS = np.array([0.8, 0.5, 0.6, 0.9, 0.4, 0.5])
TORQUE, PUSH = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5])


def _chain(force: Array) -> Spheres:
    """(38), (39): point masses, axis 3 up."""
    q = ca.SX.sym("q", 6)
    outer = np.array([MASSES.sum(), MASSES[1]])
    masses = np.array([[outer[max(i, j)] for j in range(2)] for i in range(2)])
    masses = masses * np.outer(LENGTHS, LENGTHS)
    potential = GRAVITY * (outer[0] * LENGTHS[0] * q[2] + outer[1] * LENGTHS[1] * q[5])
    return Spheres(q, ca.SX(ca.DM(masses)), potential, ca.SX(ca.DM(force)))


def _cartesian() -> Array:
    """omegadot of the links from two point masses with constraints on their distances."""
    q, w = LINKS.reshape(2, 3), SPINS.reshape(2, 3)
    rate = np.cross(w, q)
    moment = np.cross(TORQUE, q[0]) / LENGTHS[0]
    loads = np.array([moment, PUSH]) - GRAVITY * MASSES[:, None] * E3
    rows = np.zeros((2, 6))
    rows[0, :3] = q[0]
    rows[1, :3], rows[1, 3:] = -q[1], q[1]
    speeds = LENGTHS * (rate**2).sum(axis=1)
    inertia = np.diag(np.repeat(MASSES, 3))
    matrix = np.block([[inertia, rows.T], [rows, np.zeros((2, 2))]])
    found = np.linalg.solve(matrix, np.concatenate([loads.ravel(), -speeds]))[:6].reshape(2, 3)
    qddot = np.array([found[0] / LENGTHS[0], (found[1] - found[0]) / LENGTHS[1]])
    return np.cross(q, qddot).ravel()


FORCE = np.concatenate([-np.cross(LINKS[:3], TORQUE) + LENGTHS[0] * PUSH, LENGTHS[1] * PUSH])
"""f_1 = -S(q_1) tau + l_1 d and f_2 = l_2 d."""


def test_chain_of_two_links() -> None:
    """002: (38) to (42), against point masses in Cartesian coordinates."""
    system = _chain(FORCE)
    truth = _cartesian()
    found = acceleration(system.by_spins_quadratic(), system.q, LINKS, SPINS)
    assert_close(found, truth, 1e-13)
    matrix = np.array(ca.Function("f", [system.q], [system.matrix])(LINKS))
    assert np.linalg.eigvalsh(matrix)[0] > 0.1
    momenta, qdot, rate = system.by_pi()
    both = ca.Function("f", [system.q, momenta], [qdot, rate])(LINKS, matrix @ SPINS)
    assert_close(np.array(both[0])[:, 0], _cross(SPINS, LINKS), 1e-13)

    def momentum(h: float) -> Array:
        at = LINKS + h * _cross(SPINS, LINKS)
        now = np.array(ca.Function("f", [system.q], [system.matrix])(at))
        return now @ (SPINS + h * truth)

    assert_close(np.array(both[1])[:, 0], difference_quotient(momentum), 1e-8)


def misprint_002_1() -> tuple[float, float, float]:
    """(38): M_ij l_i l_j twice -> once."""
    q, w = LINKS.reshape(2, 3), SPINS.reshape(2, 3)
    rate = np.cross(w, q)
    first = LENGTHS[0] * rate[0]
    second = first + LENGTHS[1] * rate[1]
    truth = MASSES[0] * first @ first / 2 + MASSES[1] * second @ second / 2
    m = np.array(ca.evalf(_chain(FORCE).masses))
    turned = rate @ rate.T
    return truth, float((m * m * turned).sum()) / 2, float((m * turned).sum()) / 2


def misprint_002_2() -> tuple[Array, Array, Array]:
    """After (39): f_1 = tau + l_1 S(q_1) d, which (40) turns again -> f_1 = -S(q_1) tau + l_1 d."""
    q = LINKS.reshape(2, 3)
    wrong = np.concatenate(
        [TORQUE + LENGTHS[0] * np.cross(q[0], PUSH), LENGTHS[1] * np.cross(q[1], PUSH)]
    )
    printed, right = (
        acceleration(s.by_spins_quadratic(), s.q, LINKS, SPINS)
        for s in (_chain(wrong), _chain(FORCE))
    )
    return _cartesian(), printed, right


def misprint_002_3() -> tuple[Array, Array, Array]:
    """(42): sum_j m_j g l_j e3 from 1 to n -> sum_j m_j g l_i e3 from i to n."""
    system = _chain(FORCE)
    outer = np.array([MASSES.sum(), MASSES[1]])
    shift = GRAVITY * np.kron(MASSES @ LENGTHS - outer * LENGTHS, E3)
    matrix = np.array(ca.Function("f", [system.q], [system.matrix])(LINKS))
    truth = _cartesian()

    def momentum(h: float) -> Array:
        now = ca.Function("f", [system.q], [system.matrix])(LINKS + h * _cross(SPINS, LINKS))
        return np.array(now) @ (SPINS + h * truth)

    values = []
    for extra in (shift, 0.0):
        momenta, _, rate = system.by_pi(ca.DM(extra))
        found = ca.Function("f", [system.q, momenta], [rate])(LINKS, matrix @ SPINS)
        values.append(np.array(found)[:, 0])
    return difference_quotient(momentum), values[0], values[1], 1e-8


def misprint_002_4() -> tuple[Array, Array, Array]:
    """(28): L(q, omega) -> modified L(q, S(omega) q)."""
    system = _system()
    v, mu, pi = _momenta()
    found = ca.Function("f", [system.q, v], [mu, pi])
    at_mu, right = (np.array(x)[:, 0] for x in found(AT, RATE))
    blocks = np.array(ca.Function("f", [system.q], [system.blocks])(AT))
    printed = -_cross(AT, _cross(AT, blocks @ SPIN))
    return _cross(AT, at_mu), printed, right


def test_misprints() -> None:
    check_misprints(globals())
