"""Operating boxes: no state violates their bounds, and counterexamples are verified."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.certify import OperatingCertificate, Status, operating_bounds
from concur.control import Servo
from concur.errors import (
    ConcurError,
    DescriptionError,
    NonFiniteError,
    OutputError,
    ShapeError,
    UnknownNameError,
)

ELBOW = {"turret": (-0.2, 0.0), "upper_arm": (0.9, 1.1), "forearm": (-1.7, -1.5)}
ASKED = {"speeds": 0.4, "acceleration": 0.3, "pose_error": 0.05, "velocity_error": 0.1}


@cache
def rover() -> Servo:
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    return Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])


@cache
def floater(group: str = "R2") -> Servo:
    momentum = [0.3, -0.2, 0, 0, 0, 0.8]
    model = cc.reduce(cc.robots.planar_floater(), momentum=momentum)
    return Servo(model, [cc.Output("hand", "forearm", group, point=(0.4, 0, 0))], 4, 4)


@cache
def proved_rover(scale: float = 1.0) -> OperatingCertificate:
    box = {}
    for name, (low, high) in ELBOW.items():
        middle, half = (low + high) / 2, scale * (high - low) / 2
        box[name] = (middle - half, middle + half)
    return operating_bounds(rover(), box, **ASKED, limits=40.0, tolerance=0.3)


@cache
def margin_alone() -> OperatingCertificate:
    return operating_bounds(rover(), ELBOW)


def each(method: Any, *arguments: np.ndarray) -> list[np.ndarray]:
    """Results of a method of the servo for many states, each of shape (k, rows, columns)."""
    symbols = [ca.SX.sym(f"a{i}", part.shape[1]) for i, part in enumerate(arguments)]
    results = method(*symbols)
    results = [ca.densify(r) for r in (results if isinstance(results, tuple) else (results,))]
    function = ca.Function("each", symbols, results, {"cse": True})
    count = len(arguments[0])
    found = function.map(count).call([ca.DM(part.T) for part in arguments])
    return [
        np.array(value).T.reshape(count, result.shape[1], result.shape[0]).swapaxes(1, 2)
        for value, result in zip(found, results, strict=True)
    ]


def vectors(method: Any, *arguments: np.ndarray) -> np.ndarray:
    """First result of a method for many states, shape (k, rows)."""
    return each(method, *arguments)[0][:, :, 0]


def velocities(servo: Servo, q: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Velocities of the outputs at many states, shape (k, size)."""
    return vectors(servo.motion, q, vectors(servo.velocity, q, s))


def margins(servo: Servo, q: np.ndarray) -> np.ndarray:
    """Margins by singular values, without the servo's own function."""
    scaled = servo.margins.scales[0][:, None] * each(servo.decoupling, q)[0]
    root = np.linalg.cholesky(each(servo.model.mass_matrix, q)[0])
    return np.linalg.svd(np.linalg.solve(root, scaled.swapaxes(1, 2)))[1][:, -1]


def random_states(
    servo: Servo, ranges: dict[str, tuple[float, float]], count: int, seed: int
) -> tuple[np.ndarray, ...]:
    """States with references, anywhere on the ground or in space, to the ends of what is stated."""
    rng = np.random.default_rng(seed)
    robot = servo.model.robot
    q = np.array([robot.random(rng) for _ in range(count)])
    for name, (low, high) in ranges.items():
        # A part at the ends, where extremes are.
        t = np.clip(rng.uniform(-0.2, 1.2, count), 0.0, 1.0)
        q[:, robot.q_slice(name)] = (low + t * (high - low))[:, None]

    def within(bound: float, size: int) -> np.ndarray:
        return bound * np.clip(rng.uniform(-1.5, 1.5, (count, size)), -1, 1)

    s = within(ASKED["speeds"], servo.ns)
    x, ve = within(ASKED["pose_error"], servo.size), within(ASKED["velocity_error"], servo.size)
    acceleration = within(ASKED["acceleration"], servo.size)
    pose = vectors(servo.output, q)
    if servo.error_dynamics.group.abelian:
        pose += x
    return q, s, pose, velocities(servo, q, s) - ve, acceleration


