"""Vehicles that wheels cannot describe: what is refused, and what is written instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from concur.errors import ReductionError, WheelError
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints

Place = tuple[float, float]

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DISK = Inertia(0.5, moments=(0.001, 0.002, 0.001))
BASE = Body("base", joints.Planar(), inertia=Inertia(10.0, moments=(1, 1, 1)))
FRONT, REAR = ((0.4, 0.3), (0.4, -0.3)), ((-0.4, 0.3), (-0.4, -0.3))


def vehicle(steered: Sequence[Place], fixed: Sequence[Place] = ()) -> Mechanism:
    bodies, wheels = [BASE], []
    for k, place in enumerate(steered):
        bodies.append(Body(f"fork_{k}", joints.Revolute(Z), "base", Pose((*place, 0)), DISK))
        bodies.append(Body(f"steered_{k}", joints.Revolute(Y), f"fork_{k}", inertia=DISK))
        wheels.append(Wheel(f"steered_{k}", 0.1))
    for k, place in enumerate(fixed):
        bodies.append(Body(f"fixed_{k}", joints.Revolute(Y), "base", Pose((*place, 0)), DISK))
        wheels.append(Wheel(f"fixed_{k}", 0.1))
    return Mechanism("vehicle", bodies, wheels)


@pytest.mark.parametrize(
    ("steered", "fixed"),
    [((*FRONT, *REAR), ()), (FRONT, REAR), (((0.4, 0.0), *REAR), ())],
    ids=["swerve", "Ackermann", "three"],
)
def test_wheels_that_steer_independently_are_refused(
    steered: Sequence[Place], fixed: Sequence[Place]
) -> None:
    with pytest.raises(ReductionError, match=r"one rank .* neutral .*a virtual axle"):
        reduce(vehicle(steered, fixed))


def test_virtual_axle_stands_for_wheels_that_steer_together() -> None:
    model = reduce(vehicle(((0.4, 0.0),), REAR))
    assert model.shape_names == ("fork_0", "steered_0")
    # At the steering angle a the base turns with b psi' sin(a) / l.
    q = model.robot.neutral()
    q[3] = 0.3
    turning = model.velocity(q, [0.0, 2.0])[2]
    assert turning == pytest.approx(0.1 * 2.0 * np.sin(0.3) / 0.8, rel=1e-12)


def test_parallel_axles_go_straight_only_and_say_so() -> None:
    model = reduce(vehicle((), (*FRONT, *REAR)))
    assert "the wheels forbid base[omega] altogether" in model.reason
    rolling = model.velocity(model.robot.neutral(), [2.0])
    np.testing.assert_allclose(rolling, [0.2, 0, 0, 2, 2, 2, 2], rtol=0, atol=1e-14)


def test_suspension_is_refused() -> None:
    strut = Body("strut", joints.Prismatic(Z), "base", Pose((0, 0.2, 0)), DISK)
    wheel = Body("wheel", joints.Revolute(Y), "strut", inertia=DISK)
    with pytest.raises(WheelError, match="a contact point that moves off it"):
        Mechanism("suspension", [BASE, strut, wheel], [Wheel("wheel", 0.1)])
