"""Momentum matrix: against Pinocchio, body by body, and by what it has to do with others."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from concur.codegen import instructions
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.robots import free_flyer
from tests.oracles import (
    Pinocchio,
    assert_close,
    crane,
    random_rover,
    random_tree,
    random_velocity,
    rover,
)

AXIS = (0.36, -0.48, 0.8)

KINDS: dict[str, joints.Joint] = {
    "Fixed": joints.Fixed(),
    "Revolute": joints.Revolute(AXIS),
    "Prismatic": joints.Prismatic(AXIS),
    "Helical": joints.Helical(AXIS, 0.2),
    "Cylindrical": joints.Cylindrical(AXIS),
    "Sliding": joints.Sliding(AXIS),
    "Cartesian": joints.Cartesian(),
    "Planar": joints.Planar(AXIS),
    "PlanarPrismatic": joints.PlanarPrismatic(AXIS),
    "Spherical": joints.Spherical(),
    "Free": joints.Free(),
}


def _pinocchios(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    """The library's matrix about the centre of mass, moved to the inertial origin."""
    oracle = Pinocchio(robot)
    centroidal = pin.computeCentroidalMap(oracle.model, oracle.data, oracle.configuration(q))
    matrix = centroidal @ oracle.velocity(np.eye(robot.nv))
    matrix[3:] += np.cross(oracle.data.com[0], matrix[:3], axis=0)
    return matrix


def _body_by_body(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    """Sum of the momenta of all bodies, from their Jacobians."""
    matrix = np.zeros((6, robot.nv))
    for body in robot.bodies:
        pose, inertia = robot.pose(q, body.name), body.inertia
        linear, angular = np.split(robot.jacobian(q, body.name), 2)
        com = np.array(inertia.com)
        pushed = inertia.mass * (linear - np.cross(com, angular, axis=0))
        center = pose[:3, :3] @ com + pose[:3, 3]
        moved = pose[:3, :3] @ pushed
        spun = pose[:3, :3] @ inertia.tensor @ angular
        matrix += np.vstack([moved, spun + np.cross(center, moved, axis=0)])
    return matrix


def _with_joint(kind: str) -> Mechanism:
    """A robot with a joint of one kind as the base's and as an inner one, with branches."""
    tensor = np.array([[0.5, 0.04, -0.03], [0.04, 0.4, 0.02], [-0.03, 0.02, 0.6]])
    heavy = Inertia(5.0, (0.05, -0.1, 0.02), tensor)
    light = Inertia(1.2, (0.1, 0.3, -0.2), 0.2 * tensor)
    placed = Pose((0.3, -0.2, 0.5), tuple(Rotation.from_rotvec([0.4, -0.7, 0.3]).as_quat()))
    return Mechanism(
        kind,
        [
            Body("base", KINDS[kind], None, placed, heavy),
            Body("arm", joints.Revolute((0, 1, 0)), "base", placed, light),
            Body("inner", KINDS[kind], "arm", placed, light),
            Body("slide", joints.Prismatic((1, 0, 0)), "inner", placed, light),
            Body("other", joints.Revolute(AXIS), "base", placed, light),
        ],
    )


@pytest.mark.by_default(6)
@pytest.mark.parametrize("seed", range(20))
def test_matrix_of_a_random_tree_is_that_of_pinocchio(seed: int) -> None:
    """Thesis: (3.2.16), (3.3.35)."""
    robot = random_tree(seed)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        q, v = robot.random(rng), random_velocity(robot, rng)
        matrix = robot.momentum_matrix(q)
        assert_close(matrix, _pinocchios(robot, q), 1e-10)
        assert_close(matrix @ v, robot.momentum(q, v), 1e-10)


@pytest.mark.parametrize("robot", [rover(), crane(), random_rover(0).robot, free_flyer()])
def test_matrix_of_vehicles_is_that_of_pinocchio(robot: Mechanism) -> None:
    q = robot.random(np.random.default_rng(3))
    assert_close(robot.momentum_matrix(q), _pinocchios(robot, q), 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_joint_moves_the_bodies_it_carries(kind: str) -> None:
    robot = _with_joint(kind)
    q = robot.random(np.random.default_rng(5))
    assert_close(robot.momentum_matrix(q), _body_by_body(robot, q), 1e-12)


def test_linear_rows_say_how_the_centre_of_mass_moves() -> None:
    robot = random_tree(1)
    rng = np.random.default_rng(1)
    q, v = robot.random(rng), random_velocity(robot, rng)
    oracle = Pinocchio(robot)
    pin.centerOfMass(oracle.model, oracle.data, oracle.configuration(q), oracle.velocity(v))
    moving = sum(inertia.mass for inertia in list(oracle.model.inertias)[1:])
    assert_close(robot.momentum_matrix(q)[:3] @ v, moving * oracle.data.vcom[0], 1e-10)


def test_robot_that_cannot_move_has_no_columns() -> None:
    robot = Mechanism("floor", [Body("floor", joints.Fixed(), inertia=Inertia(1.0))])
    assert robot.momentum_matrix([]).shape == (6, 0)


def test_matrix_is_shorter_than_the_rows_of_the_mass_matrix_carried_to_the_origin() -> None:
    robot = free_flyer()
    q = ca.SX.sym("q", robot.nq)
    pose = robot.pose(q, robot.base.name)
    turn, rows = pose[:3, :3], robot.mass_matrix(q)[:6, :]
    linear = turn @ rows[:3, :]
    carried = ca.vertcat(linear, turn @ rows[3:, :] + ca.skew(pose[:3, 3]) @ linear)

    def length(matrix: ca.SX) -> int:
        return instructions(ca.Function("f", [q], [ca.densify(matrix)], {"cse": True}))

    assert length(robot.momentum_matrix(q)) < 0.9 * length(carried)