def broken(found: OperatingCertificate, servo: Servo, states: tuple[np.ndarray, ...]) -> int:
    """States that violate a bound of a certificate."""
    assert found.margin is not None
    u = vectors(servo.law, *states)
    # The bounds are those of exact arithmetic.
    rounding = 1e-12 * found.torque.max()
    outside = ((u < found.lower - rounding) | (u > found.upper + rounding)).any(axis=1)
    return int((outside | (margins(servo, states[0]) < found.margin)).sum())


@pytest.mark.extended
def test_no_state_of_the_rover_breaks_what_is_proved() -> None:
    found = proved_rover()
    assert found.status is Status.PROVED
    assert len(found.undecided_boxes) == 0
    assert broken(found, rover(), random_states(rover(), ELBOW, 10_000, 1)) == 0
    assert found.margin is not None
    assert found.margin > 0.6 * found.margin_found


@pytest.mark.extended
def test_bounds_of_half_the_box_are_broken_in_the_whole_one() -> None:
    # At rest only the weight of the arm is held: there the bounds are sharp.
    half = operating_bounds(rover(), ELBOW | {"upper_arm": (1.0, 1.1)}, speeds=0.0, tolerance=0.15)
    whole = operating_bounds(rover(), ELBOW, speeds=0.0, tolerance=0.15)
    q, s, _, twist, acceleration = random_states(rover(), ELBOW, 10_000, 2)
    still = (np.zeros_like(s), vectors(rover().output, q), 0 * twist, 0 * acceleration)
    assert half.status is whole.status is Status.PROVED
    assert broken(half, rover(), (q, *still)) > 300
    assert broken(whole, rover(), (q, *still)) == 0


@pytest.mark.extended
def test_bounds_at_one_configuration_are_met() -> None:
    # At a point the relaxation is that of the quadratic terms and of feedback alone.
    found = proved_rover(1e-6)
    ranges = dict(found.ranges)
    u = vectors(rover().law, *random_states(rover(), ranges, 10_000, 3))
    assert (u.max(axis=0) > 0.45 * found.upper).all()
    assert (u <= found.upper).all()


@pytest.mark.parametrize("group", ["R2"])
def test_no_state_of_a_floater_with_momentum_breaks_what_is_proved(group: str) -> None:
    servo, ranges = floater(group), {"upper_arm": (0.35, 0.6), "forearm": (0.9, 1.15)}
    found = operating_bounds(servo, ranges, **ASKED, distance=2.0, limits=40.0, tolerance=0.4)
    assert found.status is Status.PROVED
    states = random_states(servo, ranges, 4_000, 4)
    q = states[0].copy()
    far = 2.0 * np.random.default_rng(5).uniform(size=(len(q), 1))
    q[:, :2] *= far / np.linalg.norm(q[:, :2], axis=1, keepdims=True)
    s = states[1]
    pose = vectors(servo.output, q) + (states[2] - vectors(servo.output, states[0]))
    twist = velocities(servo, q, s)
    assert broken(found, servo, (q, s, pose, twist, states[4])) == 0


@pytest.mark.extended
def test_wide_boxes_at_rest_are_undecided_until_they_are_split() -> None:
    model = cc.reduce(cc.robots.planar_floater())
    angles = [cc.Output(body, body, "SO2") for body in ("upper_arm", "forearm")]
    servo, ranges = Servo(model, angles, 4, 4), {"upper_arm": (-1, 1.5), "forearm": (0.5, 2)}
    whole = operating_bounds(servo, ranges, speeds=0.0, budget=1)
    assert whole.status is Status.UNDECIDED
    split = operating_bounds(servo, ranges, speeds=0.0, budget=300)
    assert split.status is Status.PROVED
    assert np.isfinite(split.torque).all()


def test_a_straight_elbow_is_refuted() -> None:
    ranges = {"turret": (-0.2, 0.2), "upper_arm": (0.5, 0.9), "forearm": (-0.4, 0.3)}
    found = operating_bounds(rover(), ranges)
    assert found.status is Status.REFUTED
    shown = found.counterexample
    assert shown is not None
    assert shown.margin is not None
    assert rover().margin(shown.q) <= 1e-3
    assert shown.margin <= 1e-3
    for name, (low, high) in ranges.items():
        assert low <= shown.q[rover().model.robot.q_slice(name)][0] <= high
    assert "margin is below" in str(found)


