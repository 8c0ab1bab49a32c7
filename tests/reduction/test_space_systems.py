"""Hamel's equations of floating systems, a satellite with wheels and a planar floater.

After A. Mueller, Proc. R. Soc. A 479 (2023), with its slips mended: the equations of section 5
as another formulation, and the examples of sections 5f and 6 with numbers of our own, which two
independent integrations outside this package agreed on. The paper has twists angular first and
the curvature with the other sign: its B_IJ is -B(e_I, e_J) here.
"""

from __future__ import annotations

import numpy as np
import pytest

import concur as cc
from concur.reduction import MomentumReduction
from concur.robot import Mechanism
from tests.oracles import assert_close, difference_quotient
from tests.reduction._floaters import FullOrder, ad, reduced, skew


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


# --- Hamel's equations in locked velocity and shape -------------------------------------------


def test_equations_in_the_locked_velocity() -> None:
    """000: (1.1)-(1.3), (5.12), (5.13)."""
    # (5.12) and (5.13); the joints have one freedom each, the frame is one of coordinates.
    robot = cc.robots.free_flyer()
    full, nb, ns = FullOrder(robot), 6, 6
    rng = np.random.default_rng(5)
    for _ in range(3):
        mu = rng.uniform(-20.0, 20.0, 6)
        model = reduced(robot, mu)
        q, rdot = robot.random(rng), rng.uniform(-1.0, 1.0, ns)
        force, torque = rng.uniform(-5.0, 5.0, nb), rng.uniform(-5.0, 5.0, ns)
        momentum = full.body_momentum(q, mu)
        locked, connection, metric = full.blocks(q)
        omega = np.linalg.solve(locked, momentum)

        def slopes(index: int, q: np.ndarray = q) -> np.ndarray:
            """d/dr of the locked inertia, the connection or the reduced metric."""
            units = np.eye(nb + ns)[nb:]
            return np.array(
                [
                    difference_quotient(
                        lambda h, e=e: full.blocks(q + h * full.rate(q, e))[index], 2e-3
                    )
                    for e in units
                ]
            )

        dl, da, dm = slopes(0), slopes(1), slopes(2)
        mixed = [ad(e) @ connection for e in np.eye(nb)]  # E_aI = [e_a, A_I]
        body_rate = np.array(
            [momentum @ (mixed[a] @ rdot - ad(np.eye(nb)[a]) @ omega) for a in range(nb)]
        )
        rates = np.zeros(ns)
        for i in range(ns):
            curvature = np.array(
                [
                    da[j][:, i] - da[i][:, j] + ad(connection[:, i]) @ connection[:, j]
                    for j in range(ns)
                ]
            ).T
            turned = sum(omega[a] * mixed[a][:, i] for a in range(nb))
            rates[i] = (
                omega @ dl[i] @ omega / 2
                + rdot @ dm[i] @ rdot / 2
                - momentum @ (curvature @ rdot + turned)
            )
        rates += torque - connection.T @ force
        v, pi_rate, pdot = model.hamilton_poincare(q, momentum, metric @ rdot, torque, force)
        assert_close(pi_rate, body_rate + force, 1e-10)
        assert_close(pdot, rates, 1e-8)
        # The body's velocity is the locked one less what the shape takes: never integrate omega.
        assert_close(v[:nb], omega - connection @ rdot, 1e-11)
        # The same in compact form: L Omegadot + Ldot Omega = ad_xi^T Pi + F.
        assert_close(pi_rate, ad(v[:nb]).T @ momentum + force, 1e-10)


# --- satellite with three wheels --------------------------------------------------------------

AXIAL, TRANSVERSE, WHEEL, ARM = 8e-4, 4e-4, 0.3, 0.1
TOTAL = 2.0 + 3 * WHEEL
CENTRE = WHEEL * ARM / TOTAL * np.ones(3)


def _about_the_centre() -> np.ndarray:
    """Inertia of the whole satellite about its centre of mass."""
    inertia = np.diag([0.012, 0.014, 0.016])
    for i in range(3):
        place = ARM * np.eye(3)[i]
        own = np.diag(np.where(np.arange(3) == i, AXIAL, TRANSVERSE))
        inertia = inertia + own - WHEEL * skew(place) @ skew(place)
    return inertia + TOTAL * skew(CENTRE) @ skew(CENTRE)


