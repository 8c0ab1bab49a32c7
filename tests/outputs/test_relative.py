"""Outputs in the frame of another body, against Pinocchio, quotients and textbook kinematics."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from concur import robots
from concur.certify import operating_bounds
from concur.control import InverseKinematicsSolver, Servo, taken_velocities
from concur.errors import OutputError, UnknownNameError
from concur.io import load_task
from concur.outputs import Output, ReferenceSample
from concur.outputs._motion import output_motion
from concur.outputs.references import hold, polynomial, stack
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.show._outputs import places
from concur.simulation import Integrator, Run, simulate
from tests.control._cases import refused
from tests.oracles import (
    Pinocchio,
    assert_close,
    random_floater,
    random_rover,
    random_tree,
)

POINT = (0.2, -0.1, 0.3)
TURN = Rotation.from_rotvec([0.7, -1.1, 0.4])
GROUPS = ("R3xSO3", "SE3", "SO3", "R3", "R2", "R")


def relative(group: str, body: str, origin: str) -> Output:
    turned = {"orientation": tuple(TURN.as_quat())} if "SO3" in group or group == "SE3" else {}
    axes = {"axes": "zx"} if group == "R2" else {}
    return Output(group, body, group, POINT, relative_to=origin, **turned, **axes)


def by_hand(  # type: ignore[no-untyped-def]
    oracle: Pinocchio, q: np.ndarray, v: np.ndarray, vdot: np.ndarray, body: str, origin: str
):
    """Position, rotation, velocities and accelerations of the tool for an observer on `origin`.

    Motions of points in a rotating frame, with the accelerations of Euler, Coriolis and the
    centripetal one written out in inertial axes.
    """
    seen = []
    for name, point in ((origin, np.zeros(3)), (body, np.array(POINT))):
        pose, jacobian = oracle.pose(q, name), oracle.jacobian(q, name)
        rotation = pose[:3, :3]
        twist = jacobian @ v
        rate = jacobian @ vdot + oracle.velocity_product(q, v, name)
        w, alpha = rotation @ twist[3:], rotation @ rate[3:]
        way = rotation @ point
        speed = rotation @ twist[:3] + np.cross(w, way)
        pull = rotation @ (rate[:3] + np.cross(twist[3:], twist[:3]))
        pull = pull + np.cross(alpha, way) + np.cross(w, np.cross(w, way))
        seen.append((pose[:3, 3] + way, rotation, speed, w, pull, alpha))
    (x0, frame, u0, w0, a0, alpha0), (x1, turned, u1, w1, a1, alpha1) = seen
    way = x1 - x0
    tool = turned @ TURN.as_matrix()
    moving = u1 - u0 - np.cross(w0, way)
    pulled = a1 - a0 - np.cross(alpha0, way) - np.cross(w0, np.cross(w0, way))
    pulled = pulled - 2 * np.cross(w0, moving)
    spin, spun = w1 - w0, alpha1 - alpha0 - np.cross(w0, w1 - w0)
    return (
        (frame.T @ way, frame.T @ tool),
        (frame.T @ moving, tool.T @ spin),
        (frame.T @ pulled, tool.T @ spun),
    )


def expected(group: str, found: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    (place, rotation), (speed, spin), (pull, spun) = found
    quaternion = Rotation.from_matrix(rotation).as_quat()
    if group in ("R3", "R2", "R"):
        rows = {"R3": [0, 1, 2], "R2": [2, 0], "R": [0]}[group]
        return place[rows], speed[rows], pull[rows]
    if group == "SO3":
        return quaternion, spin, spun
    pose = np.array([*place, *quaternion])
    if group == "R3xSO3":
        return pose, np.array([*speed, *spin]), np.array([*pull, *spun])
    own = rotation.T @ speed
    return (
        pose,
        np.array([*own, *spin]),
        np.array([*(rotation.T @ pull - np.cross(spin, own)), *spun]),
    )


@cache
def machines() -> tuple[tuple[Mechanism, tuple[tuple[str, str], ...]], ...]:
    """Robots with pairs of bodies: neither, one or the other on the way from the base."""
    found = []
    for robot in (
        random_floater("Free", 1),
        random_rover(3).robot,
        random_tree(4),
    ):
        rng = np.random.default_rng(len(found))
        names = [body.name for body in robot.bodies]
        pairs = [(names[-1], names[0]), (names[0], names[-2])]
        while len(pairs) < 3:
            body, origin = rng.choice(names, 2, replace=False)
            way = set(robot.path(robot.index(body))) ^ set(robot.path(robot.index(origin)))
            if any(robot.bodies[i].joint.nv for i in way):
                pairs.append((str(body), str(origin)))
        found.append((robot, tuple(pairs)))
    return tuple(found)


@pytest.mark.extended
def test_motion_is_that_of_pinocchio_composed_by_hand() -> None:
    for robot, pairs in machines():
        oracle, rng = Pinocchio(robot), np.random.default_rng(7)
        q, v, vdot = (
            ca.SX.sym(n, k) for n, k in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv))
        )
        outputs = [relative(group, *pair) for pair in pairs for group in GROUPS]
        graphs = []
        for base_axes in (False, True):
            moved = output_motion(robot, outputs, q, v, vdot, base_axes)
            parts = (moved.coordinates, moved.velocity, moved.acceleration)
            jacobian = moved.unturned(moved.jacobian)
            graphs.append(ca.Function("f", [q, v, vdot], [*map(ca.densify, (*parts, jacobian))]))
        for _ in range(2):
            state = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
            wanted = [
                expected(group, by_hand(oracle, *state, *pair))
                for pair in pairs
                for group in GROUPS
            ]
            pose, velocity, acceleration = (
                np.concatenate(part) for part in zip(*wanted, strict=True)
            )
            for graph in graphs:
                found = [np.array(part) for part in graph(*state)]
                signs = _aligned(outputs, found[0][:, 0], pose)
                assert_close(found[0][:, 0], signs, 1e-9)
                assert_close(found[1][:, 0], velocity, 1e-9)
                assert_close(found[3] @ state[1], velocity, 1e-9)
                assert_close(found[2][:, 0], acceleration, 1e-9)
                assert np.abs(velocity).max() > 0.1 < np.abs(acceleration).max()


def _aligned(outputs: list[Output], found: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Wanted poses with the quaternions' signs as found."""
    pose, start = pose.copy(), 0
    for output in outputs:
        if "SO3" in output.group or output.group == "SE3":
            part = slice(start + output.pose_size - 4, start + output.pose_size)
            pose[part] *= np.sign(pose[part] @ found[part])
        start += output.pose_size
    return pose


