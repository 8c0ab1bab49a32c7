"""Starts on a reference: poses by forward kinematics, velocities by quotients along the lift."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from concur.control import Redundancy, Servo, Start
from concur.control._feasibility import ExactSpeeds
from concur.errors import InfeasibleReferenceError, NonFiniteError, OutputError, ShapeError
from concur.errors import UnknownNameError as UnknownName
from concur.io import Task, load_task
from concur.outputs import Output, Reference, references
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Mimic, Pose, joints, robot_size

EXAMPLES = Path(__file__).parents[2] / "examples"
TASKS = sorted(
    path
    for path in EXAMPLES.rglob("*.toml")
    if "[[outputs]]" in path.read_text(encoding="utf-8") and path.parent.name != "urdf"
)
SMALL = Inertia(1.0, moments=(0.1, 0.1, 0.1))
ABOUT_Z = joints.Revolute((0, 0, 1))


@cache
def example(path: Path) -> tuple[Task, Servo]:
    task = load_task(path)
    return task, task.servo


def frame(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_quat(quaternion).as_matrix(), position
    return pose


def placed(robot: Mechanism, output: Output, q: np.ndarray) -> np.ndarray:
    """Pose (4, 4) of an output's frame, composed from the poses of bodies."""
    turn = output.frame.rotation_matrix if output.group in ("SE2", "SO2", "SO3", "SE3") else None
    own = np.eye(4)
    own[:3, :3] = output.frame.rotation_matrix if turn is None else turn
    own[:3, 3] = output.point
    pose = robot.pose(q, output.body) @ own
    if output.relative_to is not None:
        pose = np.linalg.inv(robot.pose(q, output.relative_to)) @ pose
    return np.asarray(pose)


def apart(robot: Mechanism, outputs: tuple[Output, ...], q: np.ndarray, target: np.ndarray) -> list:
    """Differences of position and angle between outputs and flat coordinates, m and rad."""
    parts, start = [], 0
    for output in outputs:
        values = target[start : start + output.pose_size]
        start += output.pose_size
        pose = placed(robot, output, q)
        if output.group in ("SO2", "SE2"):
            turn = np.arctan2(pose[1, 0], pose[0, 0]) - values[-1]
            parts += [np.arctan2(np.sin(turn), np.cos(turn))]
            values = values[:-1]
        elif output.group in ("SO3", "SE3", "R3xSO3"):
            wanted = Rotation.from_quat(values[-4:])
            parts += list((wanted.inv() * Rotation.from_matrix(pose[:3, :3])).as_rotvec())
            values = values[:-4]
        axes = output.axes or "xyz"[: len(values)]
        parts += list(pose[["xyz".index(axis) for axis in axes[: len(values)]], 3] - values)
    return parts


def moved(servo: Servo, found: Start, time: float) -> np.ndarray:
    """Configuration after a short time on the lift, s constant, by midpoint steps."""
    model, q = servo.model, found.q
    middle = model.robot.integrate(q, model.velocity(q, found.s) * time / 2)
    return np.asarray(model.robot.integrate(q, model.velocity(middle, found.s) * time))


def velocity_gap(servo: Servo, found: Start, reference: Reference, t: float = 0.0) -> np.ndarray:
    """Rate at which outputs leave the reference, m/s and rad/s."""
    h, robot = 1e-4, servo.model.robot
    ends = [
        np.array(apart(robot, servo.outputs, moved(servo, found, x), reference(t + x).flat_pose))
        for x in (-h, h)
    ]
    return np.asarray((ends[1] - ends[0]) / (2 * h))


