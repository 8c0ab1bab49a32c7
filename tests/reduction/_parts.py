"""Robots whose joints keep some components of their momentum only."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import Pinocchio
from tests.reduction._staged import Equations, Z

DOWN = (0.0, 0.0, -9.81)


def with_ball(inertia: Inertia) -> Mechanism:
    """Build a base in a plane, with a driven arm, that carries a body on a ball joint."""
    plate = Body("plate", joints.Planar(), None, Pose(), Inertia(6.0, moments=(1, 1, 0.9)))
    arm = Inertia(1.5, (0.3, 0.1, 0.0), (0.05, 0.06, 0.07))
    bodies = [
        plate,
        Body("arm", joints.Revolute(Z), "plate", Pose((0.2, 0.1, 0.0)), arm),
        Body("ball", joints.Spherical(), "plate", Pose((-0.3, 0.2, 0.5)), inertia),
    ]
    return Mechanism("hull", bodies, gravity=DOWN, actuated=("arm",))


def hull() -> Mechanism:
    """Build that base with a round body, off its centre along its axis."""
    return with_ball(Inertia(2.0, (0.0, 0.0, 0.1), (0.3, 0.3, 0.2)))


def body_axes(joint: joints.Joint, q: np.ndarray) -> np.ndarray:
    """Motions fixed where a joint attaches, in its body's axes and the joint's basis."""
    if isinstance(joint, joints.Spherical):
        return Rotation.from_quat(q).inv().as_matrix()
    if isinstance(joint, joints.Planar):
        cos, sin = np.cos(q[2]), np.sin(q[2])
        turn = np.array([[cos, sin], [-sin, cos]])
        out = np.eye(3)
        out[:2, :2] = turn
        out[:2, 2] = turn @ [-q[1], q[0]]  # a turn about the origin moves a body that is away
        return out
    if isinstance(joint, joints.Free):
        turn = Rotation.from_quat(q[3:]).inv().as_matrix()
        out = np.zeros((6, 6))
        out[:3, :3] = out[3:, 3:] = turn
        out[:3, 3:] = np.column_stack([turn @ np.cross(axis, q[:3]) for axis in np.eye(3)])
        return out
    return np.eye(joint.nv)


Component = tuple[str, str, np.ndarray, np.ndarray]
"""Body, "parent" or "body", generators as columns, momenta."""


def part_rows(robot: Mechanism, oracle: Pinocchio, part: Component, q: np.ndarray) -> np.ndarray:
    """Rows of the momenta of a joint's generators over v."""
    name, view, generators, _ = part
    joint = robot.bodies[robot.index(name)].joint
    turned = body_axes(joint, q[robot.q_slice(name)]) if view == "parent" else np.eye(joint.nv)
    return (turned @ generators).T @ oracle.mass_matrix(q)[robot.v_slice(name)]


def equations_of(
    robot: Mechanism, momentum: np.ndarray | None, *parts: Component
) -> tuple[Pinocchio, Equations]:
    """Momenta of the base, if it floats freely, and of parts of joints."""
    oracle, nb = Pinocchio(robot), robot.base.joint.nv
    kept = [0, 1, 5] if isinstance(robot.base.joint, joints.Planar) else list(range(nb))

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, values = [], []
        if momentum is not None:
            unit = np.eye(robot.nv)
            spatial = np.column_stack([oracle.momentum(q, unit[:, i]) for i in range(robot.nv)])
            rows.append(spatial[kept])
            values.append(momentum[kept])
        for part in parts:
            rows.append(part_rows(robot, oracle, part, q))
            values.append(part[3])
        return np.vstack(rows), np.concatenate(values)

    return oracle, equations