def hands(group: str = "R3xSO3", **options: object) -> Servo:
    """The servicer with both hands relative: the right to the left, the left to the satellite."""
    outputs = [
        Output("left", "left_hand", group, relative_to="satellite"),
        Output("right", "right_hand", group, relative_to="left_hand"),
    ]
    return Servo(reduce(robots.servicer()), outputs, [4.0, 9.0], [4.0, 6.0], **options)


BENT = [0.1, 0.4, 0.2, -1.2, 0.5, 0.3, 0.1]
START = np.array([0.3, -0.2, 0.1, 0.0, 0.0, 0.0, 1.0, *BENT, *(-1.0) ** np.arange(7) * BENT])


def test_law_does_not_depend_on_where_the_base_is() -> None:
    servo = hands()
    rng = np.random.default_rng(0)
    s = 0.1 * rng.normal(size=servo.ns)
    pose = servo.output(START + np.r_[np.zeros(7), 0.1 * rng.normal(size=14)])
    sample = ReferenceSample(pose, 0.1 * rng.normal(size=12), 0.1 * rng.normal(size=12))
    moved = START.copy()
    moved[:7] = [5.0, -2.0, 1.0, *Rotation.from_rotvec([0.4, 2.0, -1.0]).as_quat()]
    there, tick = servo.torque(moved, s, sample), servo.compile(interpreted=True)
    assert_close(there, servo.torque(START, s, sample), 1e-10)
    assert_close(tick(moved, s, sample), there, 1e-10)
    assert np.abs(there).max() > 0.1
    # Neither do the outputs of a base that tumbles.
    v = rng.normal(size=servo.nv)
    tumbling = v + np.r_[rng.normal(size=6), np.zeros(14)]
    robot, q, w = servo.model.robot, ca.SX.sym("q", servo.nq), ca.SX.sym("v", servo.nv)
    seen = output_motion(robot, servo.outputs, q, w)
    exact = ca.Function("f", [q, w], [seen.coordinates, seen.velocity, seen.acceleration])
    for ours, others in zip(exact(START, v), exact(moved, tumbling), strict=True):
        assert np.array_equal(np.array(ours), np.array(others))


