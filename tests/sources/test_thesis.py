"""Misprints of the thesis, source 001, that no other test shows: printed forms that fail."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
from scipy.linalg import logm
from scipy.spatial.transform import Rotation

import concur as cc
from concur.reduction import MomentumReduction
from concur.robot import Mechanism
from tests.certify._thesis_cases import error_maps, rotation
from tests.oracles import (
    Constrained,
    CraneNumbers,
    MomentumChart,
    Pinocchio,
    RoverNumbers,
    assert_close,
    crane,
    crane_rows,
    difference_quotient,
    rover,
    rover_rows,
)
from tests.reduction import test_crane, test_rover
from tests.reduction import test_two_handed_spacecraft as spacecraft
from tests.reduction._symmetric_robots import disc_then_planar
from tests.sources._misprints import check_misprints

Array = np.ndarray
N = RoverNumbers()
Q, V = test_rover.Q0, test_rover.V0
BASE, SHAPE = slice(0, 3), slice(3, 8)
TAU = np.array([0.0, 0.0, 0.0, 0.2, 0.5, -0.1, 0.3, -0.3])
"""Forces of the drives of the rover, N m, in the order of its velocities."""


def _rover() -> Constrained:
    return Constrained(Pinocchio(rover()), rover_rows(N.b, N.c))


def _lift(rows: Array) -> Array:
    """Velocities for shape velocities, from the rows of the constraints."""
    return np.vstack([-np.linalg.solve(rows[:, BASE], rows[:, SHAPE]), np.eye(5)])


def _spacecraft() -> tuple[MomentumChart, Pinocchio]:
    model = cc.reduce(cc.robots.two_handed_spacecraft(), momentum=spacecraft.MU)
    assert isinstance(model, MomentumReduction)
    chart = MomentumChart(model, slice=spacecraft.product_slice)
    return chart, Pinocchio(model.robot)


# --- Reduction by momentum --------------------------------------------------------------------


def misprint_001_13() -> tuple[int, int, int]:
    """Theorem 3.3.6 reads as if the canonical form were symplectic on the bundle."""
    chart, _ = _spacecraft()
    form = chart.two_form(spacecraft.ZETA, spacecraft.JOINTS)
    n, k = form.shape[0], 6
    canonical = np.zeros((n + k, n + k))
    canonical[n - k : n, n:] = np.eye(k)
    canonical -= canonical.T
    reduced = canonical.copy()
    reduced[:n, :n] -= form
    # States: the orbit has as many dimensions as the group loses to the isotropy group.
    mu = np.array(spacecraft.MU)
    turns = [
        np.concatenate([np.cross(mu[:3], w), np.cross(mu[:3], v) + np.cross(mu[3:], w)])
        for v, w in np.eye(6).reshape(6, 2, 3)
    ]
    states = np.linalg.matrix_rank(np.array(turns)) + 2 * k
    rank = np.linalg.matrix_rank
    return int(states), int(rank(canonical)), int(rank(reduced, tol=1e-9))


def misprint_001_18() -> tuple[float, float, float]:
    """Section 3.4: K(v, v) = v FL v / 2 with L = K(v, v) / 2 halves the energy; K = v FL v."""
    _, oracle = _spacecraft()
    v = np.concatenate([spacecraft.START["v1"], spacecraft.S])
    mass = oracle.mass_matrix(spacecraft.Q0)
    printed = (v @ mass @ v / 2) / 2
    return oracle.kinetic_energy(spacecraft.Q0, v), printed, v @ mass @ v / 2


def misprint_001_20() -> tuple[Array, Array, Array]:
    """Section 3.4: K11 in body velocities is pulled back by T chi, which is in coordinates."""
    _, oracle = _spacecraft()
    q = np.concatenate([spacecraft.START["p"] * 0, [0, 0, 0, 1], spacecraft.Q0[7:]])
    inertia = oracle.mass_matrix(q)[:6, :6]
    x, z, about_x, about_z = spacecraft.ZETA
    k = spacecraft.K
    slope = np.zeros((6, 2))  # of (x, y, z, tX, tY, tZ) by (y, tY), at h = e
    slope[1, 0], slope[[0, 2, 4], 1] = 1.0, (k + z, -x, 1.0)
    # Truth: the base's velocity when the isotropy group moves it by E2 and k E1 + E5.
    turn = np.array(ca.DM(spacecraft.product_slice(ca.SX(spacecraft.ZETA))[0]))
    moved = []
    for v, w in (((0, 1, 0), (0, 0, 0)), ((k, 0, 0), (0, 1, 0))):
        linear = turn.T @ (np.array(v) + np.cross(w, (x, 0.0, z)))
        moved.append(np.concatenate([linear, turn.T @ np.array(w)]))
    body = np.array(moved).T
    # From coordinates to body velocities: R^T, and the rates of the angles Y-X-Z.
    c, s, cz, sz = np.cos(about_x), np.sin(about_x), np.cos(about_z), np.sin(about_z)
    angles = np.array([[cz, c * sz, 0], [-sz, c * cz, 0], [0, -s, 1]])
    change = np.block([[turn.T, np.zeros((3, 3))], [np.zeros((3, 3)), angles]])
    corrected = change @ slope
    return body.T @ inertia @ body, slope.T @ inertia @ slope, corrected.T @ inertia @ corrected


def misprint_001_24() -> tuple[float, float, float]:
    """(3.3.32) with the field [0 0 g] of section 4.6: m g . (0 - r) falls with the height."""
    robot, g = rover(), np.array([0.0, 0.0, 9.81])
    oracle = Pinocchio(robot)

    def printed(q: Array) -> float:
        places = [oracle.pose(q, b.name) @ [*b.inertia.com, 1.0] for b in robot.bodies]
        return -sum(b.inertia.mass * g @ p[:3] for b, p in zip(robot.bodies, places, strict=True))

    raised = Q + np.array([0, 0, 0, 0, 0, 0, 0.3, 0.2])
    truth = oracle.potential_energy(raised) - oracle.potential_energy(Q)
    found = printed(raised) - printed(Q)
    return truth, found, -found


# --- Reduction by wheels ----------------------------------------------------------------------


def misprint_001_25() -> tuple[Array, Array, Array]:
    """(4.2.9): its multipliers have the opposite sign of those of (4.2.15)."""
    full = _rover()
    oracle = full.oracle
    vdot, _ = full.acceleration(Q, V, TAU)
    reaction = (oracle.mass_matrix(Q) @ vdot + oracle.bias(Q, V) - TAU)[BASE]

    def momentum(h: float) -> Array:
        return oracle.momentum(Q + h * oracle.rate(Q, V), V + h * vdot)[[0, 1, 5]]

    # kappa = d/dt of the spatial momentum, as in (4.2.15); its force on the body velocities.
    rate = difference_quotient(momentum)
    x, y, turn = Q[:3]
    cos, sin = np.cos(turn), np.sin(turn)
    to_spatial = np.array([[cos, -sin, y], [sin, cos, -x], [0, 0, 1]])
    force = to_spatial.T @ rate
    return reaction, -force, force, 1e-7


def misprint_001_26() -> tuple[Array, Array, Array]:
    """(4.2.11): sum of w^s eps_s is a connection only for normalized one-forms."""
    x, y, turn = Q[:3]
    turned = np.eye(8)
    turned[:2, :2] = [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
    forms = rover_rows(N.b, N.c)(Q) @ turned  # on the rates of (x, y, theta, ...)
    generators = np.array([[1, 0, -y], [0, 1, x], [0, 0, 1.0]])
    shape = np.concatenate([np.zeros(3), V[SHAPE]])
    printed = -generators @ (forms @ shape)
    corrected = -generators @ np.linalg.solve(forms[:, BASE] @ generators, forms @ shape)
    return turned[BASE, BASE].T @ V[BASE], printed, corrected


def misprint_001_28() -> tuple[Array, Array, Array]:
    """Proposition 4.2.14 also needs L_zeta Xi = 0: here both hypotheses hold, and n stays."""

    # A charge in the field (f(n), 0, 0): Xi = f(n) da ^ db has no leg along n, p_n is constant.
    def field(n: float) -> Array:
        return np.array([0.5 + n, 0.0, 0.0])

    v = np.array([0.3, 0.7, -0.4])
    forces = [np.cross(v, field(n))[1:] for n in (0.0, 0.6)]
    printed = np.zeros(2)  # no n in the reduced equations: the same force for both
    corrected = (field(0.6) - field(0.0))[0] * np.array([v[2], -v[1]])
    return forces[1] - forces[0], printed, corrected


def misprint_001_30() -> tuple[float, float, float]:
    """Section 4.4: the first approach moves joints by left translations -> conjugated ones."""
    robot, shift = disc_then_planar(), np.array([0.7, -0.4])
    oracle = Pinocchio(robot)
    q, v = np.array([0.9, 0.3, -0.2, 0.5]), np.array([1.3, -0.6, 0.8, 0.4])

    def moved(x: Array) -> Array:
        turn = Rotation.from_euler("z", -x[0]).as_matrix()[:2, :2]
        return x + np.array([0.0, *(turn @ shift), 0.0])

    def along(h: float) -> Array:
        return robot.difference(moved(q), moved(robot.integrate(q, h * v)))

    left = oracle.kinetic_energy(q + np.array([0.0, *shift, 0.0]), v)
    conjugated = oracle.kinetic_energy(moved(q), difference_quotient(along))
    return oracle.kinetic_energy(q, v), left, conjugated, 1e-8


def misprint_001_35() -> tuple[Array, Array, Array]:
    """Example 4.6.1: Khat_ij = K_ij for i, j in {2, 3, 4} -> K_(i+2)(j+2)."""
    mass = Pinocchio(rover()).mass_matrix(Q)
    lift = _lift(rover_rows(N.b, N.c)(Q))
    arm = np.ix_([5, 6, 7], [5, 6, 7])
    return (lift.T @ mass @ lift)[2:, 2:], mass[np.ix_([3, 4, 5], [3, 4, 5])], mass[arm]


def misprint_001_39() -> tuple[float, float, float]:
    """Example 4.6.2: Q^5_6 and H^5_6 put the crane's boom on a wheel -> Q^3_6, H^3_6."""
    robot, n = crane(), CraneNumbers()
    bodies = [replace(b, parent="right") if b.name == "boom" else b for b in robot.bodies]
    printed = Mechanism("printed", bodies, robot.wheels)
    wheel = robot.v_slice("right").start
    found = [Pinocchio(r).mass_matrix(test_crane.Q0)[wheel, wheel] for r in (printed, robot)]
    return n.j[4][1], *found  # the entry of the printed matrix K


