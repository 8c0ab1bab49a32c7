"""Lift and reduced dynamics of every kind of robot: rows and KKT systems of the full robot.

The wheels' rows are the velocities of material points at the contacts, by Pinocchio's Jacobians.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.contract._outputs import transport
from tests.contract._robots import LAWS, case
from tests.oracles import assert_close, difference_quotient

ON_WHEELS = ("rover", "swerve", "car", "tricycle", "mecanum", "manipulator", "trailers")


@pytest.mark.parametrize("name", LAWS)
def test_lift_is_all_that_rows_and_momentum_leave(name: str) -> None:
    one, rng = case(name), np.random.default_rng(3)
    model, twin = one.model, one.twin
    for _ in range(3):
        q, s = one.state(rng)
        lift, drift = model.lift(q)
        v = model.velocity(q, s)
        assert_close(lift @ s + drift, v, 1e-12, 1e-3, "v = H s + h")
        rows, _ = twin.constraints(q, v)
        assert_close(rows @ lift, np.zeros((len(rows), model.ns)), 1e-12, name="C H")
        assert_close(rows @ drift, np.zeros(len(rows)), 1e-12, name="C h")
        base = one.robot.bodies[0]
        if base.joint.nv and name not in ON_WHEELS:
            moves = transport(twin.pose(q, base.name)) @ twin.jacobian(q, base.name)
            dual = moves[:, : base.joint.nv].T @ twin.momentum_rows(q)
            wanted = moves[:, : base.joint.nv].T @ np.array(one.momentum or np.zeros(6))
            assert_close(dual @ v, wanted, 1e-11, name="momentum")
            rows = np.vstack([rows, dual])
        assert np.linalg.matrix_rank(rows, tol=1e-9) == one.robot.nv - model.ns
        assert np.linalg.matrix_rank(lift) == model.ns


@pytest.mark.parametrize("name", LAWS)
def test_reduced_acceleration_is_that_of_the_kkt_system(name: str) -> None:
    one, rng = case(name), np.random.default_rng(4)
    model, twin, robot = one.model, one.twin, one.robot
    q, s = one.state(rng)
    v, u = model.velocity(q, s), rng.normal(size=model.nu)
    full = twin.acceleration(q, v, u)
    found = model.acceleration(q, s, u)
    moved = difference_quotient(
        lambda h: model.velocity(robot.integrate(q, h * v), s + h * found), 1e-3
    )
    assert_close(moved, full, 1e-9, name="vdot")
    lift, _ = model.lift(q)
    mass = lift.T @ twin.mass_matrix(q) @ lift
    assert_close(model.mass_matrix(q), mass, 1e-12, 1e-3, "reduced mass matrix")
    work = lift.T @ twin.actuation() @ u
    assert_close(mass @ found + model.bias(q, s), work, 1e-9, name="reduced equation")
