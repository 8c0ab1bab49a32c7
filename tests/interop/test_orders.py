"""Coordinates of MuJoCo, Pinocchio, Drake and ROS: dynamics in them, and round trips."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, DescriptionError, ShapeError, SingularConfigurationError
from concur.interop import Order
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.writers import to_urdf
from tests.oracles import EVERY_JOINT, Mujoco, assert_close, random_robot, random_velocity

DRAKE = json.loads((Path(__file__).parents[1] / "data" / "drake_order.json").read_text())
NO_SCREW = tuple(kind for kind in EVERY_JOINT if kind != "Helical")
ROBOTS = [random_robot(seed, NO_SCREW, base) for seed, base in enumerate(("Free", "Planar", None))]


def drake_robot() -> Mechanism:
    """The robot whose numbers Drake computed; its planar joint has the normal z, as Drake's."""
    return random_robot(
        0, ("Revolute", "Prismatic", "Helical", "Spherical", "Free", "Fixed"), "Free"
    )


def states(robot: Mechanism, seed: int = 0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    return robot.random(rng), *(random_velocity(robot, rng) for _ in range(3))


def orders(robot: Mechanism) -> list[Order]:
    return [
        interop.mujoco(robot),
        interop.pinocchio(robot),
        interop.pinocchio(robot, urdf=True),
        interop.drake(robot),
    ]


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.bodies[0].joint)
def test_round_trips_power_and_rates(robot: Mechanism) -> None:
    q, v, vdot, tau = states(robot)
    for order in orders(robot):
        x = order.to_q(q)
        assert x.shape == (order.nq,)
        assert_close(robot.difference(q, order.from_q(x)), np.zeros(robot.nv), 1e-12)
        theirs = order.to_v(q, v)
        assert theirs.shape == (order.nv,)
        assert_close(order.velocity_map(q) @ v, theirs, 1e-12)
        assert_close(order.from_v(q, theirs), v, 1e-11)
        assert_close(order.from_force(q, order.to_force(q, tau)), tau, 1e-11)
        assert order.to_force(q, tau) @ theirs == pytest.approx(tau @ v)
        there = order.to_acceleration(q, v, vdot)
        assert_close(order.from_acceleration(q, v, there), vdot, 1e-11)
        # The acceleration is the rate of the velocity along the motion.
        h = 1e-5
        before, after = (
            order.to_v(robot.integrate(q, s * h * v + 0.5 * h * h * vdot), v + s * h * vdot)
            for s in (-1, 1)
        )
        assert_close(there, (after - before) / (2 * h), 1e-7)


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.bodies[0].joint)
def test_dynamics_in_coordinates_of_mujoco(robot: Mechanism) -> None:
    oracle, order = Mujoco(robot), interop.mujoco(robot)
    model, data = oracle.model, oracle.data
    for seed in range(3):
        q, v, vdot, _ = states(robot, seed)
        data.qpos[:], data.qvel[:] = order.to_q(q), order.to_v(q, v)
        mujoco.mj_forward(model, data)
        mass, T = np.zeros((model.nv, model.nv)), order.velocity_map(q)
        mujoco.mj_fullM(model, data, mass)
        assert_close(T.T @ mass @ T, robot.mass_matrix(q), 1e-9)
        force = mass @ order.to_acceleration(q, v, vdot) + data.qfrc_bias
        assert_close(order.from_force(q, force), robot.inverse_dynamics(q, v, vdot), 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_dynamics_in_coordinates_of_pinocchio_from_our_urdf(seed: int) -> None:
    robot = random_robot(seed, NO_SCREW, "Free", limits=True)
    base = robot.bodies[0]
    robot = replace(robot, bodies=[replace(base, placement=Pose()), *robot.bodies[1:]])
    model = pin.buildModelFromXML(to_urdf(robot)[0], pin.JointModelFreeFlyer())
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    data, order = model.createData(), interop.pinocchio(robot, urdf=True)
    assert (model.nq, model.nv) == (order.nq, order.nv)
    q, v, vdot, _ = states(robot, seed)
    there = order.to_q(q), order.to_v(q, v)
    energy = pin.computeKineticEnergy(model, data, *there)
    assert energy == pytest.approx(robot.kinetic_energy(q, v), rel=1e-9)
    force = pin.rnea(model, data, *there, order.to_acceleration(q, v, vdot))
    assert_close(order.from_force(q, force), robot.inverse_dynamics(q, v, vdot), 1e-9)


def test_dynamics_in_coordinates_of_drake() -> None:
    # Numbers of Drake 1.58, for the robot above, built by its Python interface.
    robot = drake_robot()
    order = interop.drake(robot)
    q, v, vdot, _ = states(robot)
    assert list(order.bodies) == DRAKE["bodies"]
    T = order.velocity_map(q)
    assert_close(T.T @ np.array(DRAKE["mass"]) @ T, robot.mass_matrix(q), 1e-9)
    assert_close(order.to_q(q), DRAKE["q"], 1e-12)
    force = order.from_force(q, DRAKE["force"])
    assert_close(force, robot.inverse_dynamics(q, v, vdot), 1e-9)


def test_conventions_of_a_floating_base() -> None:
    robot = cc.robots.wheel_satellite()
    half = np.sqrt(0.5)
    q = [1, 2, 3, 0, 0, half, half, 0, 0, 0]  # 90 deg about z: x of the body is y of the world
    v = [1, 0, 0, 0.1, 0.2, 0.3, 7, 8, 9]
    given = {order.library: order for order in orders(robot)}
    assert_close(given["MuJoCo"].to_q(q)[:7], [1, 2, 3, half, 0, 0, half], 1e-15)
    assert_close(given["MuJoCo"].to_v(q, v), [0, 1, 0, 0.1, 0.2, 0.3, 7, 8, 9], 1e-15)
    assert_close(given["Drake"].to_q(q)[:7], [half, 0, 0, half, 1, 2, 3], 1e-15)
    assert_close(given["Drake"].to_v(q, v), [-0.2, 0.1, 0.3, 0, 1, 0, 7, 8, 9], 1e-15)
    assert_close(interop.pinocchio(robot).to_v(q, v), v, 0.0)


def test_other_orders_and_what_is_refused() -> None:
    robot = cc.robots.wheel_satellite()
    turned = interop.mujoco(robot, ["wheel_z", "satellite", "wheel_x", "wheel_y"])
    q, v = robot.neutral(), np.arange(9.0)
    assert_close(turned.to_v(q, v), [8, 0, 1, 2, 3, 4, 5, 6, 7], 0.0)
    assert_close(turned.from_v(q, turned.to_v(q, v)), v, 0.0)
    for wrong in (["satellite"], ["x"] * 4, "satellite"):
        with pytest.raises(DescriptionError, match="each body whose joint moves once"):
            interop.drake(robot, wrong)
    for call in (
        lambda: turned.to_q([1.0]),
        lambda: turned.to_v(q, v * np.nan),
        lambda: turned.from_q(np.zeros(3)),
        lambda: interop.to_ros(robot, q, v[:2]),
        lambda: interop.mujoco(random_robot(0)),
        lambda: interop.mujoco(robot, 5),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConcurError):
            call()


def test_three_hinges_are_singular_at_a_right_angle() -> None:
    ball = Body("ball", joints.Spherical(), "base", inertia=Inertia(1.0, moments=(1, 1, 1)))
    robot = Mechanism("gimbal", [Body("base", joints.Fixed()), ball])
    order = interop.pinocchio(robot, urdf=True)

    def at(away: float) -> np.ndarray:
        angle = (np.pi / 2 - away) / 2
        return np.array([0.0, np.sin(angle), 0.0, np.cos(angle)])

    rates = order.to_v(at(1e-8), [1.0, 2.0, 3.0])
    assert_close(order.from_v(at(1e-8), rates), [1.0, 2.0, 3.0], 1e-6)
    with pytest.raises(SingularConfigurationError, match="90"):
        order.to_v(at(1e-10), [1.0, 2.0, 3.0])
    # Coordinates exist there, and lead back.
    assert_close(robot.difference(order.from_q(order.to_q(at(0.0))), at(0.0)), np.zeros(3), 1e-12)


def test_quaternions_and_circles_of_wrong_norm_are_refused() -> None:
    ball = Body(
        "ball", joints.Spherical(), "base", Pose((0, 0, 1)), Inertia(1.0, moments=(1, 1, 1))
    )
    turned = Pose((1, 2, 3), (0.6, 0.0, 0.0, 0.8))
    base = Body("base", joints.Free(), placement=turned, inertia=ball.inertia)
    robot = Mechanism("ball", [base, ball])
    q = robot.neutral()
    for make in (interop.mujoco, interop.pinocchio, interop.drake):
        order = make(robot)
        theirs = order.to_q(q)
        for factor, fine in ((1.0, True), (1.0009, True), (1.0011, False), (0.0, False)):
            calls = [lambda: order.to_q(factor * q), lambda: order.velocity_map(factor * q)]  # noqa: B023
            if make is not interop.drake:
                calls.append(lambda: order.from_q(factor * theirs))  # noqa: B023
            for call in calls:
                if fine:
                    call()
                    continue
                with pytest.raises(ShapeError, match="unit norm"):
                    call()
        with pytest.raises(ShapeError, match="unit norm"):
            order.from_q(np.zeros(order.nq))
    with pytest.raises(ShapeError, match="unit norm"):
        interop.to_ros(robot, 0.0 * q)
    car = Mechanism("car", [Body("car", joints.Planar(), inertia=Inertia(1.0, moments=(1, 1, 1)))])
    order = interop.pinocchio(car)
    assert_close(order.from_q([1.0, 2.0, 0.0, 1.0009]), [1.0, 2.0, np.pi / 2], 1e-15)
    for size in (0.0, 1.0011):
        with pytest.raises(ShapeError, match="cosine and sine"):
            order.from_q([1.0, 2.0, 0.0, size])
    state = interop.to_ros(car, [1.0, 2.0, 0.5])
    half = np.radians(89.9) / 2
    tilted = replace(state, base_orientation=np.array([np.sin(half), 0.0, 0.0, np.cos(half)]))
    assert_close(interop.from_ros(car, tilted)[0], [1.0, 2.0, 0.0], 1e-12)
    for wrong, message in (
        ([0.0, 0.0, 0.0, 0.0], "unit norm"),
        ([1.0, 0.0, 0.0, 0.0], "180 deg"),
        ([np.sin(half + 0.01), 0.0, 0.0, np.cos(half + 0.01)], "91.* deg"),
    ):
        with pytest.raises(ConcurError, match=message):
            interop.from_ros(car, replace(state, base_orientation=np.array(wrong)))


def test_messages_of_ros() -> None:
    without_free = tuple(kind for kind in NO_SCREW if kind != "Free")
    for robot in (
        cc.robots.rover_arm(),
        cc.robots.two_handed_spacecraft(),
        random_robot(1, without_free, "Planar"),
        random_robot(2, without_free, "Revolute"),
    ):
        q, v, _, tau = states(robot)
        base = robot.base
        floats = isinstance(base.joint, joints.Free | joints.Planar)
        if floats:
            tau[: base.joint.nv] = 0.0
        state = interop.to_ros(robot, q, v, tau)
        pose = robot.pose(q if floats else robot.neutral(), base.name)
        assert_close(state.base_position, pose[:3, 3], 1e-12)
        if floats:
            twist = [*state.base_linear, *state.base_angular]
            assert_close(twist, robot.twist(q, v, base.name), 1e-12)
        # Messages list joints in any order, and joints of others too.
        mixed = np.random.default_rng(1).permutation(len(state.name) + 1)
        given = {
            name: np.append(getattr(state, name), 7.0)[mixed]
            for name in ("position", "velocity", "effort")
        }
        names = tuple(np.append(state.name, "gripper")[mixed].tolist())
        back = interop.from_ros(robot, replace(state, name=names, **given))
        assert_close(robot.difference(q, back[0]), np.zeros(robot.nv), 1e-9)
        assert_close(back[1], v, 1e-9)
        assert_close(back[2], tau, 1e-9)
        with pytest.raises(DescriptionError, match=f"the joint `{state.name[-1]}` once"):
            interop.from_ros(robot, replace(state, name=state.name[:-1]))
        with pytest.raises(ConcurError, match="position"):
            interop.from_ros(robot, replace(state, position=state.position[:-1]))
    assert interop.to_ros(cc.robots.rover_arm(), np.zeros(8)).name[:2] == (
        "left_wheel",
        "right_wheel",
    )
    with pytest.raises(DescriptionError, match="a Free joint that is not the base"):
        interop.to_ros(ROBOTS[1], ROBOTS[1].neutral())