def misprint_001_41() -> tuple[float, float, float]:
    """Example 4.6.2, w3 and w4: (l sin psi1 -+ c) stands alone -> its product with dtheta."""
    n, q, v = CraneNumbers(), test_crane.Q0, test_crane.V0
    row = crane_rows(n.l, n.b, n.c)(q)[2]
    arm = n.l * np.sin(q[3]) - n.c
    return 0.0, row @ v - arm * v[2] + arm, row @ v


# --- Control ----------------------------------------------------------------------------------


def misprint_001_44() -> tuple[float, float, float]:
    """(5.1.4): + u beside dH makes u minus the force of the drives, which is not stated."""
    full = _rover()
    oracle = full.oracle
    vdot, _ = full.acceleration(Q, V, TAU)

    def energy(h: float) -> float:
        q, v = Q + h * oracle.rate(Q, V), V + h * vdot
        return oracle.kinetic_energy(q, v) + oracle.potential_energy(q)

    power = TAU @ V
    return float(difference_quotient(energy)), -power, power, 1e-8


def misprint_001_51() -> tuple[float, float, float]:
    """(5.4.43): KP^-1 KD -> I^-1 KD, as the second derivative of Er has it."""
    outputs = rotation("A")  # KP = 4, KD = 5, I = 1
    x, ve = np.array([0.9, -0.4, 0.7]), np.array([0.5, 0.8, -0.3])
    stiffness, damping = outputs.stiffness, outputs.damping

    def b(y: Array) -> Array:
        return error_maps(y[None])[0]

    rate = b(x).T @ stiffness @ x - damping @ ve
    along = -b(x) @ ve

    def slope(h: float) -> float:
        at = x + h * along
        return -at @ stiffness @ b(at) @ (ve + h * rate)

    bent = difference_quotient(lambda h: b(x - h * along)) @ ve
    rest = ve @ b(x).T @ stiffness @ b(x) @ ve + x @ stiffness @ bent
    rest -= x @ stiffness @ b(x) @ b(x).T @ stiffness @ x
    damped = x @ stiffness @ b(x) @ damping @ ve
    return float(difference_quotient(slope)), rest + damped / 4.0, rest + damped, 1e-8


