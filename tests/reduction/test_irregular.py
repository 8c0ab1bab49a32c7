"""Wheels that roll only where their axes meet in one point: refused, wherever that point is."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from concur.errors import ReductionError, WheelError
from concur.reduction import reduce
from concur.reduction._irregular import LOST, check_regular, worst_point
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints

Mount = tuple[float, float, float, bool]
"""Place of a wheel, angle of its mount, and whether it steers."""

ACKERMANN: list[Mount] = [
    (0.0, 0.3, 0.0, False),
    (0.0, -0.3, 0.0, False),
    (1.0, 0.3, 0.0, True),
    (1.0, -0.3, 0.0, True),
]
MODULES: list[Mount] = [
    (0.5, 0.0, 0.0, True),
    (-0.3, 0.4, 0.0, True),
    (-0.3, -0.4, 0.0, True),
]
CAR: list[Mount] = [*ACKERMANN[:2], (1.0, 0.0, 0.0, True)]


def vehicle(mounts: list[Mount], limit: float = np.inf) -> Mechanism:
    """A chassis with upright wheels."""
    light = Inertia(0.5, moments=(0.01, 0.01, 0.01))
    bodies = [Body("chassis", joints.Planar(), inertia=Inertia(20.0, moments=(1, 1, 1)))]
    for k, (x, y, angle, steers) in enumerate(mounts):
        place = Pose((x, y, 0.1), (0, 0, np.sin(angle / 2), np.cos(angle / 2)))
        parent = "chassis"
        if steers:
            steer = joints.Revolute((0, 0, 1))
            limits = None if np.isinf(limit) else ((-limit, limit),)
            bodies.append(Body(f"steer{k}", steer, parent, place, light, limits=limits))
            parent, place = f"steer{k}", Pose()
        bodies.append(Body(f"wheel{k}", joints.Revolute((0, 1, 0)), parent, place, light))
    wheels = [Wheel(f"wheel{k}", radius=0.1) for k in range(len(mounts))]
    return Mechanism("vehicle", bodies, wheels=wheels)


def turned(mounts: list[Mount], *angles: float) -> list[Mount]:
    """The same with mounts turned by angles."""
    return [(x, y, a + b, s) for (x, y, a, s), b in zip(mounts, angles, strict=True)]


def missed(robot: Mechanism, q: np.ndarray) -> float:
    """How far the axles are from meeting in one point, or being parallel: zero if they do.

    Each axle is a line in the plane, in homogeneous coordinates; they meet if these have rank two.
    """
    lines = []
    for wheel in robot.wheels:
        pose = robot.pose(q, wheel.body)
        (x, y), (dx, dy) = pose[:2, 3], pose[:2, 1]
        lines.append([-dy, dx, x * dy - y * dx])
    return float(np.linalg.svd(lines, compute_uv=False)[2])


@pytest.mark.by_default(4)
@pytest.mark.parametrize(
    "mounts",
    [
        ACKERMANN,
        turned(ACKERMANN, 0.0, 0.0, 0.1, 0.0),
        turned(ACKERMANN, 0.0, 0.0, 0.3, -0.2),
        MODULES,
        turned(MODULES, 0.1, 0.0, 0.0),
        turned(MODULES, 0.1, -0.2, 0.3),
    ],
)
@pytest.mark.parametrize("limit", [np.inf, 0.8])
def test_wheels_that_steer_independently_are_refused(mounts: list[Mount], limit: float) -> None:
    robot = vehicle(mounts, limit)
    with pytest.raises(ReductionError, match=r"lose rank.*steer.*virtual axle") as caught:
        reduce(robot)
    q = caught.value.q
    assert missed(robot, q) < 1e-5
    others = [robot.random(np.random.default_rng(k)) for k in range(5)]
    assert min(missed(robot, other) for other in others) > 1e-3
    steers = [robot.q_slice(body.name) for body in robot.bodies if "steer" in body.name]
    assert max(abs(q[span][0]) for span in steers) <= min(limit, 2 * np.pi)


@pytest.mark.parametrize(
    "mounts", [CAR, MODULES[:2], [(0.0, 0.0, 0.0, False), (1.0, 0.0, 0.0, True)]]
)
def test_wheels_that_always_let_the_base_move_are_taken(mounts: list[Mount]) -> None:
    model = reduce(vehicle(mounts))
    assert model.regularity(model.robot.neutral()) > 0.1


@pytest.mark.parametrize(("angle", "taken"), [(2.5e-5, True), (2e-5, False)])
def test_a_base_that_wheels_hold_for_good(angle: float, taken: bool) -> None:
    # Fixed axles that nearly meet; where they clearly do not, the vehicle stands, and that is all.
    fixed = [(0.0, 0.3, 0.0, False), (0.0, -0.3, angle, False), (1.0, 0.0, 0.5, False)]
    robot = vehicle(fixed)
    samples = [robot.neutral()] * 2
    least = worst_point(robot, samples[1:])[1]
    assert (least > LOST) == taken
    if taken:
        check_regular(robot, samples)
    else:
        with pytest.raises(ReductionError, match="no joint steers"):
            check_regular(robot, samples)


def test_shipped_robots_are_regular() -> None:
    for make in (robots.rover_arm, robots.car_arm, robots.snakeboard, robots.tractor_trailers):
        robot = make()
        rng = np.random.default_rng(2)
        check_regular(robot, [robot.neutral(), *(robot.random(rng) for _ in range(3))])


def test_a_virtual_axle_stands_for_wheels_that_steer_together() -> None:
    model = reduce(vehicle([(-0.4, 0.3, 0.0, False), (-0.4, -0.3, 0.0, False), (0.4, 0, 0, True)]))
    assert model.shape_names == ("steer2", "wheel2")
    # At the steering angle a the base turns with b psi' sin(a) / l.
    q = model.robot.neutral()
    q[model.robot.q_slice("steer2")] = 0.3
    turning = model.velocity(q, [0.0, 2.0])[2]
    assert turning == pytest.approx(0.1 * 2.0 * np.sin(0.3) / 0.8, rel=1e-12)


def test_suspension_is_refused() -> None:
    light = Inertia(0.5, moments=(0.01, 0.01, 0.01))
    base = Body("base", joints.Planar(), inertia=Inertia(10.0, moments=(1, 1, 1)))
    strut = Body("strut", joints.Prismatic((0, 0, 1)), "base", Pose((0, 0.2, 0)), light)
    wheel = Body("wheel", joints.Revolute((0, 1, 0)), "strut", inertia=light)
    with pytest.raises(WheelError, match="a contact point that moves off it"):
        Mechanism("suspension", [base, strut, wheel], [Wheel("wheel", 0.1)])
