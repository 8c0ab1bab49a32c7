"""The law, and the closed loop, as systems of python-control."""

from __future__ import annotations

from dataclasses import replace

import control
import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Servo, linear_loop
from concur.errors import NonFiniteError, SingularConfigurationError
from concur.export import to_iosystem
from concur.outputs import Output, references
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, joints
from concur.simulation import simulate
from tests.control._cases import (
    ARM_Q0,
    Q0,
    S0,
    arm,
    arm_servo,
    case_study,
    case_study_sample,
    gantry,
    refused,
)

STRETCHED = np.array([*Q0[:5], 0.1, 0.0, 0.0])
GANTRY_Q = np.array([0.1, -0.2, 0.3, *np.array([0.2, -0.1, 0.3, 0.9]) / np.sqrt(0.95)])


@pytest.fixture(scope="module")
def servo() -> Servo:
    return case_study()


def flat(sample) -> np.ndarray:  # type: ignore[no-untyped-def]
    return np.concatenate([sample.flat_pose, sample.twist, sample.acceleration])


def spd(rng: np.random.Generator, size: int, low: float, high: float) -> np.ndarray:
    turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
    return turn @ np.diag(rng.uniform(low, high, size)) @ turn.T


@pytest.mark.parametrize("kind", ["plain", "measured", "limited"])
def test_law_and_closed_loop_are_the_law_and_the_reduced_model(servo: Servo, kind: str) -> None:
    options = {"measured": {"use_measured_velocity": True}, "limited": {"torque_limits": 2.5}}
    one = replace(servo, **options.get(kind, {}))  # type: ignore[arg-type]
    law, loop, model = to_iosystem(one), to_iosystem(one, closed_loop=True), servo.model
    moving = model.robot.freedom_names if kind == "measured" else model.shape_names
    coordinates = ["chassis[x]", "chassis[y]", "chassis[heading]", *model.shape_names]
    assert (law.nstates, loop.nstates) == (0, 13)
    assert law.input_labels[:8] == [f"q[{name}]" for name in coordinates]
    assert law.input_labels[8 : 8 + len(moving)] == [
        f"{'v' if kind == 'measured' else 's'}[{name}]" for name in moving
    ]
    assert law.input_labels[8 + len(moving)] == "pose[base[x]]"
    assert law.input_labels[-1] == "acceleration[hand[z]]"
    assert law.input_labels[-15:] == loop.input_labels
    assert law.output_labels == ["u[left]", "u[right]", "u[turret]", "u[upper]", "u[fore]"]
    rng = np.random.default_rng(0)
    for t in (0.0, 1.3):
        q, s = Q0 + 0.1 * rng.normal(size=8), S0 + rng.normal(size=5)
        sample, v = case_study_sample(t), model.velocity(q, s)
        u = one.torque(q, v if kind == "measured" else s, sample)
        assert (np.abs(u).max() <= 2.5) == (kind == "limited")
        found = law.output(t, [], np.concatenate([q, v if kind == "measured" else s, flat(sample)]))
        assert_allclose(found, u, rtol=0, atol=1e-9)
        state, demand = np.concatenate([q, s]), flat(sample)
        shown = [servo.output(q), *servo.errors(q, s, demand[:5], demand[5:10]), u]
        assert_allclose(loop.output(t, state, demand), np.concatenate(shown), rtol=0, atol=1e-9)
        rates = [model.robot.rate(q, v), model.acceleration(q, s, u)]
        assert_allclose(loop.dynamics(t, state, demand), np.concatenate(rates), rtol=0, atol=1e-6)