def test_a_margin_that_is_asked_for_but_not_there_is_refuted() -> None:
    least = rover().margin(_middle())
    found = operating_bounds(rover(), ELBOW, required_margin=1.05 * least)
    assert found.status is Status.REFUTED
    assert found.counterexample is not None
    assert rover().margin(found.counterexample.q) < 1.05 * least


def _middle() -> np.ndarray:
    q = np.array(rover().model.robot.neutral(), dtype=float)
    for name, (low, high) in ELBOW.items():
        q[rover().model.robot.q_slice(name)] = (low + high) / 2
    return q


def test_a_limit_that_is_too_small_is_refuted_by_a_state() -> None:
    weak = operating_bounds(rover(), ELBOW, **ASKED, limits={"upper_arm": (-5, 5)})
    assert weak.status is Status.REFUTED
    shown = weak.counterexample
    assert shown is not None
    assert shown.control == "upper_arm"
    assert shown.needed is not None
    u = rover().law(shown.q, shown.s, shown.pose, shown.twist, shown.acceleration)[0]
    index = rover().model.control_names.index("upper_arm")
    assert abs(u[index]) > 5.0
    assert abs(u[index] - shown.needed) < 1e-9
    # The state is one of those stated.
    assert np.abs(shown.s).max() <= ASKED["speeds"]
    assert np.abs(shown.acceleration).max() <= ASKED["acceleration"]
    velocity = rover().motion(shown.q, rover().velocity(shown.q, shown.s))[0]
    assert np.abs(velocity - shown.twist).max() <= ASKED["velocity_error"] + 1e-12
    assert np.abs(shown.pose - rover().output(shown.q)).max() <= ASKED["pose_error"] + 1e-12
    for name, (low, high) in ELBOW.items():
        assert low <= shown.q[rover().model.robot.q_slice(name)][0] <= high


def test_a_spent_budget_is_undecided() -> None:
    wide = {"turret": (-1.0, 1.0), "upper_arm": (0.5, 1.5), "forearm": (-2.0, -1.0)}
    found = operating_bounds(rover(), wide, budget=3)
    assert found.status is Status.UNDECIDED
    assert found.margin is None or found.margin <= found.required_margin
    assert len(found.undecided_boxes) > 0
    assert "budget" in found.reason
    volume = np.prod(found.boxes[:, 1] - found.boxes[:, 0], axis=1).sum()
    assert math.isclose(volume, 2.0)


def test_boxes_cover_the_whole() -> None:
    wide = ELBOW | {"upper_arm": (0.5, 1.5)}
    found = operating_bounds(rover(), wide)
    assert found.status is Status.PROVED
    assert len(found.boxes) > 1
    volume = np.prod(found.boxes[:, 1] - found.boxes[:, 0], axis=1).sum()
    assert math.isclose(volume, 0.2**2, rel_tol=1e-9)


@pytest.mark.extended
def test_what_is_saved_can_be_read(tmp_path: Path) -> None:
    proved_rover().save(tmp_path / "box.json")
    document = json.loads((tmp_path / "box.json").read_text())
    assert document["status"] == "PROVED"
    assert document["margin"] == proved_rover().margin
    assert len(document["boxes"]) == len(proved_rover().boxes)
    wide = operating_bounds(rover(), ELBOW, **ASKED, limits=5.0)
    wide.save(tmp_path / "refuted.json")
    document = json.loads((tmp_path / "refuted.json").read_text())
    assert document["counterexample"]["control"] == wide.counterexample.control  # type: ignore[union-attr]


def test_without_speeds_there_is_no_torque() -> None:
    found = margin_alone()
    assert found.status is Status.PROVED
    assert found.torque.shape == (0,)
    assert "N m" not in str(found)
    assert "not bounded" in found.reason
    assert "no speeds were stated" in str(found)


def test_a_margin_that_is_refuted_is_shown_without_bounds() -> None:
    ranges = {"turret": (-0.2, 0.2), "upper_arm": (0.5, 0.9), "forearm": (-0.4, 0.3)}
    found = operating_bounds(rover(), ranges, speeds=0.1, limits=40.0)
    assert found.status is found.margin_status is Status.REFUTED
    assert found.control_statuses == (Status.UNDECIDED,) * 5
    for word in ("none", "inf", "boxes", "left_wheel"):
        assert word not in str(found)