def misprint_001_50() -> tuple[float, float, float]:
    """(5.4.42) bounds a term that is quadratic in ve by one that is linear in |ve|."""
    stiffness, x, ve = 4.0, np.array([0.9, -0.4, 0.7]), np.array([0.5, 0.8, -0.3])

    def term(velocity: Array) -> float:
        along = error_maps(x[None])[0] @ velocity
        bent = difference_quotient(lambda h: error_maps((x + h * along)[None])[0])
        return stiffness * x @ bent @ velocity

    return term(10 * ve), 10 * term(ve), 100 * term(ve), 1e-7


def misprint_001_54() -> tuple[float, float, float]:
    """Proof of Theorem 5.4.2: |log re| and |ve| are at most sqrt(W0) -> sqrt(2 W0)."""
    outputs, x = rotation("A"), np.array([0.3, -0.2, 0.4])
    level = outputs.dynamics.lyapunov(x, np.zeros(3))
    return np.sqrt(x @ outputs.stiffness @ x), np.sqrt(level), np.sqrt(2 * level)


def misprint_001_58() -> tuple[Array, Array, Array]:
    """Section 5.5: Er = KP re . re -> half of it, whose slope is the law's KP (r - gamma)."""
    stiffness, error = np.diag([4.0, 4.0, 9.0, 9.0, 9.0]), np.array([0.1, -0.2, 0.3, 0.2, -0.1])

    def slope(factor: float) -> Array:
        def value(h: float, e: Array) -> float:
            return float(factor * (error + h * e) @ stiffness @ (error + h * e))

        return np.array([difference_quotient(lambda h, e=e: value(h, e)) for e in np.eye(5)])

    return stiffness @ error, slope(1.0), slope(0.5)


