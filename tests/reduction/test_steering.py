"""Steered wheels that follow two guides: Ackermann cars and steered modules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import (
    ConcurError,
    DescriptionError,
    ReductionError,
    SingularConfigurationError,
)
from concur.reduction import AuditStatus, WheelReduction, reduce
from concur.robot import Body, Inertia, Mechanism, Mimic, Pose, Steering, Wheel, joints
from concur.simulation import Integrator, forced_motion
from concur.simulation._fmu import _initial
from tests.oracles import Pinocchio, assert_close
from tests.reduction.test_irregular import missed

EXAMPLES = Path(__file__).parents[2] / "examples" / "drives"
CAR = cc.load(EXAMPLES / "ackermann_car.toml")
SWERVE = cc.load(EXAMPLES / "swerve.toml")
Z = (0.0, 0.0, 1.0)


def turned(angle: float) -> tuple[float, float, float, float]:
    return (0.0, 0.0, float(np.sin(angle / 2)), float(np.cos(angle / 2)))


def odd_vehicle(seed: int, fixed: bool) -> Mechanism:
    """Modules at random places, with mounts, steering axes and axles turned at random."""
    rng = np.random.default_rng(seed)
    bodies = [Body("hull", joints.Planar(), inertia=Inertia(20.0, (0.1, 0, 0), (1, 1, 1)))]
    for k, place in enumerate(rng.uniform(-1.0, 1.0, (4, 2))):
        mount = turned(rng.uniform(-3.0, 3.0))
        parent, pose = "hull", Pose((*place, 0.0), mount)
        if k or not fixed:
            axis = (0.0, 0.0, rng.choice([-1.0, 1.0]))
            inertia = Inertia(1.0, (0.01, 0, 0), (0.02, 0.02, 0.02))
            bodies.append(Body(f"fork{k}", joints.Revolute(axis), parent, pose, inertia))
            parent, pose = f"fork{k}", Pose((0.0, 0.07, 0.0))
        axle = joints.Revolute((0.0, rng.choice([-1.0, 1.0]), 0.0))
        bodies.append(Body(f"wheel{k}", axle, parent, pose, Inertia(1.0, moments=(0.1, 0.2, 0.1))))
    wheels = [Wheel(f"wheel{k}", 0.2) for k in (3, 2, 1, 0)]
    tables = [Steering(f"wheel{k}", ("wheel0", "wheel1")) for k in (2, 3)]
    return Mechanism("odd", bodies, wheels, steering=tables)


def robots() -> list[Mechanism]:
    return [CAR, SWERVE, odd_vehicle(0, False), odd_vehicle(1, True)]


def lines_meet(robot: Mechanism, steering: Steering, q: np.ndarray) -> float:
    """Determinant of three axles as lines in the world, from their poses."""
    lines = []
    for name in (*steering.guides, steering.wheel):
        pose = robot.pose(q, name)
        (x, y), (a, b) = pose[:2, 3], pose[:2, 1]
        lines.append([a, b, x * b - y * a])
    return float(np.linalg.det(lines))


def test_angle_of_a_car() -> None:
    for angle in (-1.2, -0.3, 0.0, 1e-9, 0.5, 1.5):
        q = CAR.neutral()
        q[CAR.q_slice("left_steering")] = angle
        q = CAR.coupled(q)
        right = q[CAR.q_slice("right_steering")][0]
        # cot(right) - cot(left) = track / wheelbase = 0.6 m / 0.8 m
        assert_close(np.sin(angle - right), 0.75 * np.sin(angle) * np.sin(right), 1e-15)
        assert np.cos(right) > 0.0 or abs(angle) > 1.0


def test_axles_meet_and_angles_are_continuous() -> None:
    for robot in robots():
        assert isinstance(reduce(robot), WheelReduction)
        rng = np.random.default_rng(1)
        for q in (robot.random(rng) for _ in range(10)):
            assert missed(robot, q) < 1e-13
    # Parallel guides have parallel followers: without a jump from one singular angle to the next.
    for angle in np.linspace(-0.87, 2.26, 50):
        q = SWERVE.neutral()
        q[SWERVE.q_slice("steer_fl")] = q[SWERVE.q_slice("steer_rr")] = angle
        assert_close(SWERVE.coupled(q)[SWERVE.followers[0]], angle, 1e-11)


def test_motion_stays_on_the_compatible_set() -> None:
    model = reduce(CAR)
    start = CAR.neutral()
    start[CAR.q_slice("left_steering")] = 0.3

    def push(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        return np.array([0.3 * np.cos(3 * t), 2.0])

    ends = []
    for method in ("rkmk4", "dop853"):
        motion = forced_motion(
            model, push, 2.0, CAR.coupled(start), np.zeros(2), dt=Integrator(method, 0.01)
        )
        assert np.ptp(motion.q[:, CAR.q_slice("left_steering")]) > 0.3
        off = max(abs(lines_meet(CAR, CAR.steering[0], q)) for q in motion.q)
        assert off < (1e-7 if method == "rkmk4" else 1e-14), method
        ends.append(motion.q[-1])
    assert_close(ends[0], ends[1], 1e-6)


def test_car_on_a_floating_hull() -> None:
    # The plane of the wheels is that of the chassis' joint, tilted on the hull.
    hull = Body("hull", joints.Free(), inertia=Inertia(500.0, moments=(300, 300, 300)))
    place = Pose((0.5, 0.2, 1.0), (0.0, float(np.sin(0.3)), 0.0, float(np.cos(0.3))))
    chassis = replace(CAR.bodies[0], parent="hull", placement=place)
    robot = replace(CAR, bodies=[hull, chassis, *CAR.bodies[1:]], gravity=(0, 0, 0))
    model, rng = reduce(robot), np.random.default_rng(2)
    assert (model.kind, model.ns) == ("symplectic", 2)
    q, step = robot.random(rng), 1e-6
    v = model.velocity(q, rng.normal(size=2))
    assert_close(Pinocchio(robot).momentum(q, v), np.zeros(6), 1e-10)
    ends = [robot.integrate(q, sign * step * v) for sign in (1, -1)]
    for wheel in robot.wheels:  # the point on the ground, seen from the hull, does not move
        seen = [
            np.linalg.solve(robot.pose(x, "hull"), robot.pose(x, wheel.body)) for x in (q, *ends)
        ]
        normal = place.rotation_matrix[:, 2]
        down = seen[0][:3, :3].T @ (-wheel.radius * normal)
        moved = np.subtract(*(p[:3, :3] @ down + p[:3, 3] for p in seen[1:])) / (2 * step)
        assert np.abs(moved).max() < 1e-8


def steered(angles: dict[str, float]) -> np.ndarray:
    q = SWERVE.neutral()
    for name, angle in angles.items():
        q[SWERVE.q_slice(name)] = angle
    return SWERVE.coupled(q)


def test_singular_configurations_are_named() -> None:
    model = reduce(SWERVE)
    outputs = [
        cc.Output("nose", "steer_fl", "R2", point=(0.2, 0, 0)),
        cc.Output("heading", "steer_rr", "SO2"),
    ]
    servo = cc.Servo(model, outputs, 4.0, 4.0)
    # Along the diagonal both axles coincide; along two sides they meet in the front right corner.
    diagonal = float(np.arctan2(0.25, 0.3) - np.pi / 2)
    for angles, expected in (
        ({"steer_fl": diagonal, "steer_rr": diagonal}, "the guides `wheel_fl` and `wheel_rr` coin"),
        ({"steer_fl": 0.0, "steer_rr": np.pi / 2}, "on the steering axis of `wheel_fr`"),
    ):
        assert model.regularity(steered(angles)) < 1e-9
        off = steered({name: angle + 0.01 * k for k, (name, angle) in enumerate(angles.items())})
        assert model.regularity(off) > 1e-3
        rest = cc.ReferenceSample(servo.output(steered(angles)), np.zeros(3), np.zeros(3))
        with pytest.raises(SingularConfigurationError, match=expected):
            servo.torque(steered(angles), np.ones(3), rest)
        assert SWERVE.lost_steering(off, 1e-3) == ""


def test_configurations_are_checked() -> None:
    q = CAR.neutral()
    q[CAR.q_slice("left_steering")] = 0.5
    q, span = CAR.coupled(q), CAR.q_slice("right_steering")
    due = q[span][0]
    cases = (9e-7, True), (-9e-7, True), (1.1e-6, False), (np.pi, True), (3.1, False)
    for error, fits in cases:
        given = q.copy()
        given[span] += error
        if fits:
            nearest = due + np.pi * round(error / np.pi)
            assert CAR.check_configuration(given)[span][0] == pytest.approx(nearest, abs=1e-14)
            assert_close(CAR.normalize(given)[span], [nearest], 1e-14)
        else:
            message = r"joint of `right_steering`: expected .*: axle of front_right through"
            with pytest.raises(DescriptionError, match=message):
                CAR.check_configuration(given)
        sound = _initial(CAR, None)(given, np.zeros(CAR.nv))[2]
        assert float(sound) == fits


def test_files(tmp_path: Path) -> None:
    for robot in (CAR, SWERVE):
        robot.save(tmp_path / "copy.toml")
        assert cc.load(tmp_path / "copy.toml") == robot
        robot.save(tmp_path / "other.urdf")
        again = cc.load(tmp_path / "other.urdf")
        assert again.steering == robot.steering
        assert set(again.actuated or ()) == set(robot.actuated or ())
        assert set(again.constraint_names) == set(robot.constraint_names)
        side = tmp_path / "other.toml"
        text = side.read_text(encoding="utf-8").replace('guides = ["', 'guides = ["no_')
        side.write_text(text, encoding="utf-8")
        message = r"other\.toml, \[\[steering\]\] .*, field `guides`"
        with pytest.raises(DescriptionError, match=message):
            cc.load(tmp_path / "other.urdf")
        with pytest.raises(DescriptionError, match=r"steering `.*: expected couplings of two"):
            robot.save(tmp_path / "robot.xml")
    assert "front_right: axle through the centre of rotation of rear_left" in CAR.summary()
    task = (EXAMPLES / "ackermann_car_task.toml").read_text(encoding="utf-8")
    path = tmp_path / "task.toml"
    CAR.save(tmp_path / "ackermann_car.toml")
    path.write_text(
        task.replace("left_steering = 0.1 ", "left_steering = 0.1\nright_steering = 0.2 ")
    )
    with pytest.raises(ConcurError, match=r"task\.toml.*right_steering.*expected 0\.09.*got 0\.2"):
        cc.load_task(path)


def test_singular_configurations_beyond_limits_do_not_count() -> None:
    # With a wheel that motors, 90 degrees of steering are singular.
    free = [replace(body, limits=None) for body in CAR.bodies]
    for bodies, holds in ((CAR.bodies, True), (free, False)):
        row = reduce(replace(CAR, bodies=bodies)).audit()["NHR3"]
        assert (row.status is AuditStatus.HOLDS) == holds, row.why


def test_motors_and_stages() -> None:
    # A motor on the joint that follows acts through the coupling: with both, forces are shared.
    model = reduce(replace(CAR, actuated=["left_steering", "right_steering"]))
    q = CAR.neutral()
    assert model.robot.control_names == ("left_steering", "right_steering", "differential")
    assert_close(model.input_matrix(q)[model.shape_names.index("left_steering")], [1, 1, 0], 1e-14)
    assert replace(CAR, actuated=None).actuated == ("left_steering", "front_left", "front_right")
    with pytest.raises(ReductionError, match="no stages for a robot with joints that follow"):
        reduce(CAR, stages=["left_steering"])


def with_bodies(**changes: Body) -> Mechanism:
    bodies = [changes.get(body.name, body) for body in CAR.bodies]
    return replace(CAR, bodies=bodies)


def test_invalid_steering() -> None:
    body = {b.name: b for b in CAR.bodies}
    right, front = body["right_steering"], body["front_right"]
    other = Steering("front_left", ("rear_left", "front_right"))
    both = ("rear_left", "front_left")
    for name, guides, message in (
        ("a", ("a", "b"), "two guides that are two other wheels"),
        ("a", ("b", "b"), "two guides that are two other wheels"),
        ("a", ("b",), "a wheel and two guides"),
        ("a", "bc", "a wheel and two guides"),
    ):
        with pytest.raises(DescriptionError, match=message):
            Steering(name, guides)
    for tables, message in (
        ([Steering("front_rihgt", both)], "`wheel`: expected the body of a disk"),
        ([Steering("front_right", ("rear_left", "chassis"))], "`guides`: expected the body"),
        ([Steering("rear_right", both)], "a wheel on a Revolute steering joint, got `chass"),
        ([*CAR.steering, other], "guides that do not follow others"),
        ([*CAR.steering, *CAR.steering], "one table for the steering joint"),
        ([Steering("front_right", ("rear_left", "rear_right"))], "`rear_right` coincide"),
    ):
        with pytest.raises(ConcurError, match=message):
            replace(CAR, steering=tables)
    shapes = [
        (
            {"right_steering": replace(right, joint=joints.Revolute((0, 0.1, 1)))},
            "along the normal",
        ),
        ({"right_steering": replace(right, joint=joints.Prismatic(Z))}, "a Revolute steering"),
        (
            {"right_steering": replace(right, parent="left_steering")},
            "are fixed to `left_steering`",
        ),
        ({"front_right": replace(front, placement=Pose((-0.05, 0, 0)))}, "0.05 m from the axis"),
    ]
    for changes, message in shapes:
        with pytest.raises(DescriptionError, match=message):
            with_bodies(**changes)
    # An offset of the steering axis along the axle changes nothing.
    reduce(with_bodies(front_right=replace(front, placement=Pose((0, -0.05, 0)))))
    with pytest.raises(DescriptionError, match="joints without a wheel that follows guides"):
        replace(CAR, mimics=[Mimic("right_steering", "left_steering")])
    for offset, fits in ((5e-11, True), (2e-10, False)):  # over a distance of 1 m
        shifted = {"front_right": replace(front, placement=Pose((offset, 0, 0)))}
        if fits:
            with_bodies(**shifted)
        else:
            with pytest.raises(DescriptionError, match="meet their steering axes"):
                with_bodies(**shifted)


def test_starts_and_inverse_kinematics_move_the_wheels_that_follow() -> None:
    task = cc.load_task(EXAMPLES / "ackermann_car_task.toml")
    found = task.servo.start(task.reference)
    assert found.solved, found.why
    assert abs(lines_meet(CAR, CAR.steering[0], found.q)) < 1e-14
    nose = cc.Output("nose", "left_steering", "R2", point=(0.3, 0, 0))
    solver = cc.control.InverseKinematicsSolver(CAR, [nose], fixed=("chassis",))
    at = CAR.neutral()
    at[CAR.q_slice("left_steering")] = 0.4
    place = CAR.pose(at, "left_steering") @ [0.3, 0.0, 0.0, 1.0]
    answer = solver.solve(place[:2])
    assert answer.solved
    assert_close(answer.q, CAR.coupled(at), 1e-9)
    # On a right turn the right wheel is the inner one: its limits count.
    for angle, fits in ((-0.72, True), (-0.721, False)):
        at[CAR.q_slice("left_steering")] = angle
        place = CAR.pose(at, "left_steering") @ [0.3, 0.0, 0.0, 1.0]
        answer = solver.solve(place[:2])
        assert answer.solved == fits
        assert ("`right_steering` at -1.2" in answer.why) == (not fits)
    for options, message in (
        ({"fixed": ("chassis", "right_steering")}, "coupled to bodies in `fixed`"),
        ({"output": replace(nose, body="front_right")}, "behind the steering joint `right_steer"),
    ):
        with pytest.raises(ConcurError, match=message):
            cc.control.InverseKinematicsSolver(
                CAR, [options.get("output", nose)], fixed=options.get("fixed", ())
            )


@pytest.mark.parametrize("robot", robots(), ids=lambda robot: robot.name)
def test_wheels_on_frames_of_their_bodies_roll_alike(robot: Mechanism) -> None:
    """A wheel is on the body that turns, also where a frame fixed to that one is named."""
    rng, frames, wheels = np.random.default_rng(3), [], []
    for wheel in robot.wheels:
        place = Pose(tuple(rng.uniform(-0.2, 0.2, 3)), tuple(Rotation.random(rng=rng).as_quat()))
        frames += [
            Body(f"{wheel.body}_hub", joints.Fixed(), wheel.body),
            Body(f"{wheel.body}_frame", joints.Fixed(), f"{wheel.body}_hub", place),
        ]
        center = (np.linalg.inv(place.matrix) @ [*wheel.center, 1.0])[:3]
        changed = {"body": f"{wheel.body}_frame", "center": tuple(center)}
        wheels.append(wheel if wheel.kind == "slider" else replace(wheel, **changed))
    names = {old.body: new.body for old, new in zip(robot.wheels, wheels, strict=True)}
    tables = [
        Steering(names[table.wheel], tuple(names[name] for name in table.guides))
        for table in robot.steering
    ]
    framed = replace(robot, bodies=[*robot.bodies, *frames], wheels=wheels, steering=tables)
    assert (framed.constraint_names, framed.actuated) == (robot.constraint_names, robot.actuated)
    for _ in range(3):
        q = robot.random(rng)
        assert_close(framed.constraints(q), robot.constraints(q), 1e-12)
