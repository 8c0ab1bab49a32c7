"""Free and rotating rigid bodies in body, spatial and hybrid velocities: source 003, section 6.

Twists are [angular; linear] in this file, as in the source.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from tests.groups.oracles import cross_matrix
from tests.oracles import assert_close, boltzmann_hamel, difference_quotient
from tests.sources._charts import body_rates, rotation
from tests.sources._misprints import check_misprints

Array = np.ndarray
O3, I3 = np.zeros((3, 3)), np.eye(3)
MASS, D = 2.3, np.array([0.1, -0.2, 0.15])
CENTRAL = np.array([[1.1, 0.05, -0.04], [0.05, 1.3, 0.06], [-0.04, 0.06, 1.7]])
THETA = CENTRAL - MASS * cross_matrix(D) @ cross_matrix(D)


def _numbers(text: str) -> Array:
    return np.array(text.split(), dtype=float)


def _turn() -> Array:
    def about(axis: int, angle: float) -> Array:
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[[i, j], [i, j]] = np.cos(angle)
        turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
        return turn

    return about(2, 0.3) @ about(1, -0.7) @ about(0, 1.1)


TURN, PLACE = _turn(), np.array([0.4, -0.9, 1.7])
BODY = _numbers("0.5 -1.2 0.8 0.3 0.7 -0.4")
WRENCH = _numbers("0.2 -0.1 0.4 1.5 -0.6 0.9")
RATES = {
    "body": _numbers(
        "0.573853863092705 -0.007237503460072 0.221934355724301"
        " 0.716872667417629 -0.610984921325916 -0.183148629901379"
    ),
    "spatial": _numbers(
        "0.42073921480537 -0.08032300234936 0.44174905128598"
        " 0.68269220476442 0.71124021347553 0.32835101416913"
    ),
    "hybrid": _numbers(
        "0.420739214805374 -0.080323002349364 0.441749051285975"
        " 0.57373363055483 -0.395192729528697 0.476515930161103"
    ),
}
"""Accelerations under the wrench, by two routes outside the package."""


def mass(theta: Array, d: Array) -> Array:
    """(85), (94), (114)."""
    return np.block([[theta, MASS * cross_matrix(d)], [-MASS * cross_matrix(d), MASS * I3]])


def ad(v: Array) -> Array:
    return np.block([[cross_matrix(v[:3]), O3], [cross_matrix(v[3:]), cross_matrix(v[:3])]])


def adjoint(turn: Array, r: Array) -> Array:
    return np.block([[turn, O3], [cross_matrix(r) @ turn, turn]])


def both(turn: Array) -> Array:
    return np.block([[turn, O3], [O3, turn]])


X = TURN @ D + PLACE  # centre of mass from the origin of the world
TURNED = TURN @ CENTRAL @ TURN.T
SPATIAL = adjoint(TURN, PLACE) @ BODY
HYBRID = both(TURN) @ BODY
W, S = SPATIAL[:3], SPATIAL[3:]


@cache
def _boltzmann_hamel() -> dict[str, Array]:
    """udot of (14) for the three velocities, from the kinetic energy in one chart."""
    phi, r = ca.SX.sym("phi", 3), ca.SX.sym("r", 3)
    q, u, udot = ca.vertcat(phi, r), ca.SX.sym("u", 6), ca.SX.sym("udot", 6)
    turn, omega, zero = rotation(phi), body_rates(phi), ca.SX(3, 3)
    left = ca.diagcat(omega, turn.T)
    spatial = turn @ omega
    right = ca.vertcat(ca.horzcat(spatial, zero), ca.horzcat(ca.skew(r) @ spatial, ca.SX.eye(3)))
    mixed = ca.diagcat(spatial, ca.SX.eye(3))

    def kinetic(_: ca.SX, qdot: ca.SX) -> ca.SX:
        twist = left @ qdot
        return twist.T @ ca.DM(mass(THETA, D)) @ twist / 2

    at = np.concatenate([Rotation.from_matrix(TURN).as_rotvec(), PLACE])
    wrenches = {
        "body": WRENCH,
        "spatial": np.linalg.inv(adjoint(TURN, PLACE)).T @ WRENCH,
        "hybrid": both(TURN) @ WRENCH,
    }
    twists = {"body": BODY, "spatial": SPATIAL, "hybrid": HYBRID}
    found = {}
    for name, forms in (("body", left), ("spatial", right), ("hybrid", mixed)):
        side = boltzmann_hamel(q, kinetic, forms, ca.solve(forms, ca.SX.eye(6)))(u, udot)
        rest = ca.substitute(side, udot, ca.SX.zeros(6))
        f = ca.Function("f", [q, u], [ca.jacobian(side, udot), rest])
        matrix, bias = map(np.array, f(at, twists[name]))
        found[name] = np.linalg.solve(matrix, wrenches[name] - bias[:, 0])
    return found


def test_boltzmann_hamel_on_a_chart() -> None:
    """As (14) with the numbers above. 003: (39)-(41), (86)-(93), (96)-(113), (115)-(124)."""
    for name, found in _boltzmann_hamel().items():
        assert_close(found, RATES[name], 1e-13, name=name)


def test_newton_euler_of_the_body() -> None:
    """003: (86)-(93)."""
    w, v, wdot, vdot = *np.split(BODY, 2), *np.split(RATES["body"], 2)
    inertia = mass(THETA, D)
    momentum = inertia @ BODY
    assert_close(momentum[:3], THETA @ w + MASS * np.cross(D, v), 1e-14)
    assert_close(momentum[3:], MASS * (v + np.cross(w, D)), 1e-14)
    moment = THETA @ wdot + np.cross(w, THETA @ w) + MASS * np.cross(D, vdot + np.cross(w, v))
    force = MASS * (vdot + np.cross(w, v) + np.cross(wdot, D) + np.cross(w, np.cross(w, D)))
    assert_close(np.concatenate([moment, force]), WRENCH, 1e-13)
    assert_close(inertia @ RATES["body"] - ad(BODY).T @ momentum, WRENCH, 1e-13)
    # (86), (87): brackets with the momenta by components
    moment = inertia[:3] @ RATES["body"] + np.cross(w, momentum[:3]) + np.cross(v, momentum[3:])
    assert_close(moment, WRENCH[:3], 1e-13)


def test_newton_euler_in_space() -> None:
    """003: (94) to (113); the coefficients of the spatial twist leave d/dt of the momentum."""
    wdot, sdot = np.split(RATES["spatial"], 2)
    theta = TURNED - MASS * cross_matrix(X) @ cross_matrix(X)
    wrench = np.linalg.inv(adjoint(TURN, PLACE)).T @ WRENCH
    moment = theta @ wdot + np.cross(W, theta @ W) + MASS * np.cross(X, sdot + np.cross(W, S))
    force = MASS * (sdot + np.cross(W, S) + np.cross(wdot, X) + np.cross(W, np.cross(W, X)))
    assert_close(np.concatenate([moment, force]), wrench, 1e-13)  # (110), (111)
    inertia = mass(theta, X)
    assert_close(inertia @ RATES["spatial"] - ad(SPATIAL).T @ inertia @ SPATIAL, wrench, 1e-13)

    # (98), Remark 8: rates along the motion
    def moved(h: float) -> Array:
        g = _exp(SPATIAL, h)
        turn, place = g[:3, :3] @ TURN, g[:3, :3] @ PLACE + g[:3, 3]
        at = turn @ D + place
        return mass(turn @ CENTRAL @ turn.T - MASS * cross_matrix(at) @ cross_matrix(at), at)

    rate = difference_quotient(moved)
    assert_close(rate, -inertia @ ad(SPATIAL) - ad(SPATIAL).T @ inertia, 1e-9)
    assert_close(rate @ SPATIAL + inertia @ RATES["spatial"], wrench, 1e-9)  # (113)
    assert_close(S + np.cross(W, PLACE), HYBRID[3:], 1e-14)  # (98)
    # (100), (105): slopes of the energy
    assert_close(
        difference_quotient(lambda h: _energy(dw=h)), theta @ W + MASS * np.cross(X, S), 1e-9
    )
    p = MASS * (S + np.cross(W, X))
    assert_close(difference_quotient(lambda h: _energy(dr=h)), -np.cross(W, p), 1e-9)
    along = -np.cross(W, TURNED @ W) + np.cross(TURN @ D, np.cross(p, W))
    assert_close(difference_quotient(lambda h: _energy(turn=h)), along, 1e-9)  # (104)
    # A right-invariant energy, with constant inertia of spatial twists: the other sign.
    dl = along + np.cross(PLACE, -np.cross(W, p))
    assert_close((ad(SPATIAL).T @ inertia @ SPATIAL)[:3], dl, 1e-13)


def _exp(twist: Array, h: float) -> Array:
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = cross_matrix(twist[:3]), twist[3:]
    return np.asarray(expm(h * matrix))


def _energy(dw: float = 0.0, dr: float = 0.0, turn: float = 0.0) -> Array:
    """T of the spatial twist, varied along each axis."""
    values = []
    for e in I3:
        g = _exp(np.concatenate([e, np.zeros(3)]), turn)[:3, :3] @ TURN
        x = g @ D + PLACE + dr * e
        v = SPATIAL + np.concatenate([dw * e, np.zeros(3)])
        values.append(
            v @ mass(g @ CENTRAL @ g.T - MASS * cross_matrix(x) @ cross_matrix(x), x) @ v / 2
        )
    return np.array(values)


def test_newton_euler_of_the_hybrid_twist() -> None:
    """003: (114) to (124)."""
    wdot, rddot = np.split(RATES["hybrid"], 2)
    theta, d = TURN @ THETA @ TURN.T, TURN @ D
    moment = theta @ wdot + np.cross(W, theta @ W) + MASS * np.cross(d, rddot)
    force = MASS * (rddot + np.cross(wdot, d) + np.cross(W, np.cross(W, d)))
    assert_close(np.concatenate([moment, force]), both(TURN) @ WRENCH, 1e-13)
    # (117), (118): rates of the offset and of the inertia in world axes, here of a rotation.
    turned = difference_quotient(lambda h: _exp(np.concatenate([W, np.zeros(3)]), h)[:3, :3] @ d)
    assert_close(turned, np.cross(W, d), 1e-9)
    # Accelerations of the three forms are one.
    w, v = np.split(BODY, 2)
    assert_close(rddot, TURN @ (RATES["body"][3:] + np.cross(w, v)), 1e-13)
    rdot = HYBRID[3:]
    sdot = rddot - np.cross(wdot, PLACE) - np.cross(W, rdot)
    assert_close(sdot, RATES["spatial"][3:], 1e-13)


def test_rotating_body() -> None:
    """003: (56) to (67); fixed point, body and spatial angular velocity."""
    omega, theta = np.array([1.0, 2.0, 3.0]), np.diag([1.0, 2.0, 3.0])
    rate = np.linalg.solve(theta, -np.cross(omega, theta @ omega))
    assert_close(rate, np.array([-6, 3, -2 / 3]), 1e-15)
    # In space: Theta_s wdot + w x Theta_s w = 0 and Theta_s w is constant (66), (67).
    spatial, w = TURN @ theta @ TURN.T, TURN @ omega
    assert_close(spatial @ TURN @ rate + np.cross(w, spatial @ w), np.zeros(3), 1e-14)

    def turned(h: float) -> Array:
        g = _exp(np.concatenate([w, np.zeros(3)]), h)[:3, :3]
        return g @ spatial @ g.T

    slope = difference_quotient(turned)
    assert_close(slope, cross_matrix(w) @ spatial - spatial @ cross_matrix(w), 1e-9)
    assert_close(slope @ w, np.cross(w, spatial @ w), 1e-9)  # (62)
    # (64): slope of the energy along a spatial rotation
    for i, e in enumerate(I3):

        def energy(h: float, e: Array = e) -> float:
            g = _exp(np.concatenate([e, np.zeros(3)]), h)[:3, :3]
            return float(w @ g @ spatial @ g.T @ w / 2)

        assert_close(difference_quotient(energy), -np.cross(w, spatial @ w)[i], 1e-9)


# --- Misprints ------------------------------------------------------------------------------


def _centre_velocity() -> Array:
    """Velocity of the centre of mass, from poses."""

    def at(h: float) -> Array:
        g = _exp(SPATIAL, h)
        return g[:3, :3] @ X + g[:3, 3]

    return difference_quotient(at)


def misprint_003_10() -> tuple[Array, Array, Array]:
    """Section 6.2.1: v^c = v^b - omega~ d -> v^b + omega~ d."""
    w, v = np.split(BODY, 2)
    truth = TURN.T @ _centre_velocity()
    return truth, v - np.cross(w, D), v + np.cross(w, D)


def misprint_003_11() -> tuple[float, float, float]:
    """(85), second line: m omega^T d~ without v; (93): T = Pi V / 2 means Pi^T V / 2."""
    w, v = np.split(BODY, 2)
    centre = _centre_velocity()
    truth = w @ CENTRAL @ w / 2 + MASS * centre @ centre / 2
    common = w @ THETA @ w / 2 + MASS * v @ v / 2
    return (
        truth,
        common + MASS * (w @ cross_matrix(D)).sum(),
        common + MASS * w @ cross_matrix(D) @ v,
    )


def misprint_003_12() -> tuple[Array, Array, Array]:
    """Section 6.3.1: v^s = rdot - r~ omega -> rdot + r~ omega."""
    turned, rdot = np.cross(PLACE, W), HYBRID[3:]
    truth = difference_quotient(lambda h: _exp(SPATIAL, h)[:3, 3])
    return truth, rdot - turned, rdot + turned


def misprint_003_12_pose() -> tuple[Array, Array, Array]:
    """(78): upper right block of dC C^-1 dr R^T -> dr - dtheta~ r."""
    rdot = HYBRID[3:]
    return S, rdot @ TURN.T, rdot - np.cross(W, PLACE)


def misprint_003_13() -> tuple[Array, Array, Array]:
    """Section 6.3.1: velocity of the centre of mass v + (d~ + r~) omega~ -> v - (d~ + r~) omega."""
    return _centre_velocity(), S + cross_matrix(X) @ W, S - cross_matrix(X) @ W


def misprint_003_14() -> tuple[Array, Array, Array]:
    """Below (94): Theta^s = Theta^c - m (d~ + r~) -> Theta^c - m (d~ + r~) (d~ + r~)."""
    back = np.linalg.inv(adjoint(TURN, PLACE))
    truth = (back.T @ mass(THETA, D) @ back)[:3, :3]
    return truth, TURNED - MASS * cross_matrix(X), TURNED - MASS * cross_matrix(X) @ cross_matrix(X)


EPS = np.stack(
    [cross_matrix(e) for e in I3], axis=1
)  # eps_ijk: column of cross_matrix(e_j) along e_k


def _momentum_rate() -> Array:
    """d/dt dT/domega of the spatial twist by the inertia's rate."""
    theta = TURNED - MASS * cross_matrix(X) @ cross_matrix(X)
    inertia = mass(theta, X)
    rate = -inertia @ ad(SPATIAL) - ad(SPATIAL).T @ inertia
    return rate @ SPATIAL + inertia @ RATES["spatial"]


