"""Cars, mecanum base and tractor with trailers, against rows by hand and multipliers."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from concur.reduction import AuditStatus, ReducedModel, reduce
from concur.robot import Mechanism, Wheel
from tests.oracles import Constrained, Pinocchio, assert_close
from tests.oracles._kkt import Rows, car_rows, mecanum_rows, trailer_rows
from tests.reduction._reduced import Reference, torques

HITCHES, AXLES = (0.6, 0.5), (1.6, 1.6)

ROBOTS: dict[str, tuple[Mechanism, Rows]] = {
    "car_arm": (robots.car_arm(), car_rows(0.8, 0.15, 0.28, 10)),
    "mecanum_arm": (robots.mecanum_arm(), mecanum_rows(0.35, 0.3, 0.12, 14)),
    "tractor_trailers": (
        robots.tractor_trailers(),
        trailer_rows(0.3, 0.5, HITCHES, AXLES),
    ),
}


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> tuple[ReducedModel, Rows]:
    robot, rows = ROBOTS[request.param]
    return reduce(robot), rows


def test_rows_are_those_by_hand(case: tuple[ReducedModel, Rows]) -> None:
    model, rows = case
    rng = np.random.default_rng(0)
    for q in (model.robot.neutral(), *(model.robot.random(rng) for _ in range(10))):
        ours, hand = model.robot.constraints(q), rows(q)
        assert ours.shape == hand.shape
        # The same velocities are admitted, whatever the order and scale of the rows.
        lift = model.lift(q)[0]
        np.testing.assert_allclose(hand @ lift, np.zeros((len(hand), model.ns)), atol=1e-12)
        assert np.linalg.matrix_rank(hand) == model.nv - model.ns


def test_every_shape_velocity_has_its_drive(case: tuple[ReducedModel, Rows]) -> None:
    model, _ = case
    assert model.nu == model.ns
    rng = np.random.default_rng(1)
    for q in (model.robot.random(rng) for _ in range(5)):
        np.testing.assert_allclose(model.input_matrix(q), np.eye(model.ns), rtol=0, atol=1e-14)
    assert model.audit()["NHR3"].status is AuditStatus.HOLDS


def test_motion_is_that_of_the_multipliers(case: tuple[ReducedModel, Rows]) -> None:
    model, rows = case
    full = Constrained(Pinocchio(model.robot), rows)
    reference = Reference(full, model.shape, model.dependent)
    rng = np.random.default_rng(2)
    for _ in range(10):
        q, s = model.robot.random(rng), rng.uniform(-2, 2, model.ns)
        u = rng.uniform(-20, 20, model.nu)
        tau = torques(model, u)
        assert_close(model.mass_matrix(q), reference.mass_matrix(q), 1e-11)
        assert_close(model.acceleration(q, s, u), reference.acceleration(q, s, tau), 1e-9)
        assert model.hamiltonian(q, model.mass_matrix(q) @ s) == pytest.approx(
            reference.energy(q, s), rel=1e-10, abs=1e-8
        )


def test_wheels_that_skid_leave_the_base_free_sideways() -> None:
    # Four parallel wheels that only roll: left pair and right pair turn it like a tank.
    base = robots.mecanum_arm()
    names = ("front_left", "front_right", "rear_left", "rear_right")
    skidding = [Wheel(name, 0.12, kind="omni") for name in names]
    loose = reduce(
        Mechanism("skid", base.bodies, skidding, base.gravity, [*base.actuated[1:3], "joint_1"])
    )
    assert "base[vy]" in loose.shape_names

    def rolling(q: np.ndarray) -> np.ndarray:
        rows = mecanum_rows(0.35, 0.3, 0.12, 14)(q)
        rows[:, 1] = 0.0
        rows[:, 2] = [-0.3, 0.3, -0.3, 0.3]
        return rows

    full = Constrained(Pinocchio(loose.robot), rolling)
    reference = Reference(full, loose.shape, loose.dependent)
    rng = np.random.default_rng(4)
    for _ in range(3):
        q, s = loose.robot.random(rng), rng.uniform(-1, 1, loose.ns)
        u = rng.uniform(-5, 5, loose.nu)
        expected = reference.acceleration(q, s, torques(loose, u))
        assert_close(loose.acceleration(q, s, u), expected, 1e-9)

    slider = Wheel("base", 0.0, kind="slider", axis=(0, 1, 0), center=(-0.1, 0, 0))
    held = reduce(
        Mechanism(
            "held",
            base.bodies,
            [*skidding, slider],
            base.gravity,
            [name for name in base.actuated if name != "front_left"],
        )
    )
    assert held.kind == "chaplygin"
    assert held.nu == held.ns == 9
    s = np.zeros(held.ns)
    left, right = 5.0, 7.0
    s[[held.shape_names.index("rear_left"), held.shape_names.index("front_right")]] = left, right
    v = held.velocity(held.robot.neutral(), s)
    turn = 0.12 * (right - left) / 0.6
    expected = [0.12 * (left + right) / 2, 0.1 * turn, turn, left, right, left, right]
    np.testing.assert_allclose(v[:7], expected, rtol=0, atol=1e-12)
