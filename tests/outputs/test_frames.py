"""Outputs on right translates of subgroups: turned frames, tilted planes, mounted bodies."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import block_diag, logm
from scipy.spatial.transform import Rotation

from concur.errors import NonFiniteError, OutputError, ShapeError
from concur.outputs import Output
from concur.outputs._kinematics import check_planar
from concur.outputs._motion import output_motion
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.control._cases import PoseCurve, refused
from tests.groups.oracles import conjugation, twist_of
from tests.oracles import assert_close, difference_quotient
from tests.outputs.test_groups import acceleration, coordinates, numeric, velocity

POINT = (0.2, -0.1, 0.3)
TURN = Rotation.from_rotvec([0.7, -1.1, 0.4])
TOOL = np.eye(4)
TOOL[:3, :3], TOOL[:3, 3] = TURN.as_matrix(), POINT
tooled = pytest.mark.parametrize("group", ["SE3", "R3xSO3", "SO3"])


def tool(group: str) -> Output:
    return Output("tool", "body", group, POINT, orientation=tuple(TURN.as_quat()))


def parts(output: Output) -> tuple[Callable[..., np.ndarray], ...]:
    """Coordinates, velocity and acceleration of an output as functions of a body's motion."""
    return coordinates(output), velocity(output), acceleration(output)


# The frame of a tool


def arm() -> Mechanism:
    """A floating body with two joints at odd angles; nothing is along an axis."""
    inertia = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [
        Body("base", joints.Free(), inertia=inertia),
        Body("link", joints.Revolute((1, 2, -1)), "base", Pose((0.3, 0.1, -0.2)), inertia),
        Body("body", joints.Revolute((0, -1, 3)), "link", Pose((0.2, 0.4, 0.1)), inertia),
    ]
    return Mechanism("arm", bodies)


@tooled
def test_jacobian_is_that_of_a_body_fixed_in_the_tools_frame(group: str) -> None:
    robot = arm()
    extended = Mechanism(
        "extended",
        [
            *robot.bodies,
            Body("tip", joints.Fixed(), "body", Pose(POINT, tuple(TURN.as_quat())), Inertia(0)),
        ],
    )
    q, rng = ca.SX.sym("q", robot.nq), np.random.default_rng(2)
    tip = Output("tip", "tip", group)
    moved = [output_motion(r, [o], q) for r, o in ((robot, tool(group)), (extended, tip))]
    graphs = [ca.Function("f", [q], [motion.coordinates, motion.jacobian]) for motion in moved]
    for _ in range(3):
        state = robot.random(rng)
        found, wanted = ([np.array(x) for x in graph(state)] for graph in graphs)
        assert_allclose(found[0], wanted[0], rtol=0, atol=1e-12)
        assert_allclose(found[1], wanted[1], rtol=0, atol=1e-12)


def test_frame_of_an_output() -> None:
    assert_allclose(tool("SE3").frame.matrix, TOOL, atol=1e-15)
    assert Output("o", "b", "SE3", orientation=(0, 0, 0, -1)).frame.rotation == (0, 0, 0, 1)
    assert Output("o", "b", "R3", orientation=(0, 0, 0, -1)) == Output("o", "b", "R3")
    rounded = Output("o", "b", "SO3", orientation=(0.5, 0.5, 0.5, 0.5001))
    assert np.linalg.norm(rounded.orientation) == pytest.approx(1.0, abs=1e-15)
    assert len({tool("SE3"), tool("SE3"), Output("tool", "body", "SE3", POINT)}) == 2


# Planes

NORMALS = {
    "z": (0.0, 0.0, 1.0),
    "y": (0.0, 1.0, 0.0),
    "x": (2.0, 0.0, 0.0),
    "down": (0.0, 0.0, -1.0),
    "slanted": (0.3, -0.5, 0.8),
}
planes = pytest.mark.parametrize("plane", NORMALS)
planar = pytest.mark.parametrize("group", ["SE2", "SO2"])
MOUNTINGS = [Rotation.identity(), Rotation.from_rotvec([0.5, -0.3, 0.9])]


def axes_of(normal: tuple[float, ...]) -> np.ndarray:
    """Inertial axes turned the shortest way that takes z to a normal, by SciPy."""
    n = np.array(normal) / np.linalg.norm(normal)
    axis = np.cross([0.0, 0.0, 1.0], n)
    if np.linalg.norm(axis) < 1e-12:
        axis = np.array([1.0, 0.0, 0.0])
    angle = np.arctan2(np.linalg.norm(np.cross([0.0, 0.0, 1.0], n)), n[2])
    return Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()


