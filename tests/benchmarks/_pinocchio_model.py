"""Robots in Pinocchio's Python interface, built for speed: the library's joints for fixed axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

import concur as cc

REVOLUTE: dict[tuple[float, ...], Any] = {
    (1.0, 0.0, 0.0): pin.JointModelRX,
    (0.0, 1.0, 0.0): pin.JointModelRY,
    (0.0, 0.0, 1.0): pin.JointModelRZ,
}
KINDS = {
    "JointModelFreeFlyer": "F",
    "JointModelPlanar": "P",
    "JointModelRX": "X",
    "JointModelRY": "Y",
    "JointModelRZ": "Z",
}
"""Letters by which the functions in C++ know the joints."""


def build(robot: cc.Mechanism) -> pin.Model:
    """Build a robot in the order of our joints; what is fixed and weightless: a frame."""
    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    index: dict[str | None, int] = {None: 0}
    fixed: dict[str | None, Any] = {}
    for body in robot.bodies:
        rotation = body.placement.rotation_matrix
        placement = pin.SE3(rotation, np.array(body.placement.translation))
        placement = fixed.get(body.parent, pin.SE3.Identity()) * placement
        parent = index[body.parent]
        if isinstance(body.joint, cc.joints.Fixed):
            model.addFrame(pin.Frame(body.name, parent, placement, pin.FrameType.OP_FRAME))
            index[body.name], fixed[body.name] = parent, placement
            continue
        if isinstance(body.joint, cc.joints.Revolute):
            joint = REVOLUTE[tuple(body.joint.axis)]()
        elif isinstance(body.joint, cc.joints.Planar):
            joint = pin.JointModelPlanar()
        else:  # a spacecraft
            joint = pin.JointModelFreeFlyer()
        index[body.name] = model.addJoint(parent, joint, placement, body.name)
        inertia = pin.Inertia(
            body.inertia.mass, np.array(body.inertia.com), np.array(body.inertia.tensor)
        )
        model.appendBodyToJoint(index[body.name], inertia, pin.SE3.Identity())
        model.addFrame(
            pin.Frame(body.name, index[body.name], pin.SE3.Identity(), pin.FrameType.OP_FRAME)
        )
    return model


def configuration(robot: cc.Mechanism, q: np.ndarray) -> np.ndarray:
    """Our configuration in the library's coordinates: a turn in the plane is a unit vector."""
    if not isinstance(robot.base.joint, cc.joints.Planar):
        return q
    return np.array([*q[:2], np.cos(q[2]), np.sin(q[2]), *q[3:]])


@dataclass(frozen=True)
class Flat:
    """A model as arrays, for the functions in C++.

    Parameters
    ----------
    kinds : bytes
        Letter of each joint.
    parents : numpy.ndarray
        Joint before each joint, shape (n,), the first joint being 1.
    placements, inertias : numpy.ndarray
        Shapes (n, 12), translation and columns of the rotation; and (n, 10), mass, centre of
        mass, and moments by columns of the upper triangle.
    gravity : numpy.ndarray
        Shape (3,).
    joint : int
        Joint that carries the hand.
    hand : numpy.ndarray
        Placement of the hand there, shape (12,).
    """

    kinds: bytes
    parents: np.ndarray
    placements: np.ndarray
    inertias: np.ndarray
    gravity: np.ndarray
    joint: int
    hand: np.ndarray


def flat(model: pin.Model, hand: str) -> Flat:
    """Write a model as arrays."""
    joints = range(1, model.njoints)
    frame = model.frames[model.getFrameId(hand)]
    moments = np.triu_indices(3)
    rows, columns = moments[1], moments[0]  # by columns of the upper triangle
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    return Flat(
        "".join(KINDS[model.joints[i].shortname()] for i in joints).encode(),
        np.array([model.parents[i] for i in joints], dtype=np.int32),
        np.array([_numbers(model.jointPlacements[i]) for i in joints]),
        np.array(
            [
                [inertia.mass, *inertia.lever, *inertia.inertia[columns, rows]]
                for inertia in (model.inertias[i] for i in joints)
            ]
        ),
        np.array(model.gravity.linear),
        frame.parentJoint,
        _numbers(frame.placement),
    )


def _numbers(placement: pin.SE3) -> np.ndarray:
    return np.concatenate([placement.translation, placement.rotation.ravel(order="F")])