def error_jacobian(servo: Servo, state: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Derivative of (x, ve) with respect to (q, s) by central differences, reference at rest."""
    still, step, columns = np.zeros(servo.size), 1e-5, []
    for k in range(state.size):
        ends = []
        for sign in (1.0, -1.0):
            moved = state.copy()
            moved[k] += sign * step
            errors = servo.errors(moved[: servo.nq], moved[servo.nq :], pose, still)
            ends.append(np.concatenate(errors))
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.column_stack(columns)


@pytest.mark.parametrize(
    ("case", "q"),
    [
        (lambda: case_study(), Q0),
        (lambda: arm_servo(arm(), "SE3", spd(np.random.default_rng(1), 6, 2, 9), 5.0), ARM_Q0),
        (lambda: arm_servo(gantry(), "R3xSO3", [[4, 5, 6, 7, 8, 9]], 3.0), GANTRY_Q),
    ],
    ids=["rover", "arm", "ball joint"],
)
def test_linearised_closed_loop_carries_the_error_dynamics(case, q: np.ndarray) -> None:  # type: ignore[no-untyped-def]
    servo = case()
    n, state = servo.size, np.concatenate([q, np.zeros(servo.ns)])
    pose = servo.output(q)
    demand = np.concatenate([pose, np.zeros(2 * n)])
    system = to_iosystem(servo, closed_loop=True)
    assert_allclose(system.dynamics(0.0, state, demand), 0.0, atol=1e-11)
    linear = system.linearize(state, demand, eps=1e-6)
    errors = error_jacobian(servo, state, pose)
    scale = np.linalg.inv(servo.inertia)
    kp, kd = scale @ servo.stiffness, scale @ servo.damping
    expected = np.block([[np.zeros((n, n)), -np.eye(n)], [kp, -kd]])
    assert_allclose(errors @ linear.A, expected @ errors, rtol=0, atol=2e-4)
    size = servo.pose_size
    twist, acceleration = linear.B[:, size : size + n], linear.B[:, size + n :]
    # d/dt (r^-1 rdot), the lower rows, answers the demand's twist by KD, its rate by one.
    assert_allclose((errors @ twist)[n:], kd, rtol=0, atol=2e-4)
    assert_allclose((errors @ acceleration)[n:], np.eye(n), rtol=0, atol=2e-4)
    assert_allclose(linear.C[size : size + 2 * n], errors, rtol=0, atol=2e-4)
    for pole in np.linalg.eigvals(expected):
        assert np.abs(np.linalg.eigvals(linear.A) - pole).min() < 1e-3
    assert_allclose(linear_loop(servo).A, expected, rtol=0, atol=1e-14)


def test_law_connects_to_a_plant_by_the_names_of_its_signals(servo: Servo) -> None:
    law, loop = to_iosystem(servo), to_iosystem(servo, closed_loop=True)
    model = servo.model

    def move(t, x, u, params):  # type: ignore[no-untyped-def]
        q, s = x[:8], x[8:]
        rate = model.robot.rate(q, model.velocity(q, s))
        return np.concatenate([rate, model.acceleration(q, s, u)])

    plant = control.nlsys(
        move,
        lambda t, x, u, params: x,
        inputs=law.output_labels,
        outputs=loop.state_labels,
        states=13,
    )
    joined = control.interconnect([law, plant], inputs=loop.input_labels, outputs=law.output_labels)
    state, demand = np.concatenate([Q0, S0]), flat(case_study_sample(0.4))
    expected = loop.dynamics(0.4, state, demand)
    assert np.abs(expected).max() > 1.0
    assert_allclose(joined.dynamics(0.4, state, demand), expected, rtol=0, atol=1e-9)
    u = joined.output(0.4, state, demand)
    assert_allclose(loop.output(0.4, state, demand)[-5:], u, rtol=0, atol=1e-9)


def test_closed_loop_of_a_floating_robot_with_momentum() -> None:
    robot = robots.free_flyer()
    q, s = robot.neutral(), np.array([0.05, -0.04, 0.03, 0.02, -0.03, 0.04])
    q[7:] = ARM_Q0
    model = reduce(robot, momentum=[1.95, -1.25, 0.4, 0.44, 0.58, -0.15])
    servo = Servo(model, [Output("hand", "tool", "R3xSO3")], 9.0, 5.0)
    place = servo.output(q) + np.array([0.02, 0.03, -0.01, 0.0, 0.0, 0.0, 0.0])
    reference = references.hold(place, group="R3xSO3")
    run = simulate(robot, servo, reference, 0.5, q, s, dt=1e-2)
    inputs = np.hstack(reference.sample(run.t)).T
    response = control.input_output_response(
        to_iosystem(servo, closed_loop=True),
        run.t,
        inputs,
        [*q, *s],
        solve_ivp_kwargs={"rtol": 1e-9, "atol": 1e-11},
    )
    assert np.abs(run.q[-1, :7] - q[:7]).max() > 1e-3
    assert_allclose(response.states[:13].T, run.q, rtol=0, atol=1e-7)
    assert_allclose(response.outputs[7:13].T, run.error, rtol=0, atol=1e-7)


def test_signals_of_a_body_with_a_point_in_its_name() -> None:
    bodies = [
        Body("floor", joints.Fixed()),
        Body("a.b", joints.Prismatic((1, 0, 0)), "floor", inertia=Inertia(2.0)),
    ]
    model = reduce(Mechanism("slide", bodies))
    system = to_iosystem(Servo(model, [Output("x.y", "a.b", "R")], 4.0, 2.8), closed_loop=True)
    assert system.state_labels == ["q[a_b]", "s[a_b]"]
    assert_allclose(system.dynamics(0.0, [0.1, 0.2], [0.4, 0.0, 0.5]), [0.2, 1.2 - 0.56 + 0.5])


def test_no_torque_in_a_singular_configuration(servo: Servo) -> None:
    demand = flat(case_study_sample(0.0))
    law, loop = to_iosystem(servo), to_iosystem(servo, closed_loop=True)
    refused(
        SingularConfigurationError,
        lambda: law.output(0.0, [], np.concatenate([STRETCHED, S0, demand])),
    )
    # python-control evaluates before it has the state; this configuration is singular too.
    assert servo.margin(np.zeros(8)) < servo.singular_margin
    assert_allclose(law.output(0.0, [], np.concatenate([np.zeros(13), demand])), 0.0)
    state = np.concatenate([STRETCHED, S0])
    refused(SingularConfigurationError, lambda: loop.dynamics(0.0, state, demand))
    state = np.concatenate([Q0, S0])
    state[3] = np.nan
    refused(NonFiniteError, lambda: loop.dynamics(0.0, state, demand))
