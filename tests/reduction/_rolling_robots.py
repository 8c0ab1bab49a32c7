"""Robots on casters, omni wheels and balls, with the rows of their contacts by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import rover
from tests.oracles._kkt import Rows

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DOWN = (0.0, 0.0, -9.81)
GENERIC = ((0.05, 0.004, -0.003), (0.004, 0.04, 0.002), (-0.003, 0.002, 0.06))

CASTERS = ((0.3, 0.05, 0.06), (-0.25, 0.04, 0.05))
"""Place of the fork in front of the axle, trail and radius, m."""

BALL_PLACE, BALL_TURN, BALL_RADIUS = (0.3, 0.05, -0.06), (0.0, 0.6, 0.0, 0.8), 0.04
KIWI_REACH, KIWI_RADIUS = 0.2, 0.05


def _flywheel(parent: str) -> Body:
    """A balanced rotor about the normal, which conserves its momentum if unactuated."""
    inertia = Inertia(2.0, moments=(0.02, 0.02, 0.03))
    return Body("flywheel", joints.Revolute(Z), parent, Pose((0.02, -0.03, 0.1)), inertia)


def _arm(parent: str, shoulder: joints.Joint) -> list[Body]:
    return [
        Body(
            "shoulder",
            shoulder,
            parent,
            Pose((0.1, 0.02, 0.2)),
            Inertia(1.5, (0.2, 0.03, -0.02), GENERIC),
        ),
        Body(
            "elbow",
            joints.Revolute(Y),
            "shoulder",
            Pose((0.4, 0.0, 0.05)),
            Inertia(0.8, (0.1, 0.02, 0.0), (0.01, 0.02, 0.02)),
        ),
    ]


def caster_rover(
    casters: int = 1,
    shoulder: joints.Joint | None = None,
    driven: Sequence[str] = ("left", "right"),
    flywheel: bool = False,
) -> Mechanism:
    """Build a differential base with casters and, on a joint of any kind, an arm."""
    bodies = list(rover().bodies[:3])
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1)]
    for k, (place, trail, radius) in enumerate(CASTERS[:casters], 1):
        fork = Inertia(0.8, (-0.03, 0, 0), (0.01, 0.008, 0.006))
        wheel = Inertia(0.6, moments=(0.001, 0.0018, 0.001))
        at = Pose((-trail, 0, radius - 0.1))
        bodies += [
            Body(f"fork_{k}", joints.Revolute(Z), "chassis", Pose((place, 0, 0)), fork),
            Body(f"caster_{k}", joints.Revolute(Y), f"fork_{k}", at, wheel),
        ]
        wheels.append(Wheel(f"caster_{k}", radius))
    if shoulder is not None:
        bodies += _arm("chassis", shoulder)
        driven = (*driven, "shoulder", "elbow")
    if flywheel:
        bodies.append(_flywheel("chassis"))
    return Mechanism("caster rover", bodies, wheels, DOWN, driven)


def caster_rows(nv: int, casters: int = 1) -> Rows:
    """Return rows of the differential base and of casters, each with fork and wheel in v."""

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((3 + 2 * casters, nv), dtype=q.dtype)
        forms[0, 1] = 1.0
        forms[1, [0, 2, 3]] = 1.0, -0.25, -0.1
        forms[2, [0, 2, 4]] = 1.0, 0.25, -0.1
        for k, (place, trail, radius) in enumerate(CASTERS[:casters]):
            fork = 5 + 2 * k
            cos, sin = np.cos(q[fork]), np.sin(q[fork])
            forms[3 + 2 * k, [0, 1, 2, fork + 1]] = cos, sin, place * sin, -radius
            forms[4 + 2 * k, [0, 1, 2, fork]] = -sin, cos, place * cos - trail, -trail
        return forms

    return rows


def kiwi(flywheel: bool = False) -> Mechanism:
    """Build a base on three omni wheels with radial axes and an arm."""
    base = Inertia(8.0, (0.02, -0.01, 0.05), GENERIC)
    bodies, wheels = [Body("base", joints.Planar(), None, Pose(), base)], []
    for k, angle in enumerate(np.arange(3) * 2 * np.pi / 3):
        out = (float(np.cos(angle)), float(np.sin(angle)), 0.0)
        place = Pose(tuple(KIWI_REACH * x for x in out))
        inertia = Inertia(0.4, moments=(4e-4, 4e-4, 4e-4))
        bodies.append(Body(f"wheel_{k}", joints.Revolute(out), "base", place, inertia))
        wheels.append(Wheel(f"wheel_{k}", KIWI_RADIUS, kind="omni"))
    bodies += _arm("base", joints.Revolute((0.0, 0.2, 1.0)))
    driven = ["wheel_0", "wheel_1", "wheel_2", "shoulder", "elbow"]
    if flywheel:
        bodies.append(_flywheel("base"))
    return Mechanism("kiwi", bodies, wheels, DOWN, driven)


def kiwi_rows(nv: int) -> Rows:
    """Return rows of the three omni wheels: their spins are the third to fifth velocities."""

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((3, nv), dtype=q.dtype)
        for k, angle in enumerate(np.arange(3) * 2 * np.pi / 3):
            forms[k, [0, 1, 2, 3 + k]] = np.sin(angle), -np.cos(angle), -KIWI_REACH, -KIWI_RADIUS
        return forms

    return rows


def skidding() -> Mechanism:
    """Build a base on four parallel wheels that skid sideways freely; two of them are driven."""
    base = Inertia(8.0, (0.05, -0.02, 0.05), GENERIC)
    bodies, wheels = [Body("base", joints.Planar(), None, Pose(), base)], []
    for name, x, y in (("fl", 0.3, 0.2), ("fr", 0.3, -0.2), ("rl", -0.3, 0.2), ("rr", -0.3, -0.2)):
        inertia = Inertia(0.5, moments=(0.001, 0.0015, 0.001))
        bodies.append(Body(name, joints.Revolute(Y), "base", Pose((x, y, 0)), inertia))
        wheels.append(Wheel(name, 0.1, kind="omni"))
    bodies += _arm("base", joints.Revolute(Z))
    return Mechanism("skidding", bodies, wheels, DOWN, ["fl", "fr", "shoulder", "elbow"])


def skidding_rows(nv: int) -> Rows:
    """Return rows of four parallel wheels that skid: spins third to sixth."""

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((4, nv), dtype=q.dtype)
        for k, y in enumerate((0.2, -0.2, 0.2, -0.2)):
            forms[k, [0, 2, 3 + k]] = 1.0, -y, -0.1
        return forms

    return rows


def rover_on_a_ball() -> Mechanism:
    """Build a differential base with a ball for a caster, which does not spin, and an arm."""
    bodies = [
        *rover().bodies[:3],
        Body(
            "ball",
            joints.Spherical(),
            "chassis",
            Pose(BALL_PLACE, BALL_TURN),
            Inertia(0.3, moments=(2e-4, 3e-4, 3.5e-4)),
        ),
        *_arm("chassis", joints.Revolute(Z)),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1), Wheel("ball", BALL_RADIUS, "rubber_ball")]
    driven = ("left", "right", "shoulder", "elbow")
    return Mechanism("rover on a ball", bodies, wheels, DOWN, driven)


def rover_on_a_ball_rows(nv: int) -> Rows:
    """Return rows of the differential base and of its ball, whose turning is fifth to seventh."""

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((6, nv), dtype=q.dtype)
        forms[0, 1] = 1.0
        forms[1, [0, 2, 3]] = 1.0, -0.25, -0.1
        forms[2, [0, 2, 4]] = 1.0, 0.25, -0.1
        turning = np.zeros((3, nv), dtype=q.dtype)  # of the ball, in the axes of the base
        turning[2, 2] = 1.0
        turning[:, 5:8] = turned(np.array(BALL_TURN)) @ turned(q[5:9])
        forms[3, [0, 2]] = 1.0, -BALL_PLACE[1]
        forms[3] -= BALL_RADIUS * turning[1]
        forms[4, [1, 2]] = 1.0, BALL_PLACE[0]
        forms[4] += BALL_RADIUS * turning[0]
        forms[5] = turning[2]
        return forms

    return rows


def rolling_ball(kind: str, pendulum: bool, twin: bool = False) -> Mechanism:
    """Build a hollow ball on the plane, driven from inside by a balanced rotor or a pendulum.

    The twin has two rails in place of the sliding base, for libraries without such bases.
    """
    solid = Inertia(1.5, moments=(0.04, 0.05, 0.06))
    inside = Inertia(0.5, moments=(0.01, 0.006, 0.006))
    if pendulum:
        inside = Inertia(0.5, (0.0, 0.02, -0.12), (0.002, 0.003, 0.002))
    place = [Body("place", joints.Sliding(Z))]
    if twin:
        place = [
            Body("rail", joints.Prismatic(X)),
            Body("place", joints.Prismatic(Y), "rail"),
        ]
    bodies = [
        *place,
        Body("ball", joints.Spherical(), "place", inertia=solid),
        Body("inside", joints.Revolute(X), "ball", inertia=inside),
    ]
    wheels = [] if twin else [Wheel("ball", 0.3, kind=kind)]
    return Mechanism("rolling ball", bodies, wheels, DOWN, ["inside"])


def rolling_ball_rows(kind: str) -> Rows:
    """Return rows of a ball that rolls: its turning is the second to fourth velocity."""

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((2 if kind == "ball" else 3, 6), dtype=q.dtype)
        turning = turned(q[2:6])
        forms[0, 0], forms[0, 2:5] = 1.0, -0.3 * turning[1]
        forms[1, 1], forms[1, 2:5] = 1.0, 0.3 * turning[0]
        if kind != "ball":
            forms[2, 2:5] = turning[2]
        return forms

    return rows


def turned(q: np.ndarray) -> np.ndarray:
    """Rotation of a quaternion x, y, z, w of unit length, real or complex."""
    x, y, z, w = q
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), w * w - x * x + y * y - z * z, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), w * w - x * x - y * y + z * z],
        ]
    )