@pytest.mark.by_default(3)
@pytest.mark.parametrize("path", TASKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_examples_start_on_their_references(path: Path) -> None:
    task, servo = example(path)
    for t in (0.05, 0.3 * task.duration):
        found = servo.start(task.reference, task.q0, t)
        assert found.solved, found.why
        assert set(found.reached.values()) == {True}
        target = task.reference(t).flat_pose
        assert np.abs(apart(task.robot, servo.outputs, found.q, target)).max() < 1e-8
        assert np.abs(velocity_gap(servo, found, task.reference, t)).max() < 1e-5
        assert found.margin == pytest.approx(servo.margin(found.q))
        limits = task.robot.limits
        assert ((limits[:, 0] <= found.q) & (found.q <= limits[:, 1])).all()


def test_a_momentum_is_part_of_the_velocity() -> None:
    task, _ = example(EXAMPLES / "free_floater.toml")
    model = reduce(task.robot, momentum=(0.3, -0.2, 0.5, 0.1, 0.4, -0.3))
    servo = Servo(model, task.outputs, 4.0, 4.0)
    found = servo.start(task.reference, task.q0)
    assert found.solved
    assert np.abs(velocity_gap(servo, found, task.reference)).max() < 1e-5
    still = servo.start(task.reference, task.q0, speed="rest")
    assert still.solved
    assert not still.s.any()
    assert np.abs(velocity_gap(servo, still, task.reference)).max() > 1e-2


def floater(place: float) -> tuple[Servo, Start]:
    """A satellite with a full pose of the hand; the reference `place` m away along x."""
    task, servo = example(EXAMPLES / "free_floater.toml")
    pose = np.array(task.reference(0.0).flat_pose)
    pose[0] += place
    return servo, servo.start(references.hold(pose, "SE3"), task.q0)


def test_the_base_of_a_floater_stays_where_the_arm_reaches_and_comes_along_where_not() -> None:
    task, _ = example(EXAMPLES / "free_floater.toml")
    base = task.robot.q_slice(task.robot.base.name)
    servo, near = floater(0.1)
    assert (near.q[base] == task.q0[base]).all()
    servo, far = floater(5.0)
    assert far.solved
    assert far.q[base][0] - task.q0[base][0] > 3.0
    # The nearest base would leave the arm stretched.
    assert far.margin > 20 * servo.singular_margin


def test_the_nearest_configuration_is_found() -> None:
    task, servo = example(EXAMPLES / "rover_arm.toml")
    robot, near = task.robot, task.q0
    found = servo.start(task.reference, near)
    target = task.reference(0.0).flat_pose
    size = robot_size(robot)
    weights = np.array([10 / size, 10 / size, 10, 0, 0, 1, 1, 1])

    def distance(q: np.ndarray) -> float:
        way = q - near
        c, s = np.cos(q[2]), np.sin(q[2])
        # The exponential of SE(2) turns the way of the base, second order in the heading.
        half = (q[2] - near[2]) / 2
        body = np.array([[c, s], [-s, c]]) @ way[:2]
        factor = half / np.tan(half) if half else 1.0
        body = factor * body + half * np.array([-body[1], body[0]])
        return float(np.sum((weights[[0, 1, 2, 5, 6, 7]] * [*body, *way[[2, 5, 6, 7]]]) ** 2))

    best = minimize(
        distance,
        found.q + 1e-2,
        constraints={"type": "eq", "fun": lambda q: apart(robot, servo.outputs, q, target)},
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert distance(found.q) == pytest.approx(best.fun, rel=1e-4)
    assert found.q[3:5] == pytest.approx(near[3:5])  # wheels, which move no output


def arm(*lengths: float, limits: object = None, **options: object) -> Servo:
    """Planar arm with the tip as its output."""
    bodies, parent, at = [Body("floor", joints.Fixed())], "floor", 0.0
    for k, length in enumerate(lengths):
        name = f"link_{k}"
        bodies.append(Body(name, ABOUT_Z, parent, Pose((at, 0, 0)), SMALL, limits))
        parent, at = name, length
    tip = Output("tip", parent, "R2", point=(at, 0, 0))
    return Servo(reduce(Mechanism("arm", bodies)), [tip], 4.0, 4.0, **options)


def test_a_singular_start_is_avoided_where_another_posture_reaches() -> None:
    servo = arm(1.0, 0.6, 0.3)
    # Folded links reach (0.7, 0) from the configuration near by: a singular one.
    near = np.array([0.0, np.pi, np.pi])
    assert servo.margin(near) < 1e-6
    found = servo.start(references.hold([0.7, 0.0]), near)
    assert found.solved
    assert found.margin > 20 * servo.singular_margin
    # At the border of reach there is no other.
    stretched = servo.start(references.hold([1.9, 0.0]), near)
    assert not stretched.solved
    assert "nothing moves output `tip` along (1, 0, 0)" in stretched.why
    with pytest.raises(InfeasibleReferenceError, match="here: expected a regular configuration"):
        stretched.require("here")


def test_out_of_reach_the_distance_is_told() -> None:
    servo = arm(1.0, 0.7)
    for past in (-1e-2, 1e-2):
        found = servo.start(references.hold([0.0, 1.7 + past]))
        assert found.solved is (past < 0)
        if past > 0:
            assert np.linalg.norm(found.residual) == pytest.approx(past, rel=1e-6)
            assert "output `tip` stays 0.01 m away" in found.why
            assert found.reached == {"tip": False}


def test_tolerance_of_what_counts_as_reached() -> None:
    slide = Body("slide", joints.Prismatic((1, 0, 0)), "floor", inertia=SMALL, limits=(-1.0, 1.0))
    robot = Mechanism("slide", [Body("floor", joints.Fixed()), slide])
    servo = Servo(reduce(robot), [Output("x", "slide", "R", axes="x")], 4.0, 4.0)
    for past, solved in ((0.9e-6, True), (1.1e-6, False)):
        found = servo.start(references.hold([1.0 + past * robot_size(robot)]))
        assert found.q == pytest.approx([1.0])
        assert found.solved is solved


def sliding(point: tuple[float, float], speed: tuple[float, float]) -> Reference:
    return references.polynomial([point, speed])


def test_velocities_in_a_lost_direction_are_told() -> None:
    servo = arm(1.0, 0.7, damping_threshold=0.1)
    for share, solved in ((0.8e-4, True), (1.2e-4, False)):
        across = servo.start(sliding((1.7, 0.0), (0.2 * share, 0.2)))
        assert across.solved is solved, across.why
    along = servo.start(sliding((1.7, 0.0), (0.2, 0.2)))
    assert not along.solved
    assert "output `tip` lacks 0.2 m/s" in along.why
    assert along.velocity_residual == pytest.approx([-0.2, 0.0], abs=1e-5)
    # What can be moved has the velocity: 1.7 m times the rate of both links.
    assert np.abs(along.s).max() < 1.0
    assert servo.start(sliding((1.7, 0.0), (0.2, 0.2)), speed="rest").solved


@pytest.mark.parametrize(("share", "solved"), [(0.0, True), (0.5e-12, True), (2e-12, False)])
@pytest.mark.parametrize("speed", [1e-9, 0.1])
def test_internal_motion_alone_leaves_rounding(
    share: float, solved: bool, speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is compared with the fastest joint, whatever its speed."""
    links = [Body("base", joints.Fixed())]
    for name in ("upper", "fore", "hand"):
        place = Pose((0.5 if len(links) > 1 else 0.0, 0.0, 0.0))
        links.append(Body(name, ABOUT_Z, links[-1].name, place, inertia=SMALL))
    robot = Mechanism("arm", links)
    q = np.array([0.3, 0.8, -0.5])
    rule = Redundancy(objective="posture", posture=q + np.array([speed, 0.0, 0.0]), stiffness=1.0)
    tip = Output("tip", "hand", "R2", point=(0.3, 0.0, 0.0))
    servo = Servo(reduce(robot), [tip], 4.0, 4.0, redundancy=rule)
    exact = ExactSpeeds.__call__

    def off(self: ExactSpeeds, at: np.ndarray, rate: np.ndarray) -> np.ndarray:
        s = exact(self, at, rate)
        along = np.linalg.pinv(servo.decoupling(at)) @ [0.0, 1.0]
        return np.asarray(s + share * robot_size(robot) * np.abs(s).max() * along)

    monkeypatch.setattr(ExactSpeeds, "__call__", off)
    found = servo.start(references.hold(servo.output(q)), near=q)
    assert np.abs(found.s).max() > 0.01 * speed
    assert found.solved is solved, found.why


def test_offsets_are_errors_at_the_start() -> None:
    task, servo = example(EXAMPLES / "free_floater.toml")
    shift = np.array([0.05, -0.1, 0.02, 0.3, -0.2, 0.1])
    found = servo.start(task.reference, task.q0, offset={servo.outputs[0].name: shift})
    assert found.solved, found.why
    sample = task.reference(0.0)
    x, ve = servo.error(found.q, found.s, sample)
    assert x == pytest.approx(shift, abs=1e-9)
    assert ve == pytest.approx(np.zeros(6), abs=1e-9)
    assert found.error == pytest.approx(shift, abs=1e-9)
    # r = gamma exp(-x), by scipy's exponential of a matrix.
    twist = np.zeros((4, 4))
    twist[:3, 3] = shift[:3]
    twist[:3, :3] = np.cross(np.eye(3), shift[3:])
    gamma = frame(sample.flat_pose[:3], sample.flat_pose[3:])
    pose = placed(task.robot, servo.outputs[0], found.q)
    assert pose == pytest.approx(gamma @ expm(-twist), abs=1e-9)


def test_offsets_in_every_group() -> None:
    """Errors of `shifted` coordinates are the shift, up to a rotation of pi."""
    rng = np.random.default_rng(3)
    for group in ("R3xSO3", "SE3", "SO3", "R3", "SE2", "R2", "SO2", "R"):
        output = Output("o", "b", group, **({"axes": "x"} if group == "R" else {}))
        lie = output.lie
        for _ in range(5):
            pose = rng.normal(size=lie.pose_size)
            if "qw" in lie.coordinate_names:
                pose[-4:] /= np.linalg.norm(pose[-4:])
            x = rng.uniform(-1.2, 1.2, lie.dim)
            back = np.array(lie.error(np.array(lie.shifted(pose, x)).ravel(), pose)).ravel()
            assert back == pytest.approx(x, abs=1e-12), group
    task, servo = example(EXAMPLES / "free_floater.toml")
    name = servo.outputs[0].name
    for angle, good in ((3.1, True), (3.2, False)):
        offset = {name: [0, 0, 0, angle, 0, 0]}
        if good:
            assert servo.start(task.reference, task.q0, offset=offset).error[3] == pytest.approx(
                3.1
            )
            continue
        with pytest.raises(OutputError, match="rotation below pi"):
            servo.start(task.reference, task.q0, offset=offset)


def test_joints_that_follow_others() -> None:
    bodies = [
        Body("floor", joints.Fixed()),
        Body("upper", ABOUT_Z, "floor", inertia=SMALL),
        Body("fore", ABOUT_Z, "upper", Pose((1, 0, 0)), SMALL),
        Body("finger", ABOUT_Z, "fore", Pose((0.7, 0, 0)), SMALL),
    ]
    robot = Mechanism("arm", bodies, mimics=[Mimic("finger", of="fore", multiplier=-0.5)])
    tip = Output("tip", "finger", "R2", point=(0.3, 0, 0))
    servo = Servo(reduce(robot), [tip], 4.0, 4.0)
    reference = sliding((1.2, 0.8), (0.1, -0.2))
    found = servo.start(reference)
    assert found.solved, found.why
    assert found.q[2] == pytest.approx(-0.5 * found.q[1], abs=1e-12)
    place = np.exp(1j * np.cumsum(found.q)) @ [1.0, 0.7, 0.3]
    assert [place.real, place.imag] == pytest.approx([1.2, 0.8], abs=1e-9)
    assert np.abs(velocity_gap(servo, found, reference)).max() < 1e-6


def test_limits_are_kept() -> None:
    servo = arm(1.0, 0.7, limits=(-2.0, 0.0))
    found = servo.start(references.hold([0.5, -0.9]), near=[0.5, 1.0])
    assert found.solved
    assert (found.q <= 0.0).all()


@pytest.mark.parametrize(
    ("kind", "match", "options"),
    [
        (UnknownName, '`speed`: expected "reference" or "rest"', {"speed": "fast"}),
        (
            UnknownName,
            "`offset`: expected names of outputs .tip., got 'top'",
            {"offset": {"top": 1}},
        ),
        (ShapeError, "`offset`, output `tip`", {"offset": {"tip": [1.0]}}),
        (NonFiniteError, "`offset`", {"offset": [np.nan, 0.0]}),
        (ShapeError, "`near`", {"near": [0.0]}),
        (NonFiniteError, "`t`", {"t": np.inf}),
    ],
)
def test_bad_input_is_named(kind: type[Exception], match: str, options: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(kind, match=match):
        arm(1.0, 0.7).start(references.hold([0.5, 0.9]), **options)


def test_internal_motion_does_not_count_as_a_velocity_that_the_outputs_lack() -> None:
    """A redundant arm moves to its posture while the hand is held."""
    bodies = [Body("root", joints.Fixed())]
    for k in range(4):
        place = Pose((0.0 if k == 0 else 0.5, 0.0, 0.0))
        bodies.append(Body(f"link{k}", ABOUT_Z, bodies[-1].name, place, SMALL))
    robot = Mechanism("arm", tuple(bodies))
    rule = Redundancy(objective="posture", posture={f"link{k}": 0.7 for k in range(4)})
    output = Output("hand", "link3", "R2", point=(0.5, 0, 0))
    servo = Servo(reduce(robot), [output], 4.0, 4.0, redundancy=rule)
    near = [0.2, 0.4, -0.3, 0.5]
    start = servo.start(references.hold(servo.output(near)), near)
    assert all(start.reached.values())
    # The hand rests: its velocity by a quotient along the joints' motion.
    moved = servo.output(robot.integrate(start.q, 1e-6 * start.s)) - servo.output(start.q)
    assert np.abs(moved / 1e-6).max() < 1e-5 * max(1.0, np.abs(start.s).max())