def misprint_003_15() -> tuple[Array, Array, Array]:
    """(102), (108): eps_jlr omega_l v_r -> eps_klr omega_l v_r."""
    wdot, sdot = np.split(RATES["spatial"], 2)
    theta = TURNED - MASS * cross_matrix(X) @ cross_matrix(X)
    common = theta @ wdot + np.cross(W, theta @ W) + MASS * np.cross(X, sdot)
    printed = MASS * np.einsum("ijk,j,jlr,l,r->i", EPS, X, EPS, W, S)
    right = MASS * np.einsum("ijk,j,klr,l,r->i", EPS, X, EPS, W, S)
    return _momentum_rate()[:3], common + printed, common + right


def misprint_003_16() -> tuple[Array, Array, Array]:
    """(105): eps_ikl omega_i v_j -> eps_ikj omega_i v_j."""
    truth = difference_quotient(lambda h: _energy(dr=h))
    second = MASS * np.einsum("i,ikl,lrj,r,j->k", W, EPS, EPS, X, W)
    printed = MASS * np.einsum("ikl,i,j->k", EPS, W, S) - second
    return truth, printed, MASS * np.einsum("ikj,i,j->k", EPS, W, S) - second, 1e-8


def misprint_003_16_identity() -> tuple[Array, Array, Array]:
    """Before (105): last term eps_lrj eps_lkr -> eps_ilj eps_lrk."""
    truth = np.einsum("ikl,lrj->ikrj", EPS, EPS) + np.einsum("irl,lkj->ikrj", EPS, EPS)
    twice = 2 * np.einsum("ikl,lrj->ikrj", EPS, EPS)
    printed = twice + np.einsum("lrj,lkr->krj", EPS, EPS)[None]
    return truth, printed, twice + np.einsum("ilj,lrk->ikrj", EPS, EPS)


