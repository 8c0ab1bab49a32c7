"""Example 4.6.2 as printed: what of it cannot be, and what is right instead.

The closed forms of the example are held against the package in tests/reduction/test_crane.py,
tests/reduction/test_stages.py and tests/robot/test_crane_car.py. They are the corrected ones:

==================================================  ==============================================
printed                                             right
==================================================  ==============================================
factor of the curvature l/(l - c sin psi1)^2        minus that
l2/2 of the column's centre in the y slot, and l2   z slot
of the boom's joint too
w3, w4: (l sin psi1 -+ c) stands alone              (l sin psi1 -+ c) dtheta
boom's group Q^5_6, its place H^5_6                 Q^3_6, H^3_6: the column carries it
fields of the distribution with 1/cos psi1          regular at psi1 = +-pi/2; only l = c sin psi1
                                                    is singular
second connection "mechanical"                      that of the reduced metric, not of M
iota_zeta Xi = 0 "since phat1 is invariant"         holds for the column, not for a wheel's angle
==================================================  ==============================================
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from concur.reduction import ReducedModel, conservation, reduce
from concur.robot import Inertia, Mechanism, Pose
from tests.oracles import CraneNumbers, Pinocchio, crane, crane_rows, difference_quotient
from tests.reduction.test_crane import Q0, S0, SHAPE, V0, connection, upsilon

N = CraneNumbers()
DEPENDENT = [0, 1, 2, 6]


@pytest.fixture(scope="module")
def model() -> ReducedModel:
    return reduce(crane(undriven="right"))


def test_curvature_has_a_minus(model: ReducedModel) -> None:
    """Misprint 001-37."""
    # B_12 = dA_2 / dpsi1, A from the one-forms by hand.
    rows = crane_rows(N.l, N.b, N.c)

    def second(h: float) -> np.ndarray:
        at = rows(Q0 + h * np.eye(8)[3])
        return np.linalg.solve(at[:, DEPENDENT], at[:, 5])

    psi1 = Q0[3]
    printed = [N.b * (N.c - N.l * np.sin(psi1)), 0.0, N.b * np.cos(psi1), 2 * N.c * np.cos(psi1)]
    printed = N.l / (N.l - N.c * np.sin(psi1)) ** 2 * np.array(printed)
    np.testing.assert_allclose(difference_quotient(second), -printed, rtol=0, atol=1e-9)
    oracle = Pinocchio(model.robot)
    momentum = (oracle.mass_matrix(Q0) @ V0)[DEPENDENT]
    order = [model.shape.index(i) for i in SHAPE]
    s = np.zeros(4)
    s[order] = S0
    form = model.two_form(Q0, model.mass_matrix(Q0) @ s)[order[0], order[1]]
    assert form == pytest.approx(-momentum @ printed, rel=1e-9)
    assert form == pytest.approx(upsilon(Q0, S0), rel=1e-9)


@pytest.mark.parametrize("part", ["column", "boom"])
def test_heights_belong_in_the_third_place(part: str) -> None:
    """Misprint 001-38."""
    robot = crane()
    bodies = list(robot.bodies)
    k = robot.index(part)
    if part == "column":
        bodies[k] = replace(bodies[k], inertia=Inertia(N.m[2], (0.0, N.l2 / 2, 0.0), N.j[2]))
    else:
        bodies[k] = replace(bodies[k], placement=Pose((0.0, N.l2, 0.0)))
    printed = Mechanism("printed", bodies, robot.wheels)
    # The printed K has no entry between vx and the angle of the crane: S is all there is.
    for at, same in ((robot, True), (printed, False)):
        mass = Pinocchio(at).mass_matrix(Q0)
        crossed = np.abs(mass[[0, 1], 4]).max()
        assert (crossed < 1e-12) == same
        assert (abs(mass[2, 2] - N.turning(Q0[7])) < 1e-9) == same


def test_rows_of_the_wheels_turn_with_the_car(model: ReducedModel) -> None:
    robot, rows = model.robot, crane_rows(N.l, N.b, N.c)(Q0)
    np.testing.assert_allclose(rows @ V0, 0.0, atol=1e-9)
    names = [f"{wheel}: rolling" for wheel in ("left", "right")]
    ours = robot.constraints(Q0)[[robot.constraint_names.index(name) for name in names]]
    np.testing.assert_allclose(ours, rows[2:], rtol=0, atol=1e-14)
    arms = N.l * np.sin(Q0[3]) + np.array([-N.c, N.c])
    np.testing.assert_allclose(ours[:, 2], arms, rtol=0, atol=1e-14)


def test_only_one_steering_angle_is_singular() -> None:
    """Misprint 001-42."""
    wide = replace(N, c=2.7)  # wider than long: otherwise no such place exists
    model = replace(reduce(crane(wide)), dependent=tuple(DEPENDENT), shape=(3, 4, 5, 7))
    q = Q0.copy()
    q[3] = np.arcsin(wide.l / wide.c)
    assert model.regularity(q) < 1e-9
    for regular in (np.pi / 2, -np.pi / 2):
        q[3] = regular
        assert model.regularity(q) > 1e-3
        assert np.isfinite(model.lift(q)[0]).all()


def test_second_connection_is_that_of_the_reduced_metric() -> None:
    """Misprint 001-43."""
    model = reduce(crane(undriven="column"), stages=["column"])
    first, names = model.first, model.shape_names
    column, others = 4, [first.robot.v_slice(name).start for name in names]
    # Without wheels no joint would move the column: those entries of M are zero.
    np.testing.assert_allclose(
        Pinocchio(first.robot).mass_matrix(Q0)[column, others], 0, atol=1e-12
    )
    row = model.lift(Q0)[0][column]
    wheel = "left" if "left" in names else "right"
    sign = 1.0 if wheel == "left" else -1.0
    distance = N.l - sign * N.c * np.sin(Q0[3])
    expected = -np.sin(Q0[3]) / distance
    assert row[names.index("axle")] == pytest.approx(sign * N.c * expected, rel=1e-12)
    assert row[names.index(wheel)] == pytest.approx(N.b * expected, rel=1e-12)


def test_the_two_form_has_legs_along_wheel_angles(model: ReducedModel) -> None:
    """Misprint 001-33."""
    # Both leave the reduced metric alone, and phat1 as well; only one keeps its momentum.
    column = conservation(model, "column")
    left = conservation(model, "left")
    assert max(column.metric, left.metric) < 1e-9
    assert column.form < 1e-9 < 1e-3 < left.form
    assert left.legs == ("axle",)
    expected = -connection(Q0[3])[:, 1]
    np.testing.assert_allclose(
        model.lift(Q0)[0][DEPENDENT, model.shape_names.index("left")], expected, atol=1e-13
    )