@pytest.mark.extended
def test_margin_and_controls_are_judged_apart() -> None:
    found = operating_bounds(rover(), ELBOW, **ASKED, limits=5.0)
    assert found.status is Status.REFUTED
    assert found.counterexample is not None
    wrong = found.names.index(str(found.counterexample.control))
    assert found.control_statuses[wrong] is Status.REFUTED
    assert found.margin_status is Status.UNDECIDED  # nothing was looked for after that
    assert proved_rover().margin_status is Status.PROVED
    assert set(proved_rover().control_statuses) == {Status.PROVED}
    one = operating_bounds(rover(), ELBOW, **ASKED, tolerance=10.0)
    limits = {"forearm": float(0.99 * one.upper[4])}
    between = operating_bounds(rover(), ELBOW, **ASKED, limits=limits, budget=1)
    assert between.status is between.control_statuses[4] is Status.UNDECIDED
    assert set(between.control_statuses[:4]) == {between.margin_status} == {Status.PROVED}
    assert "1 the torque is not proved" in between.reason


def test_a_control_that_needs_nothing_has_zeros() -> None:
    found = operating_bounds(rover(), ELBOW, speeds=0.0)
    assert found.upper[0] <= 1e-300
    assert "- left_wheel: 0 to 0 N m" in str(found)


@pytest.mark.parametrize("path", ["", "no/folder.json", None])
def test_what_cannot_be_written_is_told(tmp_path: Path, path: str | None) -> None:
    target: Any = None if path is None else tmp_path / path
    with pytest.raises(DescriptionError, match="file"):
        margin_alone().save(target)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"ranges": {"turret": (0, 1)}}, OutputError, "upper_arm, forearm"),
        ({"ranges": ELBOW | {"elbow": (0, 1)}}, UnknownNameError, "elbow"),
        ({"ranges": ELBOW | {"turret": (1, 0)}}, OutputError, "Exchange"),
        ({"ranges": ELBOW | {"turret": 1.0}}, ShapeError, "turret"),
        ({"ranges": ELBOW | {"turret": (0, math.nan)}}, ConcurError, "turret"),
        ({"ranges": ELBOW | {"turret": (0, 1e308)}}, OutputError, "turn"),
        ({"ranges": 3}, OutputError, "mapping"),
        ({"limits": 3.0}, OutputError, "speeds"),
        ({"speeds": -1.0}, OutputError, "negative"),
        ({"speeds": [1.0, 2.0]}, ShapeError, "speeds"),
        ({"speeds": {"turret": 1.0}}, UnknownNameError, "left_wheel"),
        ({"speeds": 1.0, "acceleration": math.inf}, ConcurError, "acceleration"),
        ({"acceleration": math.nan}, NonFiniteError, "acceleration"),
        ({"acceleration": 0.1}, OutputError, "acceleration.*speeds"),
        ({"pose_error": 0.1}, OutputError, "pose_error.*speeds"),
        ({"velocity_error": [0.0] * 4 + [0.1]}, OutputError, "velocity_error.*speeds"),
        ({"speeds": 1.0, "limits": {"arm": 1.0}}, UnknownNameError, "arm"),
        ({"budget": 0}, OutputError, "budget"),
        ({"tolerance": 0.0}, OutputError, "tolerance"),
        ({"required_margin": -1.0}, OutputError, "required_margin"),
        ({"servo": 3}, OutputError, "Servo"),
        ({"servo": "measured"}, OutputError, "shape velocities"),
        ({"servo": "floater", "speeds": 1.0}, OutputError, "distance"),
    ],
)
def test_wrong_input_is_told(change: dict[str, Any], error: type, words: str) -> None:
    arguments: dict[str, Any] = {"servo": rover(), "ranges": ELBOW} | change
    if arguments["servo"] == "measured":
        arguments["servo"] = replace(rover(), use_measured_velocity=True)
    if arguments["servo"] == "floater":
        arguments |= {"servo": floater(), "ranges": {"upper_arm": (0, 1), "forearm": (0, 1)}}
    with pytest.raises(error, match=words):
        operating_bounds(**arguments)


