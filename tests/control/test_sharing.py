"""More motors than shape velocities: least weighted torques, with and without limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

import concur as cc
from concur.control import Servo
from concur.control._core import approach
from concur.errors import ConcurError
from concur.outputs import Output, ReferenceSample, references
from concur.robot import Body, Inertia, Mechanism, Motor, Pose, Wheel, joints
from concur.simulation import Integrator
from tests.control._mecanum import ACTUATION, FOUR, OUTPUTS, THREE, WEIGHTS, WHEELS, base
from tests.oracles import assert_close

GAINS = {"stiffness": 4.0, "damping": 4.0}


def state(servo: Servo, rng: np.random.Generator, speed: float = 1.0) -> tuple[np.ndarray, ...]:
    q = servo.model.robot.random(rng)
    near = servo.model.robot.integrate(q, 0.1 * speed * rng.normal(size=servo.nv))
    moving = [speed * rng.normal(size=n) for n in (servo.ns, servo.size, servo.size)]
    return q, moving[0], np.asarray(servo.output(near)), *moving[1:]


def test_torques_are_the_least_that_make_the_forces_of_three_motors() -> None:
    assert FOUR.shape == THREE.shape
    assert_close(FOUR.input_matrix(FOUR.robot.neutral()), ACTUATION, 1e-13)
    three = Servo(THREE, OUTPUTS, **GAINS)
    rng = np.random.default_rng(0)
    for weights in (None, WEIGHTS, dict(zip((*WHEELS, "arm"), WEIGHTS, strict=True))):
        four = Servo(FOUR, OUTPUTS, **GAINS, torque_weights=weights)
        root = np.ones(5) if weights is None else 1.0 / np.sqrt(WEIGHTS)
        for _ in range(5):
            q, s, *demand = state(four, rng)
            forces = three.torque(q, s, ReferenceSample(*demand))
            expected = root * np.linalg.lstsq(ACTUATION * root, forces, rcond=None)[0]
            assert_close(four.torque(q, s, ReferenceSample(*demand)), expected, 1e-11)
    assert "torques shared among 5 controls" in str(four)
    assert four.audit()["CON9"].why == (
        "5 controls, 4 output coordinates: torques shared among 1 more than shape velocities"
    )


@pytest.mark.by_default(1)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_limits_change_the_motion_only_where_sharing_does_not_suffice(
    weights: np.ndarray | None,
) -> None:
    three, four = (Servo(m, OUTPUTS, **GAINS) for m in (THREE, FOUR))
    root = np.ones(5) if weights is None else 1.0 / np.sqrt(weights)
    null = np.array([1.0, 1.0, -1.0, -1.0, 0.0])  # torques that cancel
    rng, cases = np.random.default_rng(1), {"free": 0, "shared": 0, "changed": 0}
    for _ in range(9):
        q, s, *demand = state(four, rng)
        most = np.abs(four.torque(q, s, ReferenceSample(*demand))).max()
        limits = rng.uniform(0.8, 1.02) * most * np.array([1, 1, 1, 1, 10.0])
        limited = Servo(FOUR, OUTPUTS, **GAINS, torque_limits=limits, torque_weights=weights)
        u, _, _, scale, *_ = limited.law(q, s, *demand)
        assert (np.abs(u) <= limits).all()
        wanted = three.torque(q, s, ReferenceSample(*demand))
        made = ACTUATION @ nearest(limited, q, s, wanted, limits)
        assert_close(ACTUATION @ u, made, 1e-5)
        # Of all such torques the least: from the least without limits as near as they allow.
        least = root * np.linalg.lstsq(ACTUATION * root, ACTUATION @ u, rcond=None)[0]
        room = [(side * limits[:4] - least[:4]) / null[:4] for side in (-1, 1)]
        low, high = np.minimum(*room).max(), np.maximum(*room).min()
        assert_close(u, least + np.clip(0.0, low, max(low, high)) * null, 1e-4)
        changed = np.abs(made - wanted).max() > 1e-6 * most
        assert (scale < 1.0 - 1e-9) == changed
        kind = "changed" if changed else "free" if low <= 0.0 <= high else "shared"
        cases[kind] += 1
    assert min(cases.values()) >= 1, cases


def nearest(
    servo: Servo, q: np.ndarray, s: np.ndarray, wanted: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """Torques within limits (nu,) or (nu, 2) nearest to the motion slowed down, by SciPy."""
    mass, rows = np.asarray(servo.model.mass_matrix(q)), np.asarray(servo.decoupling(q))
    rows = 0.1 * servo.margins.scales[0][:, None] * rows
    root = np.linalg.cholesky(mass + rows.T @ rows).T
    nominal = np.linalg.solve(mass, wanted - np.asarray(servo.model.bias(q, s)))
    away = root @ (-approach(servo) * s - nominal)
    length, root = np.linalg.norm(away), root @ np.linalg.inv(mass)
    pushes = np.column_stack([root @ np.asarray(servo.model.input_matrix(q)), -away / length])
    pushes = np.vstack([pushes, np.append(np.zeros(servo.nu), 0.03**0.5)])
    low, high = (-limits, limits) if np.ndim(limits) == 1 else tuple(limits.T)
    ends, aim = (np.append(low, 0.0), np.append(high, length)), np.append(root @ wanted, 0.0)
    return np.asarray(lsq_linear(pushes, aim, ends, tol=1e-14, lsq_solver="exact").x[:-1])


def test_four_wheels_and_arm_track_as_the_error_dynamics_demand() -> None:
    """All outputs are abelian: with x(0) and v(0) the error is (x + (v + 2 x) t) exp(-2 t)."""
    limits = dict.fromkeys(WHEELS, 30.0)  # not active
    for options in ({}, {"torque_limits": limits, "torque_weights": WEIGHTS}):
        servo, start = Servo(FOUR, OUTPUTS, **GAINS, **options), FOUR.robot.neutral()
        reference = references.stack(
            references.circle((0.0, 0.0), 0.5, 4.0), references.hold([0.3]), references.hold([0.5])
        )
        steps = Integrator(dt=5e-3)
        run = cc.simulate(FOUR.robot, servo, reference, 1.0, start, np.zeros(4), dt=steps)
        x, v = np.array([0.5, 0.0, 0.3, 0.5]), np.array([0.0, np.pi / 4, 0.0, 0.0])
        expected = (x + np.outer(run.t, v + 2 * x)) * np.exp(-2.0 * run.t)[:, None]
        assert_close(run.error, expected, 1e-7)
        assert run.u.shape[1] == 5


def test_tricycle_with_a_differential_tracks_with_equal_axle_torques() -> None:
    """One motor turns both rear wheels, one steers; a point ahead follows a circle."""
    spin, axle = Inertia(1.0, moments=(4e-3, 6e-3, 4e-3)), joints.Revolute((0, 1, 0))
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(20.0, (0.3, 0, 0), (0.5, 0.8, 1.0))),
        Body("left", axle, "base", Pose((0, 0.3, 0)), spin),
        Body("right", axle, "base", Pose((0, -0.3, 0)), spin),
        Body("fork", joints.Revolute((0, 0, 1)), "base", Pose((0.8, 0, 0)), spin),
        Body("front", axle, "fork", inertia=spin),
    ]
    wheels = [Wheel(name, 0.1) for name in ("left", "right", "front")]
    robot = Mechanism(
        "tricycle",
        bodies,
        wheels,
        actuated=["fork"],
        motors=[Motor("axle", {"left": 3.0, "right": 3.0}, torque=20.0)],
    )
    model = cc.reduce(robot)
    servo = Servo(model, [Output("nose", "fork", "R2", (0.3, 0, 0))], **GAINS)
    assert servo.model.control_names == ("fork", "axle")
    path, start = references.circle((0.0, 3.0), 3.0, 20.0, phase=-np.pi / 2), robot.neutral()
    rates = np.zeros(2)
    rates[model.shape_names.index(next(n for n in model.shape_names if n != "fork"))] = 9.0
    run = cc.simulate(robot, servo, path, 2.0, start, rates, dt=Integrator(dt=5e-3))
    assert_close(run.error, run.ideal, 1e-7)
    balance = run.energy - run.energy[0] - run.work
    assert_close(balance, 0.0, 1e-6)
    # A motor on each wheel makes the same forces on the shape.
    two = Mechanism("tricycle", bodies, wheels, actuated=["left", "right", "fork"])
    twin = Servo(cc.reduce(two), servo.outputs, **GAINS)
    assert twin.model.shape == model.shape
    for k in (0, 100, 300):
        q, s = run.q[k], run.v[k][list(model.shape)]
        fork, axle = run.u[k]
        pushes = twin.model.input_matrix(q)
        expected = pushes @ twin.torque(q, s, path(run.t[k]))
        assert_close(pushes @ [3.0 * axle, 3.0 * axle, fork], expected, 1e-8)
    peak = next(row for row in run.joint_limits.judge(run.q_range, run.v_range, run.u_range))
    assert peak.quantity == "peak torque of axle"
    assert peak.limit in (-20.0, 20.0)


def test_thrusters_that_only_push() -> None:
    """A body in the plane with eight jets of 0 to 3 N: least of all sets that make the command."""
    jets = []
    for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
        place = (0.4 * x, 0.3 * y, 0.0)
        jets.append(Motor(f"x{k}", body="hull", wrench=(-x, 0, 0, 0, 0, 0), point=place))
        jets.append(Motor(f"y{k}", body="hull", wrench=(0, -y, 0, 0, 0, 0), point=place))
    hull = Body("hull", joints.Planar(), inertia=Inertia(10.0, moments=(0.5, 0.6, 0.9)))
    robot = Mechanism("hull", [hull], motors=jets)
    model = cc.reduce(robot)
    assert (model.ns, model.nu, set(model.control_units)) == (3, 8, {"N"})
    pushes = model.input_matrix(robot.neutral())
    limited = Servo(model, [Output("hull", "hull", "SE2")], **GAINS, torque_limits=[(0.0, 3.0)] * 8)
    free, rng, whole = replace(limited, torque_limits=None), np.random.default_rng(3), 0
    for _ in range(20):
        q, s, *demand = state(limited, rng, 0.05)
        u = limited.law(q, s, *demand)[0]
        forces = pushes @ free.law(q, s, *demand)[0]
        made = pushes @ nearest(limited, q, s, forces, np.array([(0.0, 3.0)] * 8))
        assert_close(pushes @ u, made, 1e-5)
        assert u.min() >= 0.0
        # Least |u|^2 with A u = f, u >= 0, by nonnegative least squares with heavy rows.
        stacked = np.vstack([1e5 * pushes, np.eye(8)])
        least = nnls(stacked, np.concatenate([1e5 * made, np.zeros(8)]))[0]
        rest = lsq_linear(pushes, forces, (0.0, 3.0), tol=1e-14, lsq_solver="exact")
        if 2.0 * rest.cost < 1e-6**2 and least.max() < 3.0:
            assert_close(u, least, 1e-4)
            whole += 1
    assert whole >= 5


def test_invalid_weights() -> None:
    for weights, message in (
        ({"fl": 2.0, "xx": 1.0}, "expected a control among fl, fr, rl, rr, arm"),
        ([1.0, 2.0], r"torque_weights`: expected"),
        ([1.0, 1.0, 1.0, 1.0, 0.0], "torque_weights`, control `arm`"),
        ([1.0, 1.0, 1.0, 1.0, np.inf], "torque_weights`"),
    ):
        with pytest.raises(ConcurError, match=message):
            Servo(FOUR, OUTPUTS, **GAINS, torque_weights=weights)
    with pytest.raises(ConcurError, match="expected at least 4 controls for the shape velocities"):
        Servo(cc.reduce(base("fl", "fr")), OUTPUTS, **GAINS)