def test_misprints() -> None:
    check_misprints(globals())


def test_screws_are_no_distance() -> None:
    """Misprint 001-46: the length of the screw between two poses breaks the triangle inequality."""
    turned, moved = np.eye(4), np.eye(4)
    angle = np.pi - 0.01
    turned[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    moved[:3, 3] = (20.0, 0.0, 0.0)

    def length(pose: Array) -> float:
        screw = logm(pose).real
        return float(np.linalg.norm([*screw[:3, 3], screw[2, 1], screw[0, 2], screw[1, 0]]))

    assert length(turned @ moved) > length(turned) + length(moved) + 5.0


def test_full_ranks_do_not_make_a_product_regular() -> None:
    """Misprint 001-47: Gamma and d tau / dp have full rank, and their product has not."""
    numbers = replace(N, l0=0.0)
    oracle = Pinocchio(rover(numbers))
    chassis, hand = (oracle.jacobian(Q, body) for body in ("chassis", "fore"))
    tip = np.array([0.0, numbers.l4, 0.0])
    linear = hand[:3] + np.cross(hand[3:].T, tip).T
    outputs = np.vstack([chassis[:2], linear])
    lift = _lift(rover_rows(numbers.b, numbers.c)(Q))
    moved = [0, 1, 2, 5, 6, 7]  # the base and the arm; wheels move no output
    assert_close(outputs[:, [3, 4]], np.zeros((5, 2)), 1e-14)
    ranks = [np.linalg.matrix_rank(m, tol=1e-9) for m in (outputs[:, moved], lift[moved])]
    assert ranks == [5, 5]
    assert np.linalg.matrix_rank(outputs @ lift, tol=1e-9) == 4
    # With the point beside the axle all of them are regular.
    aside = outputs + np.vstack([np.outer([0.0, 0.2], chassis[5]), np.zeros((3, 8))])
    assert np.linalg.matrix_rank(aside @ lift, tol=1e-9) == 5


def test_product_of_norms_bounds_another_quantity() -> None:
    """Misprint 001-49: W1 W2 leaves the metrics KP and I aside, W12 does not."""
    outputs = rotation("A")
    x = np.array([0.6, 0.0, 0.8])  # 1 rad
    ve = error_maps(x[None])[0].T @ outputs.stiffness @ x
    term = x @ outputs.stiffness @ error_maps(x[None])[0] @ ve
    ratio = term / np.sqrt((x @ outputs.stiffness @ x) * (ve @ ve))
    spread = 0.5 / np.sin(0.5)  # norm of B at 1 rad; Ad of a rotation has norm 1
    assert ratio > 1.9 * spread
    assert ratio <= np.sqrt(4.0) * spread