@pytest.mark.extended
@pytest.mark.parametrize("group", ["SE3", "R3xSO3"])
def test_no_state_of_a_tumbling_flyer_breaks_its_torque(group: str) -> None:
    model = cc.reduce(cc.robots.free_flyer(), momentum=[0.5, -0.3, 0.2, 2.5, 0.8, 0.8])
    servo = Servo(model, [cc.Output("hand", "tool", group)], stiffness=4, damping=4)
    names = model.shape_names
    middle = np.array([0.5, -1.5, 2.1, 0.2, -0.4, 0.8])
    ranges = {name: (v - 0.01, v + 0.01) for name, v in zip(names, middle, strict=True)}
    stated = {"speeds": 0.4, "acceleration": 0.3, "velocity_error": 0.1}
    found = operating_bounds(servo, ranges, **stated, distance=1.0, tolerance=5.0)
    assert found.status is Status.PROVED
    q, s, _, _, acceleration = random_states(servo, ranges, 2_000, 8)
    far = np.random.default_rng(9).uniform(size=(len(q), 1))
    q[:, :3] *= far / np.linalg.norm(q[:, :3], axis=1, keepdims=True)
    error = np.random.default_rng(10).uniform(-0.1, 0.1, (len(q), 6))
    pose = vectors(servo.output, q)
    twist = velocities(servo, q, s) - error
    assert broken(found, servo, (q, s, pose, twist, acceleration)) == 0
    u = np.abs(vectors(servo.law, q, s, pose, twist, acceleration)).max(axis=0)
    assert (u > 0.1 * found.torque).all()


def test_where_the_law_is_damped_its_torque_is_not_claimed() -> None:
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    damped = Servo(rover().model, [base, hand], 4, 4, damping_threshold=0.7)
    assert rover().margin(_middle()) > 0.7
    found = operating_bounds(damped, ELBOW, **ASKED, required_margin=0.1)
    assert found.required_margin > 0.7
    assert found.status is Status.REFUTED
    assert (
        operating_bounds(rover(), ELBOW, **ASKED, required_margin=0.1, budget=1).required_margin
        == 0.1
    )


def test_a_redundant_robot_has_a_margin_and_no_torque() -> None:
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    loose = Servo(rover().model, [base], 4, 4)
    found = operating_bounds(loose, ELBOW)
    assert found.status is Status.PROVED
    q = random_states(loose, ELBOW, 2_000, 11)[0]
    assert found.margin is not None
    assert margins(loose, q).min() > found.margin
    with pytest.raises(OutputError, match="controls"):
        operating_bounds(loose, ELBOW, speeds=1.0)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("momentum", [[0, 0, 0, 0.3, -0.2, 0.4], [0.0] * 6])
def test_a_law_that_depends_on_no_configuration_is_one_box(momentum: list[float]) -> None:
    """A satellite with fast reaction wheels: its error terms grow with their speed."""
    model = cc.reduce(cc.robots.wheel_satellite(), momentum=momentum)
    servo = Servo(model, [cc.Output("attitude", "satellite", "SO3")], 4, 4)
    stated = {"speeds": 50.0, "velocity_error": 0.1}
    found = operating_bounds(servo, {}, **stated)
    assert found.status is Status.PROVED
    assert found.boxes.shape == (1, 2, 0)
    rng = np.random.default_rng(12)
    q = np.array([model.robot.random(rng) for _ in range(5_000)])
    s, ve = (bound * rng.choice([-1.0, 1.0], (len(q), 3)) for bound in (50.0, 0.1))
    twist = velocities(servo, q, s) - ve
    states = (q, s, vectors(servo.output, q), twist, 0 * ve)
    assert broken(found, servo, states) == 0
    u = np.abs(vectors(servo.law, *states))
    assert (u.max(axis=0) > 0.4 * found.torque).all()
    limit = 0.5 * float(u.max())
    assert operating_bounds(servo, {}, **stated, limits=limit).status is not Status.PROVED


def test_a_satellite_whose_wheels_are_too_weak_is_refuted() -> None:
    model = cc.reduce(cc.robots.wheel_satellite(), momentum=[0] * 6)
    servo = Servo(model, [cc.Output("attitude", "satellite", "SO3")], 4, 4)
    weak = operating_bounds(servo, {}, speeds=1.0, acceleration=0.2, limits=0.003)
    assert weak.status is Status.REFUTED
    assert weak.boxes.shape == (0, 2, 0)
