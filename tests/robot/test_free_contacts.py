"""Bodies that roll without a joint on their support: a falling disk, a ball on a ball."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError, WheelError
from concur.io import load
from concur.reduction import WheelReduction, reduce
from concur.robot import (
    Body,
    Inertia,
    Mechanism,
    Pose,
    Support,
    Wheel,
    check_contacts,
    comparable_rows,
    joints,
)
from concur.simulation import forced_motion
from tests.oracles import Pinocchio
from tests.robot._contacts import at_point, check_motion

MASS, RADIUS, GRAVITY = 2.0, 0.5, 9.81
ACROSS, AXIAL = MASS * RADIUS**2 / 4, MASS * RADIUS**2 / 2  # moments of a uniform disk
DOWN = (0.0, 0.0, -GRAVITY)
BALL = Inertia(1.0, (0.01, -0.02, 0.005), (0.016, 0.018, 0.02))


def disk(lean: float = 0.0, *more: Body, **options: object) -> Mechanism:
    """Build a disk with its axis y, leaning about x."""
    place = Pose((0, 0, RADIUS * np.cos(lean)), Rotation.from_euler("x", lean).as_quat())
    body = Body("disk", joints.Free(), None, place, Inertia(MASS, moments=(ACROSS, AXIAL, ACROSS)))
    wheel = Wheel("disk", RADIUS, axis=(0, 1, 0), support=Support())
    return Mechanism("disk", [body, *more], [wheel], **({"gravity": DOWN} | options))


def on_sphere(kind: str = "ball", hollow: bool = False, globe: str | None = None) -> Mechanism:
    """Build a ball or a disk on a sphere: fixed, on a spherical joint, or free in space."""
    distance = 0.5 - 0.2 if hollow else 0.5 + 0.2
    bodies = {
        None: [],
        "turns": [Body("globe", joints.Spherical(), inertia=Inertia(3.0, (0, 0.1, 0), (0.4,) * 3))],
        "floats": [Body("globe", joints.Free(), inertia=Inertia(3.0, (0, 0.1, 0), (0.4,) * 3))],
    }[globe]
    if globe == "turns":
        bodies = [Body("stand", joints.Fixed()), replace(bodies[0], parent="stand")]
    parent = bodies[-1].name if bodies else None
    bodies.append(Body("ball", joints.Free(), parent, Pose((0, 0, distance)), BALL))
    axis = (0, 1, 0) if kind == "disk" else None
    support = Support(parent, radius=0.5, hollow=hollow)
    wheel = Wheel("ball", 0.2, kind=kind, axis=axis, support=support)
    gravity = (0, 0, 0) if globe == "floats" else DOWN
    return Mechanism("balls", bodies, [wheel], gravity, actuated=[])


def test_disk_against_its_contact() -> None:
    robot = disk(0.3)
    oracle = Pinocchio(robot)

    def slip(q: np.ndarray) -> np.ndarray:
        pose = oracle.pose(q, "disk")
        edge = np.cross(np.cross([0, 0, 1.0], pose[:3, 1]), pose[:3, 1])  # downwards in the disk
        point = pose[:3, 3] + RADIUS * edge / np.linalg.norm(edge)
        return at_point(oracle, q, "disk", point)

    model = reduce(robot)
    assert isinstance(model, WheelReduction)
    assert model.shape_names == ("disk[wx]", "disk[wy]", "disk[wz]")
    assert robot.ground_height is None
    check_motion(model, slip, 0)


@pytest.mark.parametrize("wheels", [1, 2])
def test_wheels_under_a_frame_that_tilts(wheels: int) -> None:
    # A unicycle; and two wheels on one axle, whose contacts along the axle are one row.
    frame = Inertia(5.0, (0.02, 0, 0.3), (0.3, 0.2, 0.1))
    bodies = [Body("frame", joints.Free(), None, Pose((0, 0, 0.1)), frame)]
    round_one = Inertia(1.0, moments=(0.003, 0.005, 0.003))
    for i, y in enumerate([0.0] if wheels == 1 else [0.25, -0.25]):
        bodies.append(
            Body(f"wheel_{i}", joints.Revolute((0, 1, 0)), "frame", Pose((0, y, 0)), round_one)
        )
    rolling = [Wheel(body.name, 0.1, support=Support()) for body in bodies[1:]]
    robot = Mechanism("cycle", bodies, rolling, DOWN)
    oracle, model = Pinocchio(robot), reduce(robot)
    assert model.ns == {1: 4, 2: 3}[wheels]

    def slip(q: np.ndarray) -> np.ndarray:
        rows = []
        for wheel in rolling:
            pose = oracle.pose(q, wheel.body)
            edge = np.cross(np.cross([0, 0, 1.0], pose[:3, 1]), pose[:3, 1])
            point = pose[:3, 3] + 0.1 * edge / np.linalg.norm(edge)
            rows.append(at_point(oracle, q, wheel.body, point))
        return np.vstack(rows)

    check_motion(model, slip, 0)


def test_disk_moves_as_the_classical_equations() -> None:
    # Angle theta between the axis and the vertical, its precession and the spin about the axis.
    def rates(t: float, x: np.ndarray) -> list[float]:
        theta, rate, turn, spin = x
        sine, cosine = np.sin(theta), np.cos(theta)
        rolling = AXIAL + MASS * RADIUS**2
        pull = ACROSS * turn**2 * sine * cosine - rolling * turn * spin * sine
        bend = (pull - MASS * GRAVITY * RADIUS * cosine) / (ACROSS + MASS * RADIUS**2)
        turning = (AXIAL * spin - 2 * ACROSS * turn * cosine) * rate / (ACROSS * sine)
        return [rate, bend, turning, MASS * RADIUS**2 * turn * sine * rate / rolling]

    lean, spin = 0.3, -6.0
    theta = np.pi / 2 - lean  # the axis leans up by `lean`
    # Steady circles: pull = weight, for the slower of two rates of precession.
    steady = np.roots(
        [
            ACROSS * np.sin(theta) * np.cos(theta),
            -(AXIAL + MASS * RADIUS**2) * spin * np.sin(theta),
            -MASS * GRAVITY * RADIUS * np.cos(theta),
        ]
    )
    turn = steady[np.abs(steady).argmin()]
    for rate, precession in ((0.0, turn), (0.2, 0.7 * turn)):
        # In the neutral pose x is horizontal, y the axis and z in the disk, upwards.
        s0 = [-rate, spin, precession * np.sin(theta)]
        motion = forced_motion(reduce(disk(lean)), None, 2.0, disk(lean).neutral(), s0, dt=0.1)
        start = [theta, rate, precession, spin]
        expected = solve_ivp(rates, (0, 2), start, "DOP853", motion.t, rtol=1e-12, atol=1e-12).y
        axis = Rotation.from_quat(motion.q[:, 3:]).apply([0, 1, 0])
        axis = Rotation.from_euler("x", lean).apply(axis)
        assert_allclose(np.arccos(axis[:, 2]), expected[0], rtol=0, atol=1e-8)
        assert_allclose(motion.s[:, 1], expected[3], rtol=0, atol=1e-8)
        assert (np.ptp(expected[0]) < 1e-10) == (rate == 0.0)
        assert np.abs(motion.energy_balance).max() < 1e-10
        check_contacts(disk(lean), motion.q[-1], "end")


def test_flat_disk_is_singular() -> None:
    robot, model = disk(0.3), reduce(disk(0.3))
    for lean in (0.0, 0.7, 1.5):
        q = robot.neutral()
        q[3:] = Rotation.from_euler("x", lean - 0.3).as_quat()
        assert model.regularity(q) == pytest.approx(np.cos(lean), rel=1e-12)
    for angle, flat in ((1.1e-6, False), (0.9e-6, True)):
        q[3:] = Rotation.from_euler("x", np.pi / 2 - angle - 0.3).as_quat()
        rise = RADIUS * np.sin(angle) - RADIUS * np.cos(0.3)
        q[:3] = Rotation.from_euler("x", -0.3).apply([0, 0, rise])  # in the axes of the placement
        if flat:
            with pytest.raises(WheelError, match="a disk that lies flat"):
                forced_motion(model, None, 1.0, q, [0.0, 1.0, 0.0], dt=0.1)
        else:
            check_contacts(robot, q, "start")
    with pytest.raises(WheelError, match="lies flat"):
        disk(np.pi / 2)


def test_gap_at_the_start_is_refused() -> None:
    robot, model = disk(), reduce(disk())
    q = robot.neutral()
    for gap, touches in ((0.9e-6, True), (1.1e-6, False)):  # the size is the diameter, 1 m
        q[2] = gap
        if touches:
            forced_motion(model, None, 0.1, q, [0.0, 1.0, 0.0], dt=0.1)
            continue
        with pytest.raises(WheelError, match=r"a gap of 1\.1e-06 m"):
            forced_motion(model, None, 0.1, q, [0.0, 1.0, 0.0], dt=0.1)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("globe", [None, "turns", "floats"])
@pytest.mark.parametrize(
    ("kind", "hollow"), [("ball", False), ("rubber_ball", True), ("disk", False), ("disk", True)]
)
def test_contact_along_the_line_of_centres(kind: str, hollow: bool, globe: str | None) -> None:
    robot = on_sphere(kind, hollow, globe)
    oracle = Pinocchio(robot)
    side = -1.0 if hollow else 1.0

    def slip(q: np.ndarray) -> np.ndarray:
        ball = oracle.pose(q, "ball")
        middle = oracle.pose(q, "globe")[:3, 3] if globe else np.zeros(3)
        normal = side * (ball[:3, 3] - middle)
        if kind == "disk":
            axis = ball[:3, 1]
            normal = normal - axis * (axis @ normal)
        normal /= np.linalg.norm(normal)
        point = ball[:3, 3] - 0.2 * normal
        columns = at_point(oracle, q, "ball", point)
        turning = ball[:3, :3] @ oracle.jacobian(q, "ball")[3:]
        if globe:
            columns = columns - at_point(oracle, q, "globe", point)
            turning = turning - oracle.pose(q, "globe")[:3, :3] @ oracle.jacobian(q, "globe")[3:]
        return np.vstack([columns, normal @ turning]) if kind == "rubber_ball" else columns

    model = reduce(robot, momentum=(1, 2, 3, 0.1, 0.2, 0.3) if globe == "floats" else None)
    assert (model.kind == "symplectic") == (globe == "floats")
    check_motion(model, slip, 1)
    q, rng = robot.neutral(), np.random.default_rng(3)
    motion = forced_motion(model, None, 0.3, q, rng.uniform(-1, 1, model.ns), dt=0.1)
    assert np.abs(motion.energy_balance).max() < 1e-10
    check_contacts(robot, motion.q[-1], "end")


def test_what_has_no_smooth_contact_is_refused(tmp_path: Path) -> None:
    for support, size, message in (
        (Support(radius=0.2, hollow=True), 0.2, "would not be in one point"),
        (Support(radius=0.5), 0.21, "a gap of -0.01 m"),
        (Support("ball"), 0.2, "which is fixed to it"),
    ):
        body = Body("ball", joints.Free(), None, Pose((0, 0, 0.7)), BALL)
        with pytest.raises(WheelError, match=message):
            Mechanism("a", [body], [Wheel("ball", size, kind="ball", support=support)])
    Wheel("ball", 0.19, kind="ball", support=Support(radius=0.2, hollow=True))
    for kind, options in (("omni", {}), ("slider", {"axis": (0, 1, 0)})):
        with pytest.raises(WheelError, match="in one point"):
            Wheel("ball", 0.2, kind=kind, support=Support(), **options)
    for options, message in (
        ({"radius": 0.0}, "above zero"),
        ({"hollow": True}, "sphere only"),
    ):
        with pytest.raises(WheelError, match=message):
            Support(**options)
    with pytest.raises(WheelError, match="no `ground`"):
        Wheel("ball", 0.2, kind="ball", ground=0.0, support=Support())
    # The plane of the disk passes the sphere at 0.3 m from its centre: the face is in the way.
    lying = Pose((0.1, 0.3, 0.0))
    body = Body("disk", joints.Free(), None, lying, BALL)
    wheel = Wheel("disk", 0.2, axis=(0, 1, 0), support=Support(radius=0.5))
    with pytest.raises(WheelError, match="flat face"):
        Mechanism("b", [body], [wheel])
    disk(0.2).save(tmp_path / "disk.toml")
    text = (tmp_path / "disk.toml").read_text("utf-8")
    (tmp_path / "box.toml").write_text(text.replace("support = {}", "support = {box = 1.0}"))
    with pytest.raises(ConcurError, match=r"support\.box.*planes and spheres"):
        load(tmp_path / "box.toml")
    for robot in (disk(0.2), on_sphere("rubber_ball", True, "floats")):
        robot.save(tmp_path / "robot.toml")
        assert load(tmp_path / "robot.toml") == robot
    with pytest.raises(ConcurError, match="another body or surface"):
        disk().save(tmp_path / "disk.xml")


def test_rows_that_a_joint_keeps_and_stands_that_do_not_move() -> None:
    # A planar joint keeps the contact closed already: its row is zero.
    bodies = [
        Body("cart", joints.Planar((0.0, 0.6, 0.8)), None, Pose((0, 0, 0.2)), BALL),
        Body("wheel", joints.Revolute((0, 0.8, -0.6)), "cart", Pose(), BALL),
    ]
    plane = Support(center=(0, -0.06, 0.12), normal=(0, 0.6, 0.8))
    plain, held = (
        reduce(Mechanism("cart", bodies, [Wheel("wheel", 0.1, support=support)], DOWN))
        for support in (None, plane)
    )
    assert plain.shape == held.shape
    q = plain.robot.random(np.random.default_rng(2))
    assert_allclose(plain.lift(q)[0], held.lift(q)[0], rtol=0, atol=1e-13)
    for size, expected in ((0.9e-12, 0.0), (1.1e-12, 1.0)):
        rows = np.diag([1.0, size]) @ np.eye(2, 4)
        assert comparable_rows(held.robot, rows)[1, 1] == expected
    # Balls on balls on a stand, not one on the other in the tree.
    poses = {"low": 0.3, "high": 0.8}
    balls = [Body(name, joints.Free(), "stand", Pose((0, 0, z)), BALL) for name, z in poses.items()]
    wheels = [
        Wheel("low", 0.3, "ball", support=Support()),
        Wheel("high", 0.2, "ball", support=Support("low", radius=0.3)),
    ]
    robot = Mechanism("pair", [Body("stand", joints.Fixed()), *balls], wheels, DOWN, actuated=[])
    oracle = Pinocchio(robot)
    q, rng = robot.neutral(), np.random.default_rng(3)
    model = reduce(robot)
    v = model.velocity(q, rng.normal(size=model.ns))
    low, high = (at_point(oracle, q, name, np.array([0, 0, 0.6])) for name in poses)
    assert_allclose(at_point(oracle, q, "low", np.zeros(3)) @ v, 0.0, rtol=0, atol=1e-13)
    assert_allclose(low @ v, high @ v, rtol=0, atol=1e-13)