def in_plane(normal: tuple[float, ...]) -> np.ndarray:
    """The plane's frame, at a height above the origin, as a pose."""
    frame = np.eye(4)
    frame[:3, :3] = axes_of(normal)
    frame[:3, 3] = 0.4 * frame[:3, 2]
    return frame


def planar_pose(x: float, y: float, heading: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0, 0, heading]).as_matrix()
    pose[:2, 3] = x, y
    return pose


def mounted(turn: Rotation) -> tuple[np.ndarray, float]:
    """A right translate by an attitude and an offset, and the heading that it adds."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn.as_matrix(), [0.1, -0.3, 0.2]
    return pose, float(np.arctan2(pose[1, 0], pose[0, 0]))


@planes
@pytest.mark.parametrize("turn", MOUNTINGS, ids=["along", "tilted"])
def test_coordinates_are_those_in_the_plane(plane: str, turn: Rotation) -> None:
    frame, (mount, extra) = in_plane(NORMALS[plane]), mounted(turn)
    body = frame @ planar_pose(0.7, -0.4, 0.9) @ mount
    place = (planar_pose(0.7, -0.4, 0.9) @ mount)[:2, 3]
    found = parts(Output("o", "b", "SE2", normal=NORMALS[plane]))[0](body)
    assert_allclose(found, [*place, 0.9 + extra], rtol=0, atol=1e-14)
    heading = parts(Output("o", "b", "SO2", POINT, normal=NORMALS[plane]))[0](body)
    assert_allclose(heading, [0.9 + extra], rtol=0, atol=1e-14)


@planes
@planar
def test_velocity_and_acceleration_are_rates_in_the_plane(plane: str, group: str) -> None:
    frame, (mount, _) = in_plane(NORMALS[plane]), mounted(MOUNTINGS[1])
    back = conjugation(np.linalg.inv(mount))
    output = Output("o", "b", group, POINT, normal=NORMALS[plane], orientation=TURN.as_quat())
    place, speed, push = parts(output)
    motion = PoseCurve(
        planar_pose(1.0, 2.0, 0.6),
        np.array([0.4, -0.3, 0, 0, 0, 0.9]),
        np.array([-0.2, 0.5, 0, 0, 0, 0.7]),
    )

    def body(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        (pose,), (twist,), (change,) = motion.motion(np.array([t]))
        return frame @ pose @ mount, back @ twist, back @ change

    def rate(t: float) -> np.ndarray:
        slope = difference_quotient(lambda h: place(body(t + h)[0]), 2e-3)
        if group == "SO2":
            return slope
        cos, sin = np.cos(place(body(t)[0])[2]), np.sin(place(body(t)[0])[2])
        return block_diag([[cos, sin], [-sin, cos]], 1.0) @ slope

    for t in (0.1, 0.6, 1.0):
        pose, twist, change = body(t)
        assert_close(speed(pose, twist), rate(t), 1e-9)
        wanted = difference_quotient(lambda h, t=t: rate(t + h), 2e-2)
        assert np.abs(wanted).max() > 0.1
        assert_close(push(pose, twist, change), wanted, 1e-6)


@planes
def test_planar_joint_and_output_share_their_plane(plane: str) -> None:
    # A planar base's own coordinates are those of an output on it.
    robot = Mechanism(
        "sled",
        [Body("b", joints.Planar(NORMALS[plane]), inertia=Inertia(1.0, moments=(0.1, 0.1, 0.1)))],
    )
    q = np.array([0.4, -0.7, 1.1])
    frame = np.eye(4)
    frame[:3, :3] = axes_of(NORMALS[plane])
    # The base's frame is along the inertial axes at q = 0, so turn the output's to the plane's.
    output = Output(
        "o",
        "b",
        "SE2",
        normal=NORMALS[plane],
        orientation=Rotation.from_matrix(frame[:3, :3]).as_quat(),
    )
    assert_allclose(parts(output)[0](robot.pose(q, "b")), q, rtol=0, atol=1e-14)
    check_planar("here", robot, output, lambda _: np.eye(3))


def test_the_upright_plane_is_the_default() -> None:
    for group in ("SE2", "SO2"):
        assert Output("o", "b", group, normal=(0, 0, 3)) == Output("o", "b", group)
        assert Output("o", "b", group, normal=[0, 0, 3]).normal == (0.0, 0.0, 1.0)


# CON6: the algebra of a right translate


@planes
def test_errors_of_a_mounted_body_lie_in_the_translated_algebra(plane: str) -> None:
    """Misprint 001-45."""
    # r = b g r0, gamma = b h r0 with g, h in SE(2): log(r^-1 gamma) = Ad_(r0^-1) log(g^-1 h), and
    # the output's error is log(g^-1 h) for g, h seen in the axes of the heading.
    frame, (mount, extra) = in_plane(NORMALS[plane]), mounted(MOUNTINGS[1])
    output = Output("o", "b", "SE2", normal=NORMALS[plane])
    place, error = parts(output)[0], numeric(output.lie.error, (3,), (3,))
    actual, wanted = (frame @ planar_pose(*x) @ mount for x in ((1, 2, 0.4), (1.3, 1.6, 1.9)))
    own = twist_of(logm(np.linalg.inv(actual) @ wanted).real)
    # From the body's axes to those of its heading, at its own origin.
    upright = np.eye(4)
    upright[:3, :3] = Rotation.from_rotvec([0, 0, extra]).as_matrix().T @ mount[:3, :3]
    seen = conjugation(upright) @ own
    assert np.abs(own[3:5]).max() > 0.1
    assert_close(seen[2:5], np.zeros(3), 1e-12)
    assert_close(error(place(actual), place(wanted)), seen[[0, 1, 5]], 1e-11)


# What does not fit


def sled(normal: tuple[float, ...], mount: Pose | None = None) -> Mechanism:
    inertia = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    return Mechanism(
        "sled",
        [
            Body("base", joints.Planar(normal), inertia=inertia),
            Body("b", joints.Fixed(), "base", mount or Pose(), inertia),
            Body("head", joints.Revolute((1, 0, 0)), "base", Pose(), inertia),
        ],
    )


def planar_check(robot: Mechanism, output: Output) -> None:
    check_planar("here", robot, output, lambda q: np.eye(robot.nv))


@planes
@planar
def test_bodies_mounted_at_any_attitude_have_a_heading(plane: str, group: str) -> None:
    mount = Pose((0.1, 0.2, 0.3), tuple(MOUNTINGS[1].as_quat()))
    planar_check(sled(NORMALS[plane], mount), Output("o", "b", group, normal=NORMALS[plane]))


@planar
def test_a_body_that_turns_in_another_plane_is_refused(group: str) -> None:
    error = refused(
        OutputError,
        lambda: planar_check(sled((0, 1, 0)), Output("o", "b", group)),
        where="here, output `o`",
        expected="turns about the inertial z axis only",
        came="body `b`, which can tilt",
    )
    assert "`normal`" in error.cure
    refused(
        OutputError,
        lambda: planar_check(sled((0, 0, 1)), Output("o", "b", group, normal=(0, 1, 0))),
        expected="about the inertial axis (0, 1, 0) only",
    )
    refused(
        OutputError, lambda: planar_check(sled((0, 0, 1)), Output("o", "head", group)), came="tilt"
    )


@planar
def test_a_frame_whose_x_axis_is_along_the_normal_has_no_heading(group: str) -> None:
    robot = sled((1.0, 0.0, 0.0))
    output = Output("o", "b", group, normal=(1, 0, 0))
    error = refused(OutputError, lambda: planar_check(robot, output), came="has no heading")
    assert "`orientation`" in error.cure
    half = np.sqrt(0.5)
    turned = Output("o", "b", group, normal=(1, 0, 0), orientation=(0, 0, half, half))
    planar_check(robot, turned)


@pytest.mark.parametrize("group", ["R", "R2", "R3"])
def test_vectors_have_no_orientation(group: str) -> None:
    refused(
        OutputError,
        lambda: Output("o", "b", group, orientation=TURN.as_quat()),
        where="output `o`, `orientation`",
        expected=f"none for group {group}",
    )


@pytest.mark.parametrize("group", ["R2", "R3", "SO3", "SE3", "R3xSO3"])
def test_only_planes_have_a_normal(group: str) -> None:
    refused(
        OutputError,
        lambda: Output("o", "b", group, normal=(0, 1, 0)),
        where="output `o`, `normal`",
        expected="SE2 and SO2",
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "where", "came"),
    [
        ({"orientation": (0, 0, 1)}, ShapeError, "orientation", "shape (3,)"),
        ({"orientation": (0, 0, 1, 1)}, ShapeError, "orientation", "norm 1.41421"),
        ({"orientation": (0, 0, 0, 0)}, ShapeError, "orientation", "norm 0"),
        ({"orientation": (0, 0, 0, np.nan)}, NonFiniteError, "orientation", "nan"),
        ({"orientation": "up"}, ShapeError, "orientation", "str 'up'"),
        ({"normal": (0, 0)}, ShapeError, "normal", "shape (2,)"),
        ({"normal": (0, 0, 0)}, ShapeError, "normal", "(0.0, 0.0, 0.0)"),
        ({"normal": (0, 0, np.inf)}, NonFiniteError, "normal", "inf"),
    ],
)
def test_bad_frames(arguments: dict, kind: type, where: str, came: str) -> None:
    refused(kind, lambda: Output("o", "b", "SE2", **arguments), where=f"`{where}`", came=came)
