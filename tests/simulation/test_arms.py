"""Pose outputs on arms: the error follows its own equation, whatever the robot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from concur.robot import Mechanism
from concur.simulation import Run, simulate
from tests.control._cases import (
    ARM_Q0,
    ARM_S0,
    arm,
    arm_servo,
    demand,
    gantry,
    hand_pose,
    hand_twist,
)
from tests.groups.oracles import bracket, integral

GROUPS = ("SE3", "R3xSO3", "SO3+R3")
DIRECTION = np.array([0.95, 0.2, -0.24]) / np.linalg.norm([0.95, 0.2, -0.24])
VE = np.array([0.02, -0.01, 0.03, 0.1, -0.1, 0.05])

ROBOTS: dict[str, tuple[Mechanism, np.ndarray]] = {
    "arm": (arm(), ARM_Q0),
    "larger arm": (arm(scale=1.4), np.array([0.4, 0.8, -1.2, -0.2, 0.9, 0.3])),
    "gantry": (
        gantry(),
        np.array([0.1, 0.2, 0.3, *Rotation.from_rotvec([0.3, 0.2, -0.4]).as_quat()]),
    ),
}


def start(angle: float) -> np.ndarray:
    """Error with a rotation by an angle in degrees."""
    return np.array([0.05, -0.04, 0.06, *(np.radians(angle) * DIRECTION)])


def track(name: str, group: str, angle: float, duration: float = 1.2, **options: object) -> Run:
    robot, q0 = ROBOTS[name]
    servo = arm_servo(robot, group)
    v0 = servo.model.velocity(q0, ARM_S0)
    curve = demand(group, hand_pose(robot, q0), hand_twist(robot, q0, v0), start(angle), VE)
    options = {"dt": 2e-3, **options}
    return simulate(robot, servo, curve.reference(group), duration, q0, ARM_S0, **options)  # type: ignore[arg-type]


@pytest.mark.by_default(1)
@pytest.mark.parametrize("angle", [150.0, 170.0])
@pytest.mark.parametrize("group", GROUPS)
def test_error_follows_its_own_equation(group: str, angle: float) -> None:
    run = track("arm", group, angle)
    turning = slice(0, 3) if group == "SO3+R3" else slice(3, 6)
    assert_allclose(run.error[0, turning], start(angle)[3:], rtol=0, atol=1e-12)
    assert np.abs(run.deviation).max() < 1e-7
    assert np.linalg.norm(run.error[-1]) < 0.1 * np.linalg.norm(run.error[0])
    assert run.constraint_residual.max() == 0.0
    assert np.abs(run.energy_balance).max() < 1e-5


def test_equation_of_a_pose_error_by_matrices() -> None:
    # As above, with the equation itself integrated outside the package.
    run = track("arm", "SE3", 150.0)
    assert_allclose(run.error[0], start(150.0), rtol=0, atol=1e-13)
    assert_allclose(run.velocity_error[0], VE, rtol=0, atol=1e-13)

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        mapped = np.linalg.inv(integral(bracket(z[:6])))
        return np.concatenate([-mapped @ z[6:], mapped.T @ (9.0 * z[:6]) - 5.0 * z[6:]])

    times = run.t[::100]
    other = solve_ivp(
        slope, (0, times[-1]), [*start(150.0), *VE], "DOP853", times, rtol=1e-10, atol=1e-12
    )
    assert_allclose(run.error[::100], other.y[:6].T, rtol=0, atol=1e-7)
    assert_allclose(run.velocity_error[::100], other.y[6:].T, rtol=0, atol=1e-7)