def misprint_003_17() -> tuple[Array, Array, Array]:
    """(106): left side dT/dv -> d/dt dT/dv."""
    wdot, sdot = np.split(RATES["spatial"], 2)
    right = MASS * (sdot + np.cross(wdot, X) + np.cross(W, S + np.cross(W, X)))
    inertia = mass(TURNED - MASS * cross_matrix(X) @ cross_matrix(X), X)
    return right, (inertia @ SPATIAL)[3:], _momentum_rate()[3:]


def misprint_003_17_energy() -> tuple[Array, Array, Array]:
    """(103), first line: (m / 2) of the term in v -> m, and terms of the offset."""
    d = TURN @ D
    truth = difference_quotient(lambda h: _energy(turn=h))
    rotated = np.array(
        [W @ (cross_matrix(e) @ TURNED - TURNED @ cross_matrix(e)) @ W / 2 for e in I3]
    )
    in_v = np.array([W @ np.cross(np.cross(e, d), S) for e in I3])
    offset = np.array([-W @ np.cross(X, np.cross(np.cross(e, d), W)) for e in I3])
    return truth, rotated + MASS * in_v / 2, rotated + MASS * (in_v + offset), 1e-8


def misprint_003_19() -> tuple[Array, Array, Array]:
    """(122), (124): the moment is about the body's origin, not about the world's as in (108)."""
    wdot, rddot = np.split(RATES["hybrid"], 2)
    theta, d = TURN @ THETA @ TURN.T, TURN @ D
    truth = theta @ wdot + np.cross(W, theta @ W) + MASS * np.cross(d, rddot)
    spatial = np.linalg.inv(adjoint(TURN, PLACE)).T @ WRENCH
    return truth, spatial[:3], spatial[:3] - np.cross(PLACE, spatial[3:])