def check_loop(servo: Servo, run: Run, parts: dict[int, float]) -> None:
    """Compare errors of three coordinates from each start with x0, v0 and the rate w.

    Critically damped: (x0 + (v0 + w x0) t) exp(-w t).
    """
    assert np.abs(run.deviation).max() < 1e-7
    moving = servo.motion(run.q[0], servo.velocity(run.q[0], taken_velocities(servo, run.v[0])))[0]
    t = run.t[:, None]
    for start, w in parts.items():
        part = slice(start, start + 3)
        x0, v0 = run.error[0, part], -moving[part]
        expected = (x0 + (v0 + w * x0) * t) * np.exp(-w * t)
        assert np.abs(x0).max() > 0.03
        assert_allclose(run.error[:, part], expected, rtol=0, atol=1e-7)


def test_closed_loop_of_a_hand_on_its_rover_follows_the_exact_error_dynamics() -> None:
    robot = robots.rover_arm()
    outputs = [
        Output("base", "chassis", "R2", (0.25, 0.0, 0.0)),
        Output("hand", "forearm", "R3", (0.0, 0.2, 0.0), relative_to="chassis"),
    ]
    servo = Servo(reduce(robot), outputs, [4.0, 9.0], [4.0, 6.0])
    q0 = robot.neutral()
    q0[robot.q_slice("upper_arm")], q0[robot.q_slice("forearm")] = 0.8, -1.0
    place = servo.output(q0)
    # The rover turns away while the hand's reference is fixed to it.
    path = polynomial([place[:2], [0.3, 0.2]])
    reference = stack(path, hold(place[2:] + np.array([0.05, -0.04, 0.03])))
    s0 = 0.2 * np.ones(servo.ns)
    run = simulate(robot, servo, reference, 1.0, q0, s0, dt=Integrator("rk4", 0.01))
    check_loop(servo, run, {2: 3.0})
    assert abs(run.q[-1, 2] - q0[2]) > 0.1


def test_bounds_on_operation_of_a_relative_output_do_not_need_the_heading() -> None:
    outputs = [
        Output("base", "chassis", "R2", (0.25, 0.0, 0.0)),
        Output("hand", "forearm", "R3", (0.0, 0.2, 0.0), relative_to="chassis"),
    ]
    servo = Servo(reduce(robots.rover_arm()), outputs, [4.0, 9.0], [4.0, 6.0])
    # The first coordinates without a range would be those of the chassis.
    ranges = {"upper_arm": (0.6, 1.0), "forearm": (-1.2, -0.8)}
    refused(OutputError, lambda: operating_bounds(servo, ranges), came="no range for turret")


