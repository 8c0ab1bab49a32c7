"""Robots of the tables: made harder by tilting every frame, or longer by more joints."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
AXES = Z, Y, Y, X, Y, X
"""Axes along an arm, of which longer ones repeat the last four."""


@cache
def tilted_free_flyer() -> cc.Mechanism:
    """Build the free-flyer without structural zeros.

    Each joint's frame is turned and moved off the axis before it, each inertia has all six
    moments: nothing in its dynamics is zero or one by construction. Joints still turn about
    coordinate axes of their frames, for which the peers have joints of their own.
    """
    rng = np.random.default_rng(5)
    bodies = []
    for body in cc.robots.free_flyer().bodies:
        place, inertia = body.placement, body.inertia
        if body.parent is not None:
            turn = Rotation.from_rotvec(rng.uniform(0.2, 0.35, 3) * rng.choice([-1.0, 1.0], 3))
            offset = np.array(place.translation) + rng.uniform(0.02, 0.06, 3)
            place = cc.Pose(tuple(offset), tuple(turn.as_quat()))
        if inertia.mass:
            axes = Rotation.random(random_state=rng).as_matrix()
            tensor = axes @ inertia.tensor @ axes.T
            com = np.array(inertia.com) + rng.uniform(0.01, 0.03, 3)
            inertia = cc.Inertia(inertia.mass, tuple(com), (tensor + tensor.T) / 2)
        bodies.append(replace(body, placement=place, inertia=inertia))
    return cc.Mechanism("tilted_free_flyer", bodies)


def _arm(
    name: str, joints: int, shoulder: tuple[float, float, float], side: float
) -> list[cc.Body]:
    """List an arm along x, with a tool at its end; its shoulder is on the spacecraft."""
    parent, place, bodies = "spacecraft", shoulder, []
    length = 3.0 / joints
    for i in range(joints):
        axis = AXES[i] if i < 6 else AXES[2 + i % 4]
        mass = 16.0 * length
        inertia = cc.Inertia(
            mass,
            (length / 2, 0.01 * side, -0.02),
            (0.004 * mass, mass * length**2 / 11 + 0.003, mass * length**2 / 12 + 0.003),
        )
        own = f"{name}{i}"
        bodies.append(cc.Body(own, cc.joints.Revolute(axis), parent, cc.Pose(place), inertia))
        parent, place = own, (length, 0.0, 0.0)
    bodies.append(cc.Body(f"{name}_tool", cc.joints.Fixed(), parent, cc.Pose(place)))
    return bodies


def _spacecraft() -> cc.Body:
    return cc.Body(
        "spacecraft",
        cc.joints.Free(),
        None,
        cc.Pose(),
        cc.Inertia(200.0, (0.05, -0.03, 0.02), (25.0, 30.0, 28.0)),
    )


@cache
def chain(joints: int) -> cc.Mechanism:
    """Build a spacecraft with one arm of so many joints, three metres long."""
    return cc.Mechanism(f"chain{joints}", [_spacecraft(), *_arm("link", joints, (0.4, 0, 0.3), 1)])


@cache
def dual_arm() -> cc.Mechanism:
    """Build a spacecraft with two arms of seven joints."""
    left, right = _arm("left", 7, (0.4, 0.4, 0.0), 1), _arm("right", 7, (0.4, -0.4, 0.0), -1)
    return cc.Mechanism("dual_arm", [_spacecraft(), *left, *right])


def _limb(
    name: str, joints: int, parent: str, place: tuple[float, float, float], way: float, mass: float
) -> list[cc.Body]:
    """List a limb along z, which ends so far above the place on its parent."""
    bodies, part, length = [], mass / joints, way / joints
    for i in range(joints):
        moments = part * length**2 / 12 + 0.003 * part
        inertia = cc.Inertia(part, (0.0, 0.0, length / 2), (moments, moments, 0.002 * part))
        own = f"{name}{i}"
        joint = cc.joints.Revolute((Z, X, Y)[i % 3])
        bodies.append(cc.Body(own, joint, parent, cc.Pose(place), inertia))
        parent, place = own, (0.0, 0.0, length)
    return bodies


@cache
def humanoid() -> cc.Mechanism:
    """Build a humanoid of 40 joints with a free base: torso, head, two arms and two legs.

    Its bodies are listed depth first, the order in which the peers' laws have the joints.
    """
    pelvis = cc.Inertia(12.0, (0.0, 0.0, 0.05), (0.12, 0.10, 0.11))
    bodies = [cc.Body("pelvis", cc.joints.Free(), None, cc.Pose(), pelvis)]
    bodies += _limb("torso", 4, "pelvis", (0.0, 0.0, 0.1), 0.5, 25.0)
    bodies += _limb("head", 2, "torso3", (0.0, 0.0, 0.15), 0.2, 5.0)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bodies += _limb(f"{side}_arm", 9, "torso3", (0.0, y, 0.12), -0.7, 6.0)
    for side, y in (("left", 0.1), ("right", -0.1)):
        bodies += _limb(f"{side}_leg", 8, "pelvis", (0.0, y, -0.05), -0.9, 15.0)
    return cc.Mechanism("humanoid", bodies)


def bent(robot: cc.Mechanism) -> np.ndarray:
    """Return a configuration of such a robot in which its arms are bent, the base at rest."""
    q = robot.neutral()
    angles = len(q) - 7
    q[7:] = np.resize([0.5, -0.9, 1.2, 0.4, -0.6, 0.6], angles) * min(1.0, 8.0 / angles)
    return q