def misprint_003_21() -> tuple[Array, Array, Array]:
    """(90), first line: eps_krs omega_s v_r -> eps_krs omega_r v_s."""
    w, v, wdot, vdot = *np.split(BODY, 2), *np.split(RATES["body"], 2)
    rest = THETA @ wdot + np.cross(w, THETA @ w)
    printed = rest + MASS * np.cross(D, vdot - np.cross(w, v))
    return WRENCH[:3], printed, rest + MASS * np.cross(D, vdot + np.cross(w, v))


def misprint_003_22() -> tuple[Array, Array, Array]:
    """(72), first line: E_j E_i - E_i E_j -> E_i E_j - E_j E_i."""
    e = np.zeros((6, 4, 4))
    e[:3, :3, :3] = [cross_matrix(x) for x in I3]
    e[3:, :3, 3] = I3
    c = np.stack([ad(x) for x in np.eye(6)], axis=1)
    truth = np.einsum("kij,kab->ijab", c, e)
    product = np.einsum("iac,jcb->ijab", e, e)
    bracket = product - product.transpose(1, 0, 2, 3)
    return truth, -bracket, bracket


def misprint_003_23() -> tuple[Array, Array, Array]:
    """(40), (41) lower sign: spatial Pi of a right-invariant energy has + ad^T, not (112)'s -."""
    g = np.diag([1.0, 2.0, 3.0, 1.5, 0.7, 0.4])
    c = adjoint(TURN, PLACE)
    momentum = g @ SPATIAL  # Ad_C^T Pi is constant, so that Pidot = -ad_V^T Pi
    step = 1e-4

    def carried(h: float) -> Array:
        moved = _exp(SPATIAL, h)
        now = adjoint(moved[:3, :3], moved[:3, 3]) @ c
        return np.linalg.solve(now.T, c.T @ momentum)

    truth = difference_quotient(carried, 10 * step)
    return truth, ad(SPATIAL).T @ momentum, -ad(SPATIAL).T @ momentum


def misprint_003_25() -> tuple[Array, Array, Array]:
    """Below (101): the summary lacks a factor: -m omega x (x~ omega) -> ... x (x x (x x omega))."""
    cross = np.cross
    wdot, sdot = np.split(RATES["spatial"], 2)
    theta = TURNED - MASS * cross_matrix(X) @ cross_matrix(X)
    common = theta @ wdot + cross(W, TURNED @ W) + MASS * cross(X, sdot + cross(W, S))
    printed = common - MASS * np.einsum("ikl,lsp,prj,k,s,j->i", EPS, EPS, EPS, W, X, W)
    return _momentum_rate()[:3], printed, common - MASS * cross(W, cross(X, cross(X, W)))


def test_misprints() -> None:
    check_misprints(globals())