def test_inverse_kinematics_moves_only_the_joints_between() -> None:
    robot = robots.servicer()
    output = Output("grip", "right_hand", "R3xSO3", relative_to="left_hand")
    solver = InverseKinematicsSolver(robot, [output], limits=False)
    assert set(solver.moving) == {b.name for b in robot.bodies if b.name != "satellite"}
    target = [0.0, -0.8, 0.0, 0.0, 0.0, 0.0, 1.0]
    found = solver.solve(target, START)
    assert found.solved, found.why
    oracle = Pinocchio(robot)
    poses = [oracle.pose(found.q, name) for name in ("left_hand", "right_hand")]
    wanted = np.eye(4)
    wanted[1, 3] = -0.8
    assert_allclose(np.linalg.inv(poses[0]) @ poses[1], wanted, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_bar_stays_in_two_hands(tmp_path: Path) -> None:
    task = load_task(Path(__file__).parents[2] / "examples" / "two_hands.toml")
    servo = task.servo
    run = task.simulate(servo)
    assert all(finding.holds is not False for finding in run.findings(task.tolerances))
    assert np.abs(run.deviation).max() < 1e-10
    # The grips hold to 2 micrometres while the bar comes from 0.09 m away and moves 0.3 m.
    assert np.linalg.norm(run.error[0, :3]) > 0.08
    assert np.linalg.norm(run.error[:, 6:], axis=1).max() < 2e-6
    oracle = Pinocchio(task.robot)
    for q in run.q[::400]:
        left, right = (oracle.pose(q, name) for name in ("left_hand", "right_hand"))
        apart = (np.linalg.inv(left) @ right)[:3]
        assert_allclose(apart, np.c_[np.eye(3), [0.0, -0.8, 0.0]], rtol=0, atol=2e-6)
    assert np.linalg.norm(run.pose[-1, :3] - run.pose[0, :3]) > 0.25
    # A relative position has no path in the inertial frame.
    assert [place.output.name for place in places(run) if place.is_path] == ["bar"]
    # Native code takes the same law.
    with_reference = task.reference(2.0)
    s = taken_velocities(servo, run.v[400])
    torque = servo.torque(run.q[400], s, with_reference)
    assert_close(servo.compile()(run.q[400], s, with_reference), torque, 1e-10)
    servo.export(tmp_path)
    manifest = (tmp_path / "manifest.json").read_text("utf-8")
    assert manifest.count('"relative_to": "left_hand"') == 1
    header = "".join(path.read_text("utf-8") for path in tmp_path.glob("*.h"))
    assert "grip: R3xSO3 of right_hand relative to left_hand" in header
    assert "grip: linear in axes of left_hand" in header


def test_plane_of_a_relative_output_turns_with_its_body() -> None:
    # Both hands turn about one axis of the forearm, whatever its attitude is.
    robot = robots.two_handed_spacecraft()
    facing = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))  # along y of the hand, across the normal
    options = {"orientation": facing, "normal": (1.0, 0.0, 0.0)}
    bar = Output("bar", "right_hand", "SO2", relative_to="left_hand", **options)
    tip = Output("tip", "left_hand", "R3", (0.0, 0.5, 0.0))
    servo = Servo(reduce(robot), [tip, bar], 4.0, 4.0)
    q = robot.random(np.random.default_rng(1))
    # The plane's first axis is -z.
    apart = servo.output(q)[3] - (np.pi / 2 + q[-2] - q[-1])
    assert_allclose(np.sin(apart), 0.0, atol=1e-14)
    assert_allclose(servo.motion(q, np.arange(12.0))[0][3], 10.0 - 11.0, atol=1e-14)
    refused(
        OutputError,
        lambda: Servo(reduce(robot), [Output("bar", "right_hand", "SO2", **options)], 4.0, 4.0),
        expected="inertial axis (1, 0, 0)",
    )
    refused(
        OutputError,
        lambda: Servo(
            reduce(robot),
            [Output("bar", "right_hand", "SO2", relative_to="upper_arm")],
            4.0,
            4.0,
        ),
        expected="`upper_arm`'s z axis",
    )


def test_bodies_of_outputs_are_names() -> None:
    name = re.escape("the name of a body")
    for body, other in ((np.ones(3), None), (None, None), ("hand", np.ones((1, 3))), ("hand", 3)):
        with pytest.raises(OutputError, match=name):
            Output("hand", body, "R3", relative_to=other)  # type: ignore[arg-type]


def test_relative_motion_without_a_joint_is_refused() -> None:
    inertia = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    robot = Mechanism(
        "gripper",
        [
            Body("base", joints.Free(), inertia=inertia),
            Body("link", joints.Revolute((0, 0, 1)), "base", Pose((0.3, 0, 0)), inertia),
            Body("tool", joints.Fixed(), "link", Pose((0.3, 0, 0)), inertia),
            Body("camera", joints.Fixed(), "link", Pose((0, 0.3, 0)), inertia),
        ],
    )
    model = reduce(robot)

    def servo(group: str, body: str, origin: str, **options: object) -> Servo:
        return Servo(model, [Output("grip", body, group, relative_to=origin, **options)], 4.0, 4.0)

    refused(OutputError, lambda: servo("R", "tool", "tool"), where="`relative_to`")
    for body, origin in (("tool", "camera"), ("tool", "link"), ("link", "tool")):
        refused(OutputError, lambda b=body, o=origin: servo("R", b, o), came="fixed to")
    refused(UnknownNameError, lambda: servo("R", "tool", "hand"))
    # A joint that turns cannot move the point along its axis.
    error = refused(OutputError, lambda: servo("R", "tool", "base", axes="z"), came="grip")
    assert "nothing moves output `grip` along (0, 0, 1) of body `tool`" in error.came
    for body, origin in (("tool", "base"), ("base", "tool")):
        assert (
            str(servo("SO2", body, origin))
            .splitlines()[1]
            .startswith(f"grip: SO2 of `{body}` relative to `{origin}`")
        )
    grip = Output("grip", "tool", "SO2", relative_to="base")
    assert InverseKinematicsSolver(robot, [grip]).moving == ("link",)
    refused(
        OutputError, lambda: InverseKinematicsSolver(robot, [grip], fixed=["link"]), came="fixed"
    )
