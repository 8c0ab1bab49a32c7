"""The law shares its intermediate results: the same torques from a small graph."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.control import law_function
from concur.control._law import solve_scaled
from tests.benchmarks._robots import bent, chain, humanoid
from tests.oracles import assert_close

MOMENTUM = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])


def tilted(robot: cc.Mechanism) -> cc.Mechanism:
    """Leave nothing zero: joint frames tilted, axes offset, inertias with products."""
    rng = np.random.default_rng(3)
    bodies = []
    for body in robot.bodies:
        placement, inertia = body.placement, body.inertia
        if body.parent is not None:
            attitude = Rotation.from_quat(placement.rotation)
            turned = attitude * Rotation.from_rotvec(rng.uniform(-0.5, 0.5, 3))
            offset = np.array(placement.translation) + rng.uniform(-0.05, 0.05, 3)
            placement = cc.Pose(tuple(offset), tuple(turned.as_quat()))
        if inertia.mass > 0.0:
            axes = Rotation.from_rotvec(rng.uniform(-0.5, 0.5, 3)).as_matrix()
            tensor = axes @ inertia.tensor @ axes.T
            com = np.array(inertia.com) + rng.uniform(-0.03, 0.03, 3)
            inertia = cc.Inertia(inertia.mass, tuple(com), (tensor + tensor.T) / 2)
        bodies.append(replace(body, placement=placement, inertia=inertia))
    return cc.Mechanism(f"tilted_{robot.name}", bodies, gravity=robot.gravity)


def hand(group: str, tilt: bool, gains: object = 4.0, **options: object) -> cc.Servo:
    robot = cc.robots.free_flyer()
    model = cc.reduce(tilted(robot) if tilt else robot, momentum=MOMENTUM)
    output = cc.Output("hand", "tool", group)
    return cc.Servo(model, [output], gains, gains, **options)  # type: ignore[arg-type]


@pytest.mark.extended
def test_law_of_a_humanoid_of_forty_joints_stays_small() -> None:
    model = cc.reduce(humanoid(), momentum=MOMENTUM)
    servo = cc.Servo(model, [cc.Output("hand", "left_arm8", "SE3")], 4.0, 4.0)
    assert servo.ns == 40
    assert law_function(servo).n_instructions() < 29_000


def long_arm(joints: int, **options: object) -> cc.Servo:
    model = cc.reduce(chain(joints), momentum=MOMENTUM)
    output = cc.Output("hand", "link_tool", "SE3")
    return cc.Servo(model, [output], 4.0, 4.0, **options)  # type: ignore[arg-type]


LONG = {
    "at rest": {"redundancy": cc.control.Redundancy(damping=1.5)},
    "own weights": {"redundancy": cc.control.Redundancy(weight=np.arange(1.0, 13.0))},
    "posture": {"redundancy": cc.control.Redundancy(objective="posture", posture=bent(chain(12)))},
    "base": {"redundancy": cc.control.Redundancy(objective="base_rotation")},
}


@pytest.mark.extended
@pytest.mark.parametrize("name", LONG)
def test_law_of_a_long_arm_takes_the_least_acceleration_in_its_metric(name: str) -> None:
    servo = long_arm(12, **LONG[name])
    model, rule = servo.model, servo.redundancy
    assert rule is not None
    rng = np.random.default_rng(4)
    q = model.robot.integrate(bent(model.robot), 0.1 * rng.uniform(-1.0, 1.0, model.nv))
    s, twist, acceleration = rng.uniform(-0.2, 0.2, servo.nw), *rng.uniform(-0.2, 0.2, (2, 6))
    pose = servo.output(model.robot.integrate(q, 0.05 * rng.uniform(-1.0, 1.0, model.nv)))
    v = servo.velocity(q, s)
    x, ve = servo.errors(q, s, pose, twist)
    r, drift = servo.motion(q, servo.velocity(q, s))
    symbol = ca.SX.sym("x", 6)
    group = servo.error_dynamics.group
    maps = ca.Function("maps", [symbol], [group.transport(symbol), group.ad(symbol)])
    transport, bracket = np.array(maps(x)[0]), np.array(maps(r)[1])
    residual = servo.error_dynamics.feedback(x, ve)
    residual = residual + transport @ acceleration - bracket @ transport @ twist - drift
    symbols = ca.SX.sym("q", servo.nq), ca.SX.sym("v", model.nv)
    aim = ca.Function("aim", symbols, [*map(ca.densify, rule.aim(model, *symbols))])
    metric, pull = (np.array(part) for part in aim(q, v))
    pull = pull[:, 0]

    scaled = servo.margins.scales[0][:, None] * servo.decoupling(q)
    mass = model.mass_matrix(q)
    own = scaled @ np.linalg.solve(mass, scaled.T)
    bound = np.linalg.norm(np.linalg.inv(own)) ** -0.5
    square = scaled @ np.linalg.solve(metric, scaled.T)
    right = servo.margins.scales[0] * (residual - servo.decoupling(q) @ pull)
    solved = np.linalg.solve(square, right)
    sdot = pull + np.linalg.solve(metric, scaled.T @ solved)
    vdot = model.lift(q)[0] @ sdot + model.velocity_drift(q, v)
    forces = model.lift(q)[0].T @ model.robot.inverse_dynamics(q, v, vdot)
    u, pivot, missed, _, *_ = servo.law(q, s, pose, twist, acceleration)
    assert_close(u, np.linalg.solve(model.input_matrix(q), forces), 1e-9)
    assert not missed.any()
    assert pivot == pytest.approx(min(1.0, bound), rel=1e-8)
    # With damping the same acceleration is asked for, and what is not made is stated.
    damped = replace(servo, damping_threshold=5.0)
    u, _, missed, _, *_ = damped.law(q, s, pose, twist, acceleration)
    made = model.acceleration(q, s, u)
    lacking = residual - servo.decoupling(q) @ made
    assert np.abs(missed).max() > 1e-3
    assert_close(missed, lacking, 1e-8)


@pytest.mark.extended
def test_graph_of_a_long_arm_grows_with_its_joints_and_hardly_faster() -> None:
    lengths = [law_function(long_arm(joints)).n_instructions() for joints in (12, 18, 24)]
    assert lengths[2] - lengths[1] < 1.3 * (lengths[1] - lengths[0]), lengths


@pytest.mark.parametrize("dense", [True, False])
def test_scaled_equation_is_solved_and_its_margin_told(dense: bool) -> None:
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(5, 5)), rng.normal(size=5)
    if not dense:
        matrix[[0, 3, 4], [2, 1, 4]] = 0.0
    rows, columns = rng.uniform(1.0, 3.0, (2, 5))
    symbols = ca.SX.sym("a", ca.sparsify(ca.DM(matrix)).sparsity()), ca.SX.sym("b", 5)
    solve = ca.Function("solve", symbols, list(solve_scaled(*symbols, rows, columns)))
    solution, least, side, volume, inverse = solve(ca.DM(matrix), right)
    assert_close(np.array(solution)[:, 0], np.linalg.solve(matrix, right), 1e-12)
    scaled = rows[:, None] * matrix / columns
    assert float(least) == pytest.approx(1.0 / np.linalg.norm(np.linalg.inv(scaled)), rel=1e-12)
    assert abs(float(volume)) == pytest.approx(abs(np.linalg.det(scaled)), rel=1e-12)
    square = rows[:, None] * matrix
    assert_close(inverse @ inverse.T, np.linalg.inv(square.T @ square), 1e-11)
    # Two rows swapped: dense matrices are of one sparsity, whose sign of the determinant counts.
    swapped = matrix[[0, 1, 2, 4, 3]] if dense else matrix * [1, 1, -1, 1, 1]
    assert float(side) == -float(solve(ca.DM(swapped), right)[2]) != 0.0
    for singular in (np.zeros((5, 5)), np.ones((5, 5)) * (matrix != 0.0)):
        if dense or not singular.any():
            assert float(solve(ca.DM(singular), right)[1]) < 1e-15
