"""Random chains of all joints: recursion, product of exponentials, differences, Pinocchio."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur import robot as kinematics
from concur.robot import Body, Inertia, Pose, Tree, joints
from tests.oracles import Pinocchio

BATCHES, CHAINS = 10, 50
SHARED = ("Revolute", "Prismatic", "Helical", "Planar", "Spherical", "Cartesian", "Free", "Fixed")
"""Joints that the oracle has too."""
ALL = (*SHARED, "Cylindrical", "Sliding", "PlanarPrismatic")
TOLERANCE = 1e-9
STEP = 4e-3


def random_joint(kind, rng):
    direction = rng.normal(size=3)
    if kind in ("Spherical", "Cartesian", "Free", "Fixed"):
        return getattr(joints, kind)()
    if kind == "Helical":
        return joints.Helical(direction, rng.choice([-1, 1]) * rng.uniform(0.05, 0.5))
    if kind in ("Planar", "PlanarPrismatic", "Sliding") and rng.random() < 0.3:
        direction = [(0, 0, 1), (0, 0, -1)][rng.integers(2)]
    return getattr(joints, kind)(direction)


def random_chain(seed):
    """Chain of 3 to 8 joints; every second one consists of joints that the oracle has."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(SHARED if seed % 2 else ALL, rng.integers(3, 9))
    bodies = []
    for i, kind in enumerate(kinds):
        rotation = Rotation.random(random_state=int(rng.integers(2**31)))
        placement = Pose(rng.uniform(-0.5, 0.5, 3), rotation.as_quat())
        parent = f"body{i - 1}" if i else None
        bodies.append(Body(f"body{i}", random_joint(kind, rng), parent, placement, Inertia(1.0)))
    return Tree(f"chain{seed}", bodies)


def random_parameters(tree, rng):
    """Translations up to a metre; angles up to 2.8 rad, beyond a turn for what counts turns."""
    parts = []
    for body in tree.bodies:
        s = rng.uniform(-1.0, 1.0, body.joint.nv)
        turns = np.abs(body.joint.basis[3:]).max(axis=0, initial=0.0) > 0
        if turns.any():
            angle = rng.uniform(0.0, 8.0 if kinematics.is_abelian(body.joint) else 2.8)
            s[turns] *= angle / np.linalg.norm(s[turns])
        parts.append(s)
    return np.concatenate(parts)


def both_methods(tree, body):
    """One function of s with everything to be compared, and one with the pose alone."""
    s = ca.SX.sym("s", tree.nv)
    parts = [(b.joint, s[tree.v_slice(b.name), :]) for b in tree.bodies]
    q = ca.vertcat(*[kinematics.configuration(joint, own) for joint, own in parts])
    pose = kinematics.product_of_exponentials(tree, s, body)
    results = [
        q,
        kinematics.pose(tree, q, body),
        kinematics.jacobian(tree, q, body),
        pose,
        kinematics.screw_jacobian(tree, s, body),
        ca.diagcat(*[kinematics.body_map(joint, own) for joint, own in parts]),
    ]
    dense = [ca.densify(result) for result in results]
    return ca.Function("both", [s], dense), ca.Function("pose", [s], [ca.densify(pose[:3, :])])


def adjoint(pose):
    R, p = pose[:3, :3], pose[:3, 3]
    cross = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    return np.block([[R, cross @ R], [np.zeros((3, 3)), R]])


def differenced(function, s, pose):
    """Spatial Jacobian by central differences of sixth order."""
    count = len(s)
    weights = {1: 45.0, 2: -9.0, 3: 1.0}
    steps = [sign * k * STEP * unit for unit in np.eye(count) for k in weights for sign in (1, -1)]
    poses = np.array(function(s[:, None] + np.array(steps).T)).T.reshape(count, 6, 4, 3)
    columns = np.zeros((6, count))
    for j in range(count):
        rate = sum(
            weight * (poses[j, 2 * i] - poses[j, 2 * i + 1]).T
            for i, weight in enumerate(weights.values())
        ) / (60 * STEP)
        twist = np.vstack([rate, np.zeros(4)]) @ np.linalg.inv(pose)
        columns[:, j] = *twist[:3, 3], twist[2, 1], twist[0, 2], twist[1, 0]
    return columns


@pytest.mark.extended
@pytest.mark.parametrize("batch", range(BATCHES))
def test_all_ways_lead_to_the_same_pose_and_twist(batch):
    """Thesis: (2.2.6), (2.3.7), (3.3.30)."""
    compared = 0
    for seed in range(batch * CHAINS, (batch + 1) * CHAINS):
        tree = random_chain(seed)
        tip = tree.bodies[-1].name
        if not tree.nv:
            continue
        everything, only_pose = both_methods(tree, tip)
        s = random_parameters(tree, np.random.default_rng(1000 + seed))
        values = [np.array(value) for value in everything(s)]
        q, pose, jacobian, product, screws, maps = values

        def close(actual, expected, what, seed=seed):
            np.testing.assert_allclose(
                actual, expected, rtol=0, atol=TOLERANCE, err_msg=f"chain {seed}: {what}"
            )

        close(product, pose, "product of exponentials and recursion")
        close(screws, adjoint(pose) @ jacobian @ maps, "their Jacobians")
        close(screws, differenced(only_pose, s, pose), "Jacobian and differences of poses")
        if seed % 2:
            oracle = Pinocchio(tree)
            close(product, oracle.pose(q[:, 0], tip), "pose in Pinocchio")
            if tree.nv > 1:  # the library returns a vector in place of a single column
                close(jacobian, oracle.jacobian(q[:, 0], tip), "Jacobian in Pinocchio")
            compared += 1
    assert compared > 0.9 * CHAINS / 2