@pytest.fixture(scope="module")
def satellite() -> Mechanism:
    return cc.robots.wheel_satellite()


def test_satellite_has_the_connection_of_a_gyrostat(satellite: Mechanism) -> None:
    """000: (5.26)-(5.36)."""
    model = reduced(satellite)
    angular = np.linalg.solve(_about_the_centre(), AXIAL * np.eye(3))
    expected = np.vstack([skew(CENTRE) @ angular, angular])
    rng = np.random.default_rng(1)
    for q in (satellite.neutral(), satellite.random(rng), satellite.random(rng)):
        assert_close(model.connection(q), expected, 1e-13, floor=0.01)
        metric = AXIAL * np.eye(3) - AXIAL * angular
        assert_close(model.mass_matrix(q), metric, 1e-12, floor=1e-4)
        assert_close(
            np.diag(model.mass_matrix(q)),
            numbers("7.662637e-4 7.694805e-4 7.721373e-4"),
            1e-6,
            floor=1e-4,
        )
        first, second = np.eye(3)[:2]
        turned = np.cross(angular[:, 0], angular[:, 1])
        curvature = np.concatenate([np.cross(CENTRE, turned), turned])
        ours = -model.curvature(q, first, second)
        assert_close(ours, curvature, 1e-12, floor=1e-3)
        assert_close(
            ours,
            numbers("1.6414e-5 -1.6414e-5 0 2.172205159e-5 2.172205159e-5 1.608397242e-3"),
            2e-7,
            floor=1e-3,
        )


def test_satellite_moves_as_a_gyrostat(satellite: Mechanism) -> None:
    """000: (5.15)-(5.25)."""
    mu = np.array([0.3, -0.2, 0.5, 0.02, -0.01, 0.03])
    model = reduced(satellite, mu)
    inertia = _about_the_centre()
    turning = np.linalg.solve(inertia, AXIAL * np.eye(3))
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, s = satellite.random(rng), rng.uniform(-30.0, 30.0, 3)
        torque = rng.uniform(-0.1, 0.1, 3)
        omega = model.velocity(q, s)[3:6]
        momentum = inertia @ omega + AXIAL * s  # about the centre of mass, body axes
        gyroscopic = turning.T @ np.cross(momentum, omega)
        expected = np.linalg.solve(AXIAL * (np.eye(3) - turning), torque - gyroscopic)
        assert_close(model.acceleration(q, s, torque), expected, 1e-10)


"""Momentum of the turning wheels when the satellite itself is at rest."""


# --- planar floater ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planar() -> MomentumReduction:
    return reduced(cc.robots.planar_floater())


def _at(first: float, second: float) -> np.ndarray:
    return np.array([0.3, -0.7, 1.1, first, second])


def test_planar_connection_and_metric(planar: MomentumReduction) -> None:
    """000: (5.3)-(5.5)."""
    q = _at(0.5, -0.8)
    rows = np.array(
        [
            [-0.02353537617, 0.009964453231],
            [0.024594894827, 0.002709764475],
            [0.37776833803, 0.089819298441],
        ]
    )
    assert_close(planar.connection(q), rows, 1e-11)
    metric = [[0.27938875872, 0.078980240542], [0.078980240542, 0.069674465343]]
    assert_close(planar.mass_matrix(q), metric, 1e-11)


@pytest.mark.parametrize(
    ("angles", "printed"), [((0.5, -0.8), 0.0211705941892), ((0.6, 0.9), -0.0351056766622)]
)
def test_planar_curvature(
    planar: MomentumReduction, angles: tuple[float, float], printed: float
) -> None:
    first, second = np.eye(2)
    assert -planar.curvature(_at(*angles), first, second)[2] == pytest.approx(printed, abs=1e-12)
    # Odd in the angles: every joint and every centre of mass is on one line at zero.
    mirrored = _at(-angles[0], -angles[1])
    assert planar.curvature(mirrored, first, second)[2] == pytest.approx(printed, abs=1e-12)
    assert planar.curvature(_at(0.0, 0.0), first, second)[2] == pytest.approx(0.0, abs=1e-15)
