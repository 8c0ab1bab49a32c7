"""Order of the fixed-step methods, and what they conserve, on robots whose joints are curved."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.simulation import Imperfections, Plant
from concur.simulation._drives import Drives
from concur.simulation._step import Step
from tests.oracles import Pinocchio, assert_close

methods = pytest.mark.parametrize("method", ["rk4", "rkmk4"])
TENSOR = ((0.9, 0.1, -0.05), (0.1, 0.7, 0.08), (-0.05, 0.08, 0.4))


def floating(base: joints.Joint, gravity: tuple[float, float, float]) -> Mechanism:
    """Build a body that floats or turns freely and carries two links."""
    first = Inertia(2.0, (0.2, 0.05, 0.0), (0.05, 0.08, 0.06))
    second = Inertia(1.5, (0.1, 0.1, -0.1), (0.02, 0.03, 0.04))
    bodies = [
        Body("base", base, inertia=Inertia(10.0, (0.05, -0.03, 0.02), TENSOR)),
        Body("upper", joints.Revolute((0, 0, 1)), "base", Pose((0.3, 0, 0.2)), first),
        Body("lower", joints.Spherical(), "upper", Pose((0.4, 0, 0)), second),
    ]
    return Mechanism("floating", bodies, gravity=gravity)


FREE = floating(joints.Free(), (0.0, 0.0, 0.0))
FALLING = floating(joints.Free(), (0.5, -0.3, -9.81))
SWINGING = floating(joints.Spherical(), (0.5, -0.3, -9.81))
ROBOTS = {"free": FREE, "falling": FALLING, "swinging": SWINGING}


def beginning(robot: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return robot.random(rng), rng.uniform(-1.0, 1.0, robot.nv)


def steps(
    robot: Mechanism, method: str, h: float, duration: float, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Take steps of the plant alone, with constant torque: last q, v and the work done."""
    x, none = ca.MX.sym("x", robot.nq + robot.nv + 1), ca.MX(0, 1)
    q, v, work = ca.vertsplit(x, [0, robot.nq, robot.nq + robot.nv, robot.nq + robot.nv + 1])
    one = Step(Plant(robot), Drives(Imperfections(), robot), method)
    end = one([q, v, work, *[none] * 5], h, lambda _: ca.MX(ca.DM(u)), lambda _: none, none)
    many = ca.Function("step", [x], [ca.vertcat(*end)]).fold(round(duration / h))
    found = np.array(many([*np.concatenate(beginning(robot)), 0.0])).ravel()
    return found[: robot.nq], found[robot.nq : -1], float(found[-1])


def reference(robot: Mechanism, duration: float, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same by Pinocchio and DOP853."""
    oracle = Pinocchio(robot)
    q0, v0 = beginning(robot)
    tau = np.zeros(robot.nv)
    tau[list(robot.actuated_freedoms)] = u

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        q, v = z[: robot.nq], z[robot.nq :]
        vdot = np.linalg.solve(oracle.mass_matrix(q), tau - oracle.bias(q, v))
        return np.concatenate([oracle.rate(q, v), vdot])

    end = solve_ivp(slope, (0, duration), [*q0, *v0], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return end[: robot.nq], end[robot.nq :]


def torque(robot: Mechanism) -> np.ndarray:
    return 0.3 * np.cos(np.arange(len(robot.actuated_freedoms)))


@pytest.mark.by_default(2)
@methods
@pytest.mark.parametrize("name", ["falling", "swinging"])
def test_order_is_four(name: str, method: str) -> None:
    robot = ROBOTS[name]
    u = torque(robot)
    q, v = reference(robot, 0.8, u)
    sizes = np.array([0.02, 0.01, 0.005])
    errors = []
    for h in sizes:
        q_end, v_end, _ = steps(robot, method, h, 0.8, u)
        apart = np.concatenate([robot.difference(q_end, q), v_end - v])
        errors.append(np.abs(apart).max())
    slopes = np.diff(np.log(errors)) / np.diff(np.log(sizes))
    assert_allclose(slopes, 4.0, atol=0.35, err_msg=str(errors))
    assert errors[0] > 1e-9


@pytest.mark.by_default(1)
@methods
def test_released_free_flyer_keeps_its_momentum(method: str) -> None:
    q0, v0 = beginning(FREE)
    before = Pinocchio(FREE).momentum(q0, v0)
    for u in (np.zeros(4), torque(FREE)):  # inner torques do not change it either
        q, v, _ = steps(FREE, method, 1e-3, 2.0, u)
        assert_close(Pinocchio(FREE).momentum(q, v), before, 1e-8)
        assert np.abs(FREE.difference(q0, q)).max() > 0.3
    assert np.linalg.norm(before) > 1.0


@pytest.mark.by_default(2)
@methods
@pytest.mark.parametrize("name", list(ROBOTS))
def test_energy_is_gained_by_work_alone(name: str, method: str) -> None:
    robot = ROBOTS[name]
    oracle = Pinocchio(robot)
    q0, v0 = beginning(robot)
    before = oracle.kinetic_energy(q0, v0) + oracle.potential_energy(q0)
    for u in (np.zeros(4), torque(robot)):
        u = u[: len(robot.actuated_freedoms)]
        q, v, work = steps(robot, method, 1e-3, 1.0, u)
        after = oracle.kinetic_energy(q, v) + oracle.potential_energy(q)
        assert after - before == pytest.approx(work, abs=1e-7)
        assert (abs(work) > 1e-2) == bool(u.any())
